// Reading JSON that somebody else wrote: every step says what it takes for granted, nothing throws.

const NOTHING: Record<string, unknown> = Object.freeze({});
/** The value as an object, an empty one if it is something else. */
export const asObject = (value: unknown): Record<string, unknown> =>
  typeof value === "object" && value !== null ? (value as Record<string, unknown>) : NOTHING;
export const asArray = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
export const asString = (value: unknown): string | undefined =>
  typeof value === "string" ? value : undefined;
/** A count of something: an integer of at least 0. */
export const asCount = (value: unknown): number | undefined =>
  typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : undefined;
/** Reads the counts in an object by their names: 0 where there is none. */
export const counter =
  (counts: unknown) =>
  (name: string): number =>
    asCount(asObject(counts)[name]) ?? 0;

/** A text as JSON; undefined if it is none. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
