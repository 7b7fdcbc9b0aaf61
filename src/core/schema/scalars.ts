// Checks of values without members: strings, numbers, booleans, and literal texts.
import { cut, fail, makeCheck, nounOf, typed, wrongType, type Check } from "./check.ts";

interface StringRules {
  /** The fewest characters. Absent: 0. */
  readonly min?: number;
  /** Absent: any text passes. */
  readonly pattern?: RegExp;
  /**
   * The pattern in words, for the message: "1 to 64 of A-Z a-z 0-9 _ -". Absent: the pattern
   * itself.
   */
  readonly expected?: string;
  /** Whether messages must not repeat the value. Absent: they show its beginning. */
  readonly secret?: boolean;
}

export function string({ min = 0, pattern, expected, secret }: StringRules = {}): Check<string> {
  const schema = {
    ...(min > 0 && { minLength: min }),
    ...(pattern && { pattern: pattern.source }),
  };
  return typed("string", schema, (value) => {
    if (value.length < min) return fail("invalid_value", "expected a string that is not empty");
    if (!pattern || pattern.test(value)) return value;
    const got = secret ? "" : `, got ${cut(JSON.stringify(value))}`;
    return fail("invalid_value", `expected ${expected ?? pattern.source}${got}`);
  });
}

export const nonEmpty = string({ min: 1 });

export const boolean = (): Check<boolean> => typed("boolean", {}, (value) => value);

interface NumberRules {
  /** The smallest valid value. Absent: there is none. */
  readonly min?: number;
  /** The largest valid value. Absent: there is none; for an integer, 2^53 - 1. */
  readonly max?: number;
  /** Whether the number must be an integer. Absent: it need not. */
  readonly integer?: boolean;
}

/** A number in a closed range, never the Infinity that JSON.parse makes of `1e400`. */
export function number({ min, max, integer = false }: NumberRules = {}): Check<number> {
  const type = integer ? "integer" : "number";
  const maximum = max ?? (integer ? Number.MAX_SAFE_INTEGER : undefined);
  const schema = {
    type,
    ...(min !== undefined && { minimum: min }),
    ...(maximum !== undefined && { maximum }),
  };
  const least = min ?? -Infinity;
  const most = max ?? Infinity;
  const expected = `expected ${nounOf(type)}`;
  const range = rangeText(min, max);
  return typed("number", schema, (value) => {
    if (integer && Number.isFinite(value) && !Number.isInteger(value))
      return fail("invalid_type", `${expected}, got ${value}`);
    if (!Number.isFinite(value) || value < least || value > most)
      return fail("invalid_value", `${expected}${range}, got ${value}`);
    if (integer && !Number.isSafeInteger(value))
      return fail("invalid_value", `${expected} below 2^53, got ${value}`);
    return value;
  });
}

function rangeText(min: number | undefined, max: number | undefined): string {
  if (min === undefined) return "";
  return max === undefined ? ` of at least ${min}` : ` from ${min} to ${max}`;
}

/** One of the given texts. */
export function literal<const T extends string>(...values: readonly T[]): Check<T> {
  const list = values.map((value) => JSON.stringify(value)).join(", ");
  const expected = values.length === 1 ? list : `one of ${list}`;
  return makeCheck({ enum: values }, (value) => {
    if (typeof value !== "string") return wrongType(expected, value);
    const known = values.find((text) => text === value);
    if (known !== undefined) return known;
    return fail("invalid_value", `expected ${expected}, got ${cut(JSON.stringify(value))}`);
  });
}
