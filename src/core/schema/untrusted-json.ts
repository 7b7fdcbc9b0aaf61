// Reading JSON that somebody else wrote: every step says what it takes for granted, nothing throws.

const EMPTY_OBJECT: Record<string, unknown> = Object.freeze({});
/** The value as an object, an empty one if it is something else. */
export const asObject = (value: unknown): Record<string, unknown> =>
  typeof value === "object" && value !== null ? (value as Record<string, unknown>) : EMPTY_OBJECT;
export const asArray = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
export const asString = (value: unknown): string | undefined =>
  typeof value === "string" ? value : undefined;
/** A count of something: an integer of at least 0. */
export const asCount = (value: unknown): number | undefined =>
  typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : undefined;
/** A count of tokens as a provider states it: an integer of at least 0, or a string of digits. It may be absurdly large: the
 * meter decides which figures can be true. */
export function asTokenCount(value: unknown): number | undefined {
  const digits = typeof value === "string" && /^\d{1,30}$/.test(value);
  const count = digits ? Number(value) : value;
  return typeof count === "number" && Number.isInteger(count) && count >= 0 ? count : undefined;
}
/** Reads the counts of tokens in an object by their names; undefined where there is none. */
export const tokenCounter =
  (counts: unknown) =>
  (name: string): number | undefined =>
    asTokenCount(asObject(counts)[name]);
/** The sum of the figures that are there; undefined if none is. */
export const sumOf = (...counts: readonly (number | undefined)[]): number | undefined => {
  const stated = counts.filter((count) => count !== undefined);
  return stated.length === 0 ? undefined : stated.reduce((sum, count) => sum + count, 0);
};

/** A text as JSON; undefined if it is none. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
