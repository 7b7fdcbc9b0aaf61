// The schema checker: small functions that take an unknown value and return it typed, or throw a ValidationError that says where the fault
// is and what was expected. Each carries the JSON Schema that it enforces, so what is published can never differ from what is checked.
// Paths are built on the way out of a failure (each container adds its own step), so a value that passes costs none.

export type JsonSchema = { readonly [keyword: string]: unknown };
export type IssueCode =
  | "missing_required_parameter"
  | "invalid_type"
  | "invalid_value"
  | "invalid_parameter_combination"
  | "unsupported_value";
/** One thing that is wrong: `path` from the checked value's root (`["messages", 2, "role"]`), `message` without the path. */
export type ValidationIssue = {
  readonly path: readonly (string | number)[];
  readonly code: IssueCode;
  readonly message: string;
};

export class ValidationError extends Error {
  readonly faults: readonly ValidationIssue[];
  constructor(faults: readonly ValidationIssue[]) {
    super(faults.map(faultText).join("\n"));
    this.faults = faults;
  }
}

/** A check: returns the value typed, or throws a ValidationError. With `all`, containers gather every fault below them (for a
 * configuration file); without it the first fault ends the check (for requests: hostile input must not buy work). */
export interface Check<T> {
  (value: unknown, all?: boolean): T;
  readonly schema: JsonSchema;
  readonly optional?: boolean;
  readonly takesNull?: boolean; // null is a value with a meaning of its own here, so `optional` does not take it for absent
}

export type Infer<C> = C extends Check<infer T> ? T : never;
const isPlain = (step: string | number): boolean =>
  typeof step === "string" && /^[\w$/.-]+$/.test(step) && !step.includes("..");
/** `messages[2].role`; steps that are not plain names are quoted: `models["a b"]`. The root is the empty string. */
export const pathText = (path: ValidationIssue["path"]): string =>
  path
    .map((step) => (isPlain(step) ? `.${step}` : `[${JSON.stringify(step)}]`))
    .join("")
    .replace(/^\./, "");
export const faultText = ({ path, message }: ValidationIssue): string =>
  path.length === 0 ? message : `${pathText(path)}: ${message}`;

/** Throws a single fault at `path`, seen from the value that is being checked. */
export function fail(code: IssueCode, message: string, path: ValidationIssue["path"] = []): never {
  throw new ValidationError([{ path, code, message }]);
}

/** The type of a JSON value, by its name in JSON Schema. */
const typeOf = (value: unknown): string => {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
};
const NOUNS: { readonly [type: string]: string } = {
  null: "null",
  array: "an array",
  object: "an object",
  string: "a string",
  number: "a number",
  integer: "an integer",
  boolean: "a boolean",
};
const wrongType = (expected: string, value: unknown): never =>
  fail("invalid_type", `expected ${expected}, got ${NOUNS[typeOf(value)] ?? "nothing"}`);
/** A text from outside, short enough to be shown in a message. */
export const cut = (text: string, max = 60): string =>
  text.length > max ? `${text.slice(0, max - 3)}...` : text;
const make = <T>(
  schema: JsonSchema,
  check: (value: unknown, all?: boolean) => T,
  marks: Omit<Check<T>, "schema"> = {},
): Check<T> => Object.assign(check, { ...marks, schema });

interface Types {
  string: string;
  number: number;
  boolean: boolean;
  array: unknown[];
  object: Record<string, unknown>;
}
/** A check that begins with the value's type; `rule` is what more there is to it. */
const typed = <N extends keyof Types, T>(
  name: N,
  schema: JsonSchema,
  rule: (value: Types[N], all?: boolean) => T,
): Check<T> => {
  const expected = NOUNS[String(schema["type"] ?? name)]!;
  return make({ type: name, ...schema }, (value, all) =>
    typeOf(value) === name ? rule(value as Types[N], all) : wrongType(expected, value),
  );
};

/** Takes the members of a container to `out`, by their steps. A fault comes out with its step before its path: the first or, if `all`, each. */
function members<S extends string | number, T>(
  steps: Iterable<S>,
  all: boolean | undefined,
  out: T,
  take: (step: S, out: T) => unknown,
): T {
  const faults: ValidationIssue[] = [];
  for (const step of steps) {
    try {
      take(step, out);
    } catch (error) {
      if (!(error instanceof ValidationError)) throw error;
      for (const fault of error.faults) faults.push({ ...fault, path: [step, ...fault.path] }); // there may be too many to spread
      if (!all) break;
    }
  }
  if (faults.length > 0) throw new ValidationError(faults);
  return out;
}

/** `expected`, for the message: what the pattern means ("1 to 64 of A-Z a-z 0-9 _ -"). A `secret` value is never repeated. */
export const string = ({
  min = 0,
  pattern,
  expected,
  secret,
}: {
  min?: number;
  pattern?: RegExp;
  expected?: string;
  secret?: boolean;
} = {}) =>
  typed(
    "string",
    { ...(min > 0 && { minLength: min }), ...(pattern && { pattern: pattern.source }) },
    (value): string => {
      if (value.length < min) return fail("invalid_value", "expected a string that is not empty");
      if (!pattern || pattern.test(value)) return value;
      return fail(
        "invalid_value",
        `expected ${expected ?? pattern.source}${secret ? "" : `, got ${cut(JSON.stringify(value))}`}`,
      );
    },
  );

export const nonEmpty = string({ min: 1 });
export const boolean = (): Check<boolean> => typed("boolean", {}, (value) => value);

/** A finite number in the closed range. `1e400`, which JSON.parse turns into Infinity, is out of every range. */
export function number({
  min,
  max,
  integer = false,
}: {
  min?: number;
  max?: number;
  integer?: boolean;
} = {}): Check<number> {
  const type = integer ? "integer" : "number";
  const schema = {
    type,
    ...(min !== undefined && { minimum: min }),
    ...((integer || max !== undefined) && { maximum: max ?? Number.MAX_SAFE_INTEGER }),
  };
  let range = "";
  if (min !== undefined)
    range = max === undefined ? ` of at least ${min}` : ` from ${min} to ${max}`;
  const refuse = (value: number, but = range, code: IssueCode = "invalid_value") =>
    fail(code, `expected ${NOUNS[type]}${but}, got ${value}`);
  return typed("number", schema, (value) => {
    if (integer && Number.isFinite(value) && !Number.isInteger(value))
      return refuse(value, "", "invalid_type");
    if (
      !Number.isFinite(value) ||
      (min !== undefined && value < min) ||
      (max !== undefined && value > max)
    )
      return refuse(value);
    return integer && !Number.isSafeInteger(value) ? refuse(value, " below 2^53") : value;
  });
}

export function literal<const T extends string>(...values: readonly T[]): Check<T> {
  const list = values.map((value) => JSON.stringify(value)).join(", ");
  const expected = values.length === 1 ? list : `one of ${list}`;
  return make({ enum: values }, (value) => {
    if (typeof value !== "string") return wrongType(expected, value);
    return (
      values.find((known) => known === value) ??
      fail("invalid_value", `expected ${expected}, got ${cut(JSON.stringify(value))}`)
    );
  });
}

export const array = <T>(
  item: Check<T>,
  { min = 0, max = Infinity }: { min?: number; max?: number } = {},
): Check<T[]> =>
  typed(
    "array",
    {
      items: item.schema,
      ...(min > 0 && { minItems: min }),
      ...(max !== Infinity && { maxItems: max }),
    },
    (value, all) => {
      if (value.length < min)
        return fail(
          "invalid_value",
          `expected at least ${min} element${min === 1 ? "" : "s"}, got ${value.length}`,
        );
      if (value.length > max)
        return fail("invalid_value", `expected at most ${max} elements, got ${value.length}`);
      return members(value.keys(), all, [] as T[], (index, out) =>
        out.push(item(value[index], all)),
      );
    },
  );

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeOf(value) === "object";
export type Fields = { readonly [name: string]: Check<unknown> };

/** Other fields are left out of the new object that it returns (WIRE 1.2); if `strict`, they are faults: misspelt settings. */
export function object<F extends Fields>(fields: F, { strict = false } = {}) {
  const known = new Map(Object.entries(fields));
  const names = Object.keys(fields);
  const required = names.filter((name) => !fields[name]!.optional);
  const properties = Object.fromEntries(names.map((name) => [name, fields[name]!.schema]));
  const schema = {
    properties,
    ...(required.length > 0 && { required }),
    ...(strict && { additionalProperties: false }),
  };
  return typed("object", schema, (value, all) =>
    members(
      strict ? new Set([...names, ...Object.keys(value)]) : names,
      all,
      {} as { -readonly [K in keyof F]: Infer<F[K]> },
      (name, out) => {
        const check =
          known.get(name) ??
          fail("invalid_value", `is not a known field; known here: ${names.join(", ")}`);
        const given = Object.hasOwn(value, name) ? value[name] : undefined;
        if (given === undefined && !check.optional)
          fail("missing_required_parameter", "is required");
        (out as Record<string, unknown>)[name] = check(given, all);
      },
    ),
  );
}

export const partial = <F extends Fields>(fields: F) =>
  Object.fromEntries(Object.entries(fields).map(([name, check]) => [name, optional(check)])) as {
    [K in keyof F]: Check<Infer<F[K]> | undefined>;
  };

/** An object used as a dictionary; a Map, so that no name (`__proto__`) is special. */
export const record = <T>(check: Check<T>): Check<Map<string, T>> =>
  typed("object", { additionalProperties: check.schema }, (value, all) =>
    members(Object.keys(value), all, new Map<string, T>(), (name, out) =>
      out.set(name || fail("invalid_value", "a name must not be empty"), check(value[name], all)),
    ),
  );

/** May be left out, or be null, which says the same (WIRE 1.1): `value` is returned. */
export function withDefault<T>(check: Check<T>, value: NoInfer<T>): Check<T> {
  const schema = {
    ...orNull(check.schema),
    ...(value !== undefined && typeof value !== "object" && { default: value }),
  };
  return make(
    schema,
    (given, all) =>
      given === undefined || (given === null && !check.takesNull) ? value : check(given, all),
    { optional: true },
  );
}

export const optional = <T>(check: Check<T>): Check<T | undefined> =>
  withDefault<T | undefined>(check, undefined);
/** Null is a value of its own, and something else than absent: `"rpm": null` is "unlimited", no `rpm` "the default". */
export const nullable = <T>(check: Check<T>): Check<T | null> =>
  make(orNull(check.schema), (value, all) => (value === null ? null : check(value, all)), {
    takesNull: true,
  });
/** Beside a `const`, null as a further type would not let null in. */
const orNull = ({ default: _, ...schema }: JsonSchema): JsonSchema =>
  typeof schema["type"] === "string" && !("const" in schema)
    ? { ...schema, type: [schema["type"], "null"] }
    : { anyOf: [schema, { type: "null" }] };

/** One of several checks, by the name that `choose` gives for the value. */
const oneOf = <C extends Fields>(
  checks: C,
  choose: (value: unknown) => string,
): Check<Infer<C[keyof C]>> =>
  make(
    { anyOf: Object.values(checks).map((each) => each.schema) },
    (value, all) => checks[choose(value)]!(value, all) as Infer<C[keyof C]>,
  );

/** Different checks for different JSON types: `byType({ string: ..., array: ... })`; faults keep their exact path. */
export function byType<C extends Fields>(checks: C): Check<Infer<C[keyof C]>> {
  const expected = Object.keys(checks)
    .map((type) => NOUNS[type])
    .join(" or ");
  return oneOf(checks, (value) =>
    typeOf(value) in checks ? typeOf(value) : wrongType(expected, value),
  );
}

/** A further rule on the typed value; it returns the value (or a better one) or calls `fail`. */
export const refine = <T, U>(
  check: Check<T>,
  rule: (value: T) => U,
  extra: JsonSchema = {},
): Check<U> => make({ ...check.schema, ...extra }, (value, all) => rule(check(value, all)), check);

/** Takes the value if it passes, else does as if it were absent: for fields that must never be an error. */
export const lenient = <T>(check: Check<T>): Check<T | undefined> =>
  make(
    {},
    (value) => {
      try {
        return value === undefined ? value : check(value); // absent is the rule, and an Error takes time
      } catch (error) {
        if (error instanceof ValidationError) return undefined;
        throw error;
      }
    },
    { optional: true },
  );

/** The values in a JSON value, itself among them: numbers, texts, objects, arrays; those below `maxDepth` levels make it Infinity. Stops
 * counting when there are more than `max`. */
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

/** Any JSON object, passed on as it is. Bounded in depth: JSON.stringify recurses, and would exhaust the stack. `maxValues`, and
 * `maxChars` of its JSON text, bound the work that is done on it; absent: any number. */
export function jsonObject(
  maxDepth = 100,
  { maxValues = Infinity, maxChars = Infinity }: { maxValues?: number; maxChars?: number } = {},
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

/** A tagged union: the string field `tag` says which check, an object's that has this field itself, applies to the whole. */
export function variant<V extends Fields>(tag: string, variants: V): Check<Infer<V[keyof V]>> {
  const tagCheck = object({ [tag]: literal(...Object.keys(variants)) });
  const isName = (given: unknown): given is string =>
    typeof given === "string" && Object.hasOwn(variants, given);
  return oneOf(variants, (value) =>
    isObject(value) && isName(value[tag]) ? value[tag] : tagCheck(value)[tag]!,
  );
}
