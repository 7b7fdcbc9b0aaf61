// Checks that modify another check: fields that may be absent or null, further rules, and fields
// that never cause an error.
import { makeCheck, ValidationError, type Check, type JsonSchema } from "./check.ts";

/** Adds null to a schema. Next to a `const`, "null" as a second type would still exclude null. */
export const orNull = ({ default: _, ...schema }: JsonSchema): JsonSchema =>
  typeof schema["type"] === "string" && !("const" in schema)
    ? { ...schema, type: [schema["type"], "null"] }
    : { anyOf: [schema, { type: "null" }] };

/** Returns `fallback` for a field that is absent or null (wire.md "Request envelope"). */
export function withDefault<T>(check: Check<T>, fallback: NoInfer<T>): Check<T> {
  const isScalar = fallback !== undefined && typeof fallback !== "object";
  const schema = { ...orNull(check.schema), ...(isScalar && { default: fallback }) };
  const isAbsent = (value: unknown): boolean =>
    value === undefined || (value === null && !check.acceptsNull);
  return makeCheck(schema, (value, all) => (isAbsent(value) ? fallback : check(value, all)), {
    optional: true,
  });
}

/** Returns undefined for a field that is absent or null. */
export const optional = <T>(check: Check<T>): Check<T | undefined> =>
  withDefault<T | undefined>(check, undefined);

/**
 * Adds a rule on the typed value. The rule returns the value, or another that replaces it, or calls
 * `fail`.
 */
export const refine = <T, U>(
  check: Check<T>,
  rule: (value: T) => U,
  keywords: JsonSchema = {},
): Check<U> =>
  makeCheck({ ...check.schema, ...keywords }, (value, all) => rule(check(value, all)), check);

/** Returns undefined for an invalid value: for fields that must never cause an error. */
export function lenient<T>(check: Check<T>): Check<T | undefined> {
  function checkOrDrop(value: unknown): T | undefined {
    if (value === undefined) return undefined; // the usual case, and creating an Error takes time
    try {
      return check(value);
    } catch (error) {
      if (error instanceof ValidationError) return undefined;
      throw error;
    }
  }
  return makeCheck({}, checkOrDrop, { optional: true });
}
