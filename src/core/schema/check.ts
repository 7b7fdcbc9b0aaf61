// The type of a check, and the issues that it reports. A check takes an unknown value and returns
// it typed, or throws a ValidationError that says where the value is wrong and what was expected.
// It carries the JSON Schema that it enforces, so the published schema cannot differ from the
// enforced one. Each container prepends its own step to the path of an error that passes through
// it, so paths cost nothing for a valid value.

/** A JSON Schema (2020-12) as data. */
export type JsonSchema = { readonly [keyword: string]: unknown };

/** The code of the API error that a client gets for an issue in its request. */
export type IssueCode =
  | "missing_required_parameter"
  | "invalid_type"
  | "invalid_value"
  | "invalid_parameter_combination"
  | "unsupported_value";

/** One fault of a value. */
export interface ValidationIssue {
  /** From the root of the checked value: `["messages", 2, "role"]`. Empty: the root itself. */
  readonly path: readonly (string | number)[];
  /** The kind of mistake. A client gets it as `error.code`. */
  readonly code: IssueCode;
  /** What was expected, without the path. */
  readonly message: string;
}

/** The error for an invalid value. Its message has one line for each issue. */
export class ValidationError extends Error {
  /** At least one. */
  readonly issues: readonly ValidationIssue[];
  constructor(issues: readonly ValidationIssue[]) {
    // Without a stack, which takes ten times as long as the check: one request may have 100,000
    // invalid values in lenient fields, and those errors are dropped.
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = 0;
    super(issues.map(issueText).join("\n"));
    Error.stackTraceLimit = stackTraceLimit;
    this.issues = issues;
  }
}

export interface Check<T> {
  /**
   * Returns the value as T, or throws a ValidationError. With `all`, containers report every issue
   * below them (for a configuration file). Without it, the first issue ends the check, so that an
   * invalid request causes little work.
   */
  (value: unknown, all?: boolean): T;
  /** The JSON Schema that the check enforces. */
  readonly schema: JsonSchema;
  /** Whether an object may lack the field. Absent: the field is required. */
  readonly optional?: boolean;
  /**
   * Whether null has a meaning of its own. Absent: `optional` and `withDefault` treat null like an
   * absent field.
   */
  readonly acceptsNull?: boolean;
}

/** The type of the values that a check returns. */
export type Infer<C> = C extends Check<infer T> ? T : never;

/** The checks of an object's fields, by name. */
export type Fields = { readonly [name: string]: Check<unknown> };

/** The type of an object whose fields these are. */
export type Checked<F extends Fields> = { -readonly [K in keyof F]: Infer<F[K]> };

const isPlainName = (step: string | number): boolean =>
  typeof step === "string" && /^[\w$/.-]+$/.test(step) && !step.includes("..");

/**
 * `messages[2].role`. Names with other characters are quoted: `models["a b"]`. The root is the
 * empty string.
 */
export const pathText = (path: ValidationIssue["path"]): string =>
  path
    .map((step) => (isPlainName(step) ? `.${step}` : `[${JSON.stringify(step)}]`))
    .join("")
    .replace(/^\./, "");

/** The path, unless it is empty, and the message. */
export const issueText = ({ path, message }: ValidationIssue): string =>
  path.length === 0 ? message : `${pathText(path)}: ${message}`;

/** Throws a ValidationError with one issue. `path` starts at the value that is being checked. */
export function fail(code: IssueCode, message: string, path: ValidationIssue["path"] = []): never {
  throw new ValidationError([{ path, code, message }]);
}

/** Shortens untrusted text to at most `max` characters for a message. */
export const cut = (text: string, max = 60): string =>
  text.length > max ? `${text.slice(0, max - 3)}...` : text;

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

/** "a string" for `string`; "nothing" for any name that is not a JSON type, such as "undefined". */
export const nounOf = (type: string): string => NOUNS[type] ?? "nothing";

/** The name of a value's JSON type in JSON Schema. */
export function typeOf(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeOf(value) === "object";

/** Fails because the value has the wrong type. */
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

/** Makes a check that tests the value's type, then calls `rule`. */
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
