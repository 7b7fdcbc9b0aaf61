// Reads JSON that a provider or a client wrote. Each function returns a default for a value of
// the wrong type. None throws.

const EMPTY_OBJECT: Record<string, unknown> = Object.freeze({});

/** The value if it is an object or an array, else an empty object. */
export const asObject = (value: unknown): Record<string, unknown> =>
  typeof value === "object" && value !== null ? (value as Record<string, unknown>) : EMPTY_OBJECT;

/** The value if it is an array, else an empty array. */
export const asArray = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

/** The value if it is a string, else undefined. */
export const asString = (value: unknown): string | undefined =>
  typeof value === "string" ? value : undefined;

/** The value if it is a safe integer of at least 0, else undefined. */
export const asCount = (value: unknown): number | undefined =>
  typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : undefined;

/**
 * A provider's count of tokens: an integer of at least 0, as a number or as a string of digits. It
 * may be absurdly large: the meter rejects implausible figures.
 */
export function asTokenCount(value: unknown): number | undefined {
  const count = typeof value === "string" && /^\d{1,30}$/.test(value) ? Number(value) : value;
  return typeof count === "number" && Number.isInteger(count) && count >= 0 ? count : undefined;
}

/** Returns a function that reads a token count of an object by its name. */
export const tokenCounter =
  (counts: unknown) =>
  (name: string): number | undefined =>
    asTokenCount(asObject(counts)[name]);

/** The JSON value of a text. Undefined if the text is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
