// JSON objects of any shape that pass through as they are, such as the schemas of a client's tools.
import { fail, type Check } from "./check.ts";
import { typed } from "./typed.ts";

/**
 * Counts the values in a JSON value, itself included: numbers, texts, objects, arrays. Stops soon
 * after `max`. Returns Infinity if there are more than `maxDepth` levels.
 */
export function countValues(value: unknown, max: number, maxDepth = 100): number {
  if (typeof value !== "object" || value === null) return 1;
  if (maxDepth === 0) return Infinity;
  let count = 1;
  for (const child of Object.values(value)) {
    count += countValues(child, max - count, maxDepth - 1);
    if (count > max) break;
  }
  return count;
}

/** Bounds on the work that an object causes. */
interface JsonObjectRules {
  /** The most values in the object. Absent: any number. */
  readonly maxValues?: number;
  /** The most characters of its JSON text. Absent: any number. */
  readonly maxChars?: number;
}

/**
 * Any JSON object of at most `maxDepth` levels: JSON.stringify is recursive, and more levels could
 * exhaust the stack.
 */
export function jsonObject(
  maxDepth = 100,
  { maxValues = Infinity, maxChars = Infinity }: JsonObjectRules = {},
): Check<Record<string, unknown>> {
  return typed("object", {}, (value) => {
    const count = countValues(value, maxValues, maxDepth);
    if (count === Infinity)
      return fail("invalid_value", `expected at most ${maxDepth} levels of nesting`);
    if (count > maxValues) return fail("invalid_value", `expected at most ${maxValues} values`);
    if (maxChars < Infinity && JSON.stringify(value).length > maxChars)
      return fail("invalid_value", `expected at most ${maxChars} characters of JSON`);
    return value;
  });
}
