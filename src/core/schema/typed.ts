// How checks are built: a function and its JSON Schema together, and the test of a value's JSON
// type that most begin with.
import { fail, type Check, type JsonSchema } from "./check.ts";

/** The JSON types by their names in JSON Schema, as messages call them. */
const NOUNS: { readonly [type: string]: string } = {
  null: "null",
  array: "an array",
  object: "an object",
  string: "a string",
  number: "a number",
  integer: "an integer",
  boolean: "a boolean",
};

/** "a string" for `string`; "nothing" for what is no JSON type. */
export const nounOf = (type: string): string => NOUNS[type] ?? "nothing";

/** The name of a value's JSON type in JSON Schema. */
export function typeOf(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeOf(value) === "object";

/** Throws the error for a value of the wrong type. */
export const wrongType = (expected: string, value: unknown): never =>
  fail("invalid_type", `expected ${expected}, got ${nounOf(typeOf(value))}`);

/** Makes a check of a function and the JSON Schema that it enforces. */
export const makeCheck = <T>(
  schema: JsonSchema,
  check: (value: unknown, all?: boolean) => T,
  marks: Omit<Check<T>, "schema"> = {},
): Check<T> => Object.assign(check, { ...marks, schema });

interface TypesByName {
  string: string;
  number: number;
  boolean: boolean;
  array: unknown[];
  object: Record<string, unknown>;
}

/** A check that tests the value's type first. `rule` checks the rest. */
export function typed<N extends keyof TypesByName, T>(
  name: N,
  schema: JsonSchema,
  rule: (value: TypesByName[N], all?: boolean) => T,
): Check<T> {
  const expected = nounOf(String(schema["type"] ?? name));
  return makeCheck({ type: name, ...schema }, (value, all) =>
    typeOf(value) === name ? rule(value as TypesByName[N], all) : wrongType(expected, value),
  );
}
