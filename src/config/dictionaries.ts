// Checks that only a configuration needs, made of the core's: dictionaries, and settings of which
// each may be left out.
import {
  checkMembers,
  fail,
  optional,
  typed,
  type Check,
  type Fields,
} from "../core/schema/checker.ts";

/** An object used as a dictionary. Returns a Map, in which no name (`__proto__`) is special. */
export const record = <T>(check: Check<T>): Check<Map<string, T>> =>
  typed("object", { additionalProperties: check.schema }, (value, all) => {
    const checked = new Map<string, T>();
    checkMembers(Object.keys(value), all, (name) => {
      if (name === "") fail("invalid_value", "a name must not be empty");
      checked.set(name, check(value[name], all));
    });
    return checked;
  });

/** The same fields, each of them optional. */
export const partial = <F extends Fields>(fields: F) =>
  Object.fromEntries(Object.entries(fields).map(([name, check]) => [name, optional(check)])) as {
    [K in keyof F]: F[K] extends Check<infer T> ? Check<T | undefined> : never;
  };
