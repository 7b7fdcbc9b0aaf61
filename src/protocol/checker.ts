// The schema checker: small functions that take an unknown value and either return it typed or throw a CheckError that
// says where the fault is and what was expected. Each check carries the JSON Schema that it enforces, so the published
// OpenAPI document and the messages can never differ from what is really checked. Paths are built on the way out of a
// failure (each container adds its own step), so a value that passes costs none.

export type JsonSchema = { readonly [keyword: string]: unknown };
export type FaultCode =
  | "missing_required_parameter" | "invalid_type" | "invalid_value" | "invalid_parameter_combination" | "unsupported_value";

/** One thing that is wrong: `path` from the checked value's root (`["messages", 2, "role"]`), `message` without the path. */
export type Fault = { readonly path: readonly (string | number)[]; readonly code: FaultCode; readonly message: string };

export class CheckError extends Error {
  readonly faults: readonly Fault[];
  constructor(faults: readonly Fault[]) {
    super(faults.map(faultText).join("\n"));
    this.faults = faults;
  }
}

/** A check: returns the value typed, or throws a CheckError. With `all`, containers gather every fault below them (for a
 * configuration file); without it the first fault ends the check (for requests: hostile input must not buy work). */
export interface Check<T> {
  (value: unknown, all?: boolean): T;
  readonly schema: JsonSchema;
  readonly optional?: boolean;
  /** Null is a value with a meaning of its own here, so `optional` does not take it for absent. */
  readonly takesNull?: boolean;
}

export type Infer<C> = C extends Check<infer T> ? T : never;

/** `messages[2].role`; steps that are not plain names are quoted: `models["a b"]`. The root is the empty string. */
export function pathText(path: Fault["path"]): string {
  let text = "";
  for (const step of path) {
    if (typeof step === "number") text += `[${step}]`;
    else if (/^[\w$/.-]+$/.test(step) && !step.includes("..")) text += text === "" ? step : `.${step}`;
    else text += `[${JSON.stringify(step)}]`;
  }
  return text;
}

export function faultText(fault: Fault): string {
  const where = pathText(fault.path);
  return where === "" ? fault.message : `${where}: ${fault.message}`;
}

/** Throws a single fault at `path`, seen from the value that is being checked. */
export function fail(code: FaultCode, message: string, path: Fault["path"] = []): never {
  throw new CheckError([{ path, code, message }]);
}

const wrongType = (expected: string, value: unknown): never => fail("invalid_type", `expected ${expected}, got ${typeName(value)}`);

function typeName(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "an array";
  return { object: "an object", string: "a string", number: "a number", boolean: "a boolean" }[typeof value as string] ?? "nothing";
}

/** A value from outside, short enough to be shown in a message. */
const shown = (value: unknown): string => {
  const text = JSON.stringify(value) ?? "nothing";
  return text.length > 60 ? `${text.slice(0, 57)}...` : text;
};

type Marks = Pick<Check<unknown>, "optional" | "takesNull">;
const make = <T>(schema: JsonSchema, check: (value: unknown, all?: boolean) => T, marks: Marks = {}): Check<T> =>
  Object.assign(check, { schema, ...marks });

/** Runs one inner check; a fault comes out with `step` before its path. Gathered into `faults` if `all`. */
function inner<T>(check: Check<T>, value: unknown, step: string | number, all: boolean | undefined, faults: Fault[]): T | undefined {
  try {
    return check(value, all);
  } catch (error) {
    if (!(error instanceof CheckError)) throw error;
    const placed = error.faults.map((fault) => ({ ...fault, path: [step, ...fault.path] }));
    if (!all) throw new CheckError(placed);
    faults.push(...placed);
    return undefined;
  }
}

type StringRules = { readonly min?: number; readonly pattern?: RegExp; readonly expected?: string; readonly secret?: boolean };

/** `expected`, for the message: what the pattern means ("1 to 64 of A-Z a-z 0-9 _ -"). A `secret` value is never repeated. */
export function string({ min, pattern, expected, secret }: StringRules = {}): Check<string> {
  const schema = { type: "string", ...(min && { minLength: min }), ...(pattern && { pattern: pattern.source }) };
  return make(schema, (value) => {
    if (typeof value !== "string") return wrongType("a string", value);
    if (min !== undefined && value.length < min) return fail("invalid_value", "expected a string that is not empty");
    if (!pattern || pattern.test(value)) return value;
    return fail("invalid_value", `expected ${expected ?? pattern.source}${secret ? "" : `, got ${shown(value)}`}`);
  });
}

export const nonEmpty = string({ min: 1 });

export const boolean = (): Check<boolean> =>
  make({ type: "boolean" }, (value) => (typeof value === "boolean" ? value : wrongType("a boolean", value)));

/** A finite number in the closed range. `1e400`, which JSON.parse turns into Infinity, is out of every range. */
export function number({ min, max, integer = false }: { min?: number; max?: number; integer?: boolean } = {}): Check<number> {
  const [type, noun] = integer ? ["integer", "an integer"] : ["number", "a number"];
  const schema = { type, ...(min !== undefined && { minimum: min }), ...(max !== undefined && { maximum: max }) };
  const range = min === undefined ? "" : max === undefined ? ` of at least ${min}` : ` from ${min} to ${max}`;
  return make(schema, (value) => {
    if (typeof value !== "number") return wrongType(noun, value);
    if (integer && Number.isFinite(value) && !Number.isInteger(value)) return fail("invalid_type", `expected ${noun}, got ${value}`);
    const outside = !Number.isFinite(value) || (min !== undefined && value < min) || (max !== undefined && value > max);
    if (outside) return fail("invalid_value", `expected ${noun}${range}, got ${value}`);
    if (integer && !Number.isSafeInteger(value)) return fail("invalid_value", `expected ${noun} below 2^53, got ${value}`);
    return value;
  });
}

/** One of a few literal strings. */
export function literal<const T extends string>(...values: readonly T[]): Check<T> {
  const list = values.map((value) => JSON.stringify(value)).join(", ");
  const expected = values.length === 1 ? list : `one of ${list}`;
  return make({ enum: values }, (value) => {
    if (typeof value !== "string") return wrongType(expected, value);
    return values.find((known) => known === value) ?? fail("invalid_value", `expected ${expected}, got ${shown(value)}`);
  });
}

export function array<T>(item: Check<T>, { min = 0, max = Infinity }: { min?: number; max?: number } = {}): Check<T[]> {
  const schema = { type: "array", items: item.schema, ...(min > 0 && { minItems: min }), ...(max !== Infinity && { maxItems: max }) };
  return make(schema, (value, all) => {
    if (!Array.isArray(value)) return wrongType("an array", value);
    if (value.length < min) return fail("invalid_value", `expected at least ${min} element${min === 1 ? "" : "s"}, got ${value.length}`);
    if (value.length > max) return fail("invalid_value", `expected at most ${max} elements, got ${value.length}`);
    const faults: Fault[] = [];
    const out = value.map((element: unknown, index) => inner(item, element, index, all, faults));
    if (faults.length > 0) throw new CheckError(faults);
    return out as T[];
  });
}

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

type Fields = { readonly [name: string]: Check<unknown> };
type ObjectOf<F extends Fields> = { -readonly [K in keyof F]: Infer<F[K]> };

/** Other fields are left out of the new object that it returns (WIRE 1.2); if `strict`, they are faults: misspelt settings. */
export function object<F extends Fields>(fields: F, { strict = false } = {}): Check<ObjectOf<F>> {
  const entries = Object.entries(fields);
  const required = entries.filter(([, check]) => !check.optional).map(([name]) => name);
  const properties = Object.fromEntries(entries.map(([name, check]) => [name, check.schema]));
  const schema = { type: "object", properties, ...(required.length > 0 && { required }), ...(strict && { additionalProperties: false }) };
  const known = Object.keys(fields).join(", ");
  const notKnown = (name: string): Fault => ({ path: [name], code: "invalid_value", message: `is not a known field; known here: ${known}` });
  return make(schema, (value, all) => {
    if (!isObject(value)) return wrongType("an object", value);
    const faults: Fault[] = [];
    const out: Record<string, unknown> = {};
    for (const [name, check] of entries) {
      const given = Object.hasOwn(value, name) ? value[name] : undefined;
      if (given !== undefined || check.optional) out[name] = inner(check, given, name, all, faults);
      else faults.push({ path: [name], code: "missing_required_parameter", message: "is required" });
      if (!all && faults.length > 0) break;
    }
    if (strict) faults.push(...Object.keys(value).filter((name) => !Object.hasOwn(fields, name)).map(notKnown));
    if (faults.length > 0) throw new CheckError(faults);
    return out as ObjectOf<F>;
  });
}

/** The same fields, all of them optional. */
export const partial = <F extends Fields>(fields: F) =>
  Object.fromEntries(Object.entries(fields).map(([name, check]) => [name, optional(check)])) as { [K in keyof F]: Check<Infer<F[K]> | undefined> };

/** An object used as a dictionary; a Map, so that no name (`__proto__`) is special. */
export function record<T>(check: Check<T>): Check<Map<string, T>> {
  return make({ type: "object", additionalProperties: check.schema }, (value, all) => {
    if (!isObject(value)) return wrongType("an object", value);
    const faults: Fault[] = [];
    const out = new Map<string, T>();
    for (const [name, given] of Object.entries(value)) {
      if (name === "") faults.push({ path: [name], code: "invalid_value", message: "a name must not be empty" });
      out.set(name, inner(check, given, name, all, faults) as T);
    }
    if (faults.length > 0) throw new CheckError(faults);
    return out;
  });
}

/** May be left out (undefined is returned), or be null, which says the same (WIRE 1.1). */
export const optional = <T>(check: Check<T>): Check<T | undefined> =>
  make(orNull(check.schema), (value, all) => (isAbsent(check, value) ? undefined : check(value, all)), { optional: true });

/** May be left out, or be null: `value` is returned. */
export function withDefault<T>(check: Check<T>, value: NoInfer<T>): Check<T> {
  const schema = { ...orNull(check.schema), ...(typeof value !== "object" && { default: value }) };
  return make(schema, (given, all) => (isAbsent(check, given) ? value : check(given, all)), { optional: true });
}

/** Null is a value of its own, and something else than absent: `"rpm": null` is "unlimited", no `rpm` "the default". */
export const nullable = <T>(check: Check<T>): Check<T | null> =>
  make(orNull(check.schema), (value, all) => (value === null ? null : check(value, all)), { takesNull: true });

const isAbsent = (check: Check<unknown>, value: unknown): boolean => value === undefined || (value === null && !check.takesNull);
const orNull = ({ default: _, ...schema }: JsonSchema): JsonSchema =>
  typeof schema["type"] === "string" ? { ...schema, type: [schema["type"], "null"] } : { anyOf: [schema, { type: "null" }] };

type ByType = { readonly [type in "string" | "array" | "object"]?: Check<unknown> };
/** Different checks for different JSON types: `byType({ string: ..., array: ... })`; faults keep their exact path. */
export function byType<const C extends ByType>(checks: C): Check<Infer<C[keyof C]>> {
  const given: ByType = checks;
  const expected = Object.keys(given).map((name) => `${name === "string" ? "a" : "an"} ${name}`).join(" or ");
  return make({ anyOf: Object.values(given).map((check) => check.schema) }, (value, all) => {
    const kind = Array.isArray(value) ? "array" : isObject(value) ? "object" : typeof value === "string" ? "string" : undefined;
    const check = kind && given[kind];
    return check ? (check(value, all) as Infer<C[keyof C]>) : wrongType(expected, value);
  });
}

/** A further rule on the typed value; it returns the value (or a better one) or calls `fail`. */
export function refine<T, U>(check: Check<T>, rule: (value: T) => U, extra: JsonSchema = {}): Check<U> {
  const { optional = false, takesNull = false } = check;
  return make({ ...check.schema, ...extra }, (value, all) => rule(check(value, all)), { optional, takesNull });
}

/** Takes the value if it passes, else does as if it were absent: for fields that must never be an error. */
export const lenient = <T>(check: Check<T>): Check<T | undefined> =>
  make({}, (value) => {
    try {
      return check(value);
    } catch {
      return undefined;
    }
  }, { optional: true });

/** Any JSON object, passed on as it is. Bounded in depth: JSON.stringify recurses, and would exhaust the stack. */
export function jsonObject(maxDepth = 100): Check<Record<string, unknown>> {
  const tooDeep = (value: unknown, depth: number): boolean => {
    if (typeof value !== "object" || value === null) return false;
    return depth === 0 || Object.values(value).some((child) => tooDeep(child, depth - 1));
  };
  return make({ type: "object" }, (value) => {
    if (!isObject(value)) return wrongType("an object", value);
    return tooDeep(value, maxDepth) ? fail("invalid_value", `expected at most ${maxDepth} levels of nesting`) : value;
  });
}

/** A tagged union: the string field `tag` says which check applies to the whole object. */
export function variant<V extends Fields>(tag: string, variants: V): Check<Infer<V[keyof V]>> {
  const tags = Object.keys(variants);
  const tagCheck = object({ [tag]: literal(...tags) });
  const schemas = tags.map((name) => {
    const { properties, required, ...schema } = variants[name]!.schema as { properties?: object; required?: string[] };
    return { ...schema, properties: { [tag]: { const: name }, ...properties }, required: [tag, ...(required ?? [])] };
  });
  return make({ anyOf: schemas }, (value, all) => variants[tagCheck(value)[tag]!]!(value, all) as Infer<V[keyof V]>);
}
