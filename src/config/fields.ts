// Checks that many fields of gateway.json use.
import { isIP } from "node:net";
import {
  fail,
  makeCheck,
  nonEmpty,
  number,
  object,
  optional,
  orNull,
  refine,
  string,
  withDefault,
  type Check,
  type Checked,
  type Fields,
} from "../core/schema/checker.ts";

export const DAY_MS = 86_400_000;

/** An object in which any other field is an issue: a misspelt setting must not be ignored. */
export const strict = <F extends Fields>(fields: F) => object(fields, { strict: true });

/** The same fields, each of them optional. */
export const partial = <F extends Fields>(fields: F) =>
  Object.fromEntries(Object.entries(fields).map(([name, check]) => [name, optional(check)])) as {
    [K in keyof F]: F[K] extends Check<infer T> ? Check<T | undefined> : never;
  };

/** A strict object that may be left out, because all of its fields have defaults. */
export const section = <F extends Fields>(fields: F): Check<Checked<F>> =>
  withDefault(strict(fields), strict(fields)({}));

/** A text that every address, process and store accepts. `min`: the least number of characters. */
export const wellFormed = (min: number): Check<string> =>
  string({
    min,
    pattern: /^[^\0\p{Cs}]*$/u,
    expected: "a text without NUL and without half of a character",
  });

export const integer = (min: number, max: number): Check<number> =>
  number({ min, max, integer: true });

export const positive = number({ min: 1, integer: true });

/**
 * A price in the currency per million tokens. Its sixth decimal is one pico-unit per token, in
 * which money is counted, so more decimals cannot be billed.
 */
export const price = refine(number({ min: 0, max: 1_000_000 }), (value) =>
  Number(value.toFixed(6)) === value
    ? value
    : fail("invalid_value", `expected at most six decimals, got ${value}`),
);

/** Milliseconds, at most a day. `value` is the default. */
export const ms = (value: number, min = 1): Check<number> =>
  withDefault(integer(min, DAY_MS), value);

export const port = integer(0, 65_535);

/** Where to listen: a name or an IP address, without a port. */
export const host = refine(nonEmpty, (text) =>
  isIP(text) > 0 || /^[\w.-]+$/.test(text)
    ? text
    : fail("invalid_value", "expected a name or an IP address, without a port"),
);

export const isLoopback = (host: string): boolean =>
  host === "localhost" || host === "::1" || /^127\.\d+\.\d+\.\d+$/.test(host);

/**
 * An http:// or https:// address without credentials, query or fragment. Slashes at its end are
 * removed.
 */
export const url = refine(nonEmpty, (text) => {
  const parsed = URL.canParse(text) ? new URL(text) : undefined;
  if (!parsed || !/^https?:$/.test(parsed.protocol))
    return fail("invalid_value", "expected an http:// or https:// address");
  if (parsed.username || parsed.password)
    return fail("invalid_value", "must not contain a user name or password");
  if (parsed.search || parsed.hash)
    return fail("invalid_value", "must not have a query or fragment");
  return parsed.href.replace(/\/+$/, "");
});

/** Returns the row. Throws a ValidationError unless it has exactly one of two fields. */
export const exactlyOne = <T extends object>(
  row: T,
  a: keyof T & string,
  b: keyof T & string,
): T =>
  (row[a] === undefined) === (row[b] === undefined)
    ? fail("invalid_parameter_combination", `expected exactly one of ${a} and ${b}`)
    : row;

/**
 * Null is a value and not the same as absent: `"rpm": null` is "unlimited", no `rpm` is "the
 * default".
 */
export const nullable = <T>(check: Check<T>): Check<T | null> =>
  makeCheck(orNull(check.schema), (value, all) => (value === null ? null : check(value, all)), {
    acceptsNull: true,
  });
