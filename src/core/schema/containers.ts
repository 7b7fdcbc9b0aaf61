// Checks of values with members: arrays, objects, dictionaries, objects of any shape, and unions.
// The path of an issue in a member begins with the member's index or name.
import {
  fail,
  isObject,
  makeCheck,
  nounOf,
  typed,
  typeOf,
  ValidationError,
  wrongType,
  type Check,
  type Checked,
  type Fields,
  type Infer,
  type ValidationIssue,
} from "./check.ts";
import { literal } from "./scalars.ts";

/**
 * Calls `checkMember` with the index or name of each member of a container. Throws a
 * ValidationError with the issues of the first invalid member, or of all invalid members if `all`.
 */
export function checkMembers<S extends string | number>(
  members: readonly S[],
  all: boolean | undefined,
  checkMember: (member: S) => unknown,
): void {
  const issues: ValidationIssue[] = [];
  for (const member of members) {
    try {
      checkMember(member);
    } catch (error) {
      if (!(error instanceof ValidationError)) throw error;
      // Pushed one by one: there may be more issues than a call can have arguments.
      for (const issue of error.issues) issues.push({ ...issue, path: [member, ...issue.path] });
      if (!all) break;
    }
  }
  if (issues.length > 0) throw new ValidationError(issues);
}

/** An object used as a dictionary. Returns a Map, which takes `__proto__` like any other name. */
export const record = <T>(check: Check<T>): Check<Map<string, T>> =>
  typed("object", { additionalProperties: check.schema }, (value, all) => {
    const checked = new Map<string, T>();
    checkMembers(Object.keys(value), all, (name) => {
      if (!/^[^\0\p{Cs}]+$/u.test(name))
        fail("invalid_value", "expected a name, neither empty nor with NUL or half of a character");
      checked.set(name, check(value[name], all));
    });
    return checked;
  });

interface ArrayRules {
  /** The fewest elements. Absent: 0. */
  readonly min?: number;
  /** The most elements. Absent: any number. */
  readonly max?: number;
}

/** Returns a new array of the checked elements. */
export function array<T>(item: Check<T>, { min = 0, max = Infinity }: ArrayRules = {}): Check<T[]> {
  const bounds = { ...(min > 0 && { minItems: min }), ...(max !== Infinity && { maxItems: max }) };
  const least = `at least ${min} element${min === 1 ? "" : "s"}`;
  return typed("array", { items: item.schema, ...bounds }, (value, all) => {
    const { length } = value;
    const expected = length < min ? least : `at most ${max} elements`;
    if (length < min || length > max) fail("invalid_value", `expected ${expected}, got ${length}`);
    const checked: T[] = [];
    checkMembers([...value.keys()], all, (index) => checked.push(item(value[index], all)));
    return checked;
  });
}

interface ObjectRules {
  /** Whether unknown fields are issues. Absent: they are dropped (contract.md "Request fields"). */
  readonly strict?: boolean;
}

/** Returns a new object that has only the known fields. */
export function object<F extends Fields>(fields: F, { strict = false }: ObjectRules = {}) {
  const checks = new Map(Object.entries(fields));
  const names = [...checks.keys()];
  const required = names.filter((name) => !fields[name]!.optional);
  const properties = Object.fromEntries(names.map((name) => [name, fields[name]!.schema]));
  const schema = {
    properties,
    ...(required.length > 0 && { required }),
    ...(strict && { additionalProperties: false }),
  };
  // Copying an object that has all members is faster than adding them one by one.
  const blank = Object.fromEntries(names.map((name) => [name, undefined]));
  return typed("object", schema, (value, all) => {
    const checked: Record<string, unknown> = { ...blank };
    const present = strict ? [...new Set([...names, ...Object.keys(value)])] : names;
    checkMembers(present, all, (name) => {
      const check =
        checks.get(name) ??
        fail("invalid_value", `is not a known field; known here: ${names.join(", ")}`);
      const member = Object.hasOwn(value, name) ? value[name] : undefined;
      if (member === undefined && !check.optional)
        fail("missing_required_parameter", "is required");
      checked[name] = check(member, all);
    });
    return checked as Checked<F>;
  });
}

/** The most levels of nesting. JSON.stringify is recursive: more could exhaust the stack. */
const MAX_DEPTH = 100;

/**
 * Counts a JSON value and all values in it. Stops soon after `max`. Returns Infinity if the value
 * has more than `depth` levels.
 */
export function countValues(value: unknown, max: number, depth = MAX_DEPTH): number {
  if (typeof value !== "object" || value === null) return 1;
  if (depth === 0) return Infinity;
  let count = 1;
  for (const child of Object.values(value)) {
    count += countValues(child, max - count, depth - 1);
    if (count > max) break;
  }
  return count;
}

/** Bounds on the work that one object can cause. */
interface JsonObjectRules {
  /** The most values in the object. Absent: any number. */
  readonly maxValues?: number;
  /** The most characters of its JSON text. Absent: any number. */
  readonly maxChars?: number;
}

/** Any JSON object, returned unchanged, such as the schema of a client's tool. */
export function jsonObject(rules: JsonObjectRules = {}): Check<Record<string, unknown>> {
  const { maxValues = Infinity, maxChars = Infinity } = rules;
  return typed("object", {}, (value) => {
    const count = countValues(value, maxValues);
    if (count === Infinity)
      return fail("invalid_value", `expected at most ${MAX_DEPTH} levels of nesting`);
    if (count > maxValues) return fail("invalid_value", `expected at most ${maxValues} values`);
    if (maxChars < Infinity && JSON.stringify(value).length > maxChars)
      return fail("invalid_value", `expected at most ${maxChars} characters of JSON`);
    return value;
  });
}

/** Applies the check whose name `choose` returns. */
const oneOf = <C extends Fields>(
  checks: C,
  choose: (value: unknown) => string,
): Check<Infer<C[keyof C]>> =>
  makeCheck(
    { anyOf: Object.values(checks).map(({ schema }) => schema) },
    (value, all) => checks[choose(value)]!(value, all) as Infer<C[keyof C]>,
  );

/** A union of JSON types, with one check for each type: `byType({ string: ..., array: ... })`. */
export function byType<C extends Fields>(checks: C): Check<Infer<C[keyof C]>> {
  const expected = Object.keys(checks).map(nounOf).join(" or ");
  return oneOf(checks, (value) =>
    typeOf(value) in checks ? typeOf(value) : wrongType(expected, value),
  );
}

/**
 * A tagged union of objects: the string field `tag` names the check to apply. Each of these checks
 * has the field too.
 */
export function variant<V extends Fields>(tag: string, variants: V): Check<Infer<V[keyof V]>> {
  const tagCheck = object({ [tag]: literal(...Object.keys(variants)) });
  return oneOf(variants, (value) => {
    const name = isObject(value) ? value[tag] : undefined;
    const isKnown = typeof name === "string" && Object.hasOwn(variants, name);
    return isKnown ? name : tagCheck(value)[tag]!;
  });
}
