// Checks of arrays and objects. An issue below them comes out with its index or name in front of
// its path.
import {
  fail,
  ValidationError,
  type Check,
  type Fields,
  type Infer,
  type ValidationIssue,
} from "./check.ts";
import { typed } from "./typed.ts";

/**
 * Calls `checkMember` for each member of a container, by its index or name. Throws a
 * ValidationError with the issues of the first member that has some, or with those of every member
 * if `all`.
 */
function checkMembers<S extends string | number>(
  members: Iterable<S>,
  all: boolean | undefined,
  checkMember: (member: S) => unknown,
): void {
  const issues: ValidationIssue[] = [];
  for (const member of members) {
    try {
      checkMember(member);
    } catch (error) {
      if (!(error instanceof ValidationError)) throw error;
      // One by one: there may be more than a call can take as arguments.
      for (const issue of error.issues) issues.push({ ...issue, path: [member, ...issue.path] });
      if (!all) break;
    }
  }
  if (issues.length > 0) throw new ValidationError(issues);
}

interface ArrayRules {
  /** The fewest elements. Absent: 0. */
  readonly min?: number;
  /** The most elements. Absent: any number. */
  readonly max?: number;
}

/** Returns a new array of the checked elements. */
export function array<T>(item: Check<T>, { min = 0, max = Infinity }: ArrayRules = {}): Check<T[]> {
  const bounds = { ...(min > 0 && { minItems: min }), ...(max !== Infinity && { maxItems: max }) };
  return typed("array", { items: item.schema, ...bounds }, (value, all) => {
    const { length } = value;
    const least = `at least ${min} element${min === 1 ? "" : "s"}`;
    if (length < min) return fail("invalid_value", `expected ${least}, got ${length}`);
    if (length > max)
      return fail("invalid_value", `expected at most ${max} elements, got ${length}`);
    const checked: T[] = [];
    checkMembers(value.keys(), all, (index) => checked.push(item(value[index], all)));
    return checked;
  });
}

interface ObjectRules {
  /**
   * Whether other fields are issues, such as misspelt settings. Absent: they are left out (WIRE
   * 1.2).
   */
  readonly strict?: boolean;
}

/** Returns a new object with the known fields only. */
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
  return typed("object", schema, (value, all) => {
    const checked: Record<string, unknown> = {};
    const present = strict ? new Set([...names, ...Object.keys(value)]) : names;
    checkMembers(present, all, (name) => {
      const check =
        checks.get(name) ??
        fail("invalid_value", `is not a known field; known here: ${names.join(", ")}`);
      const member = Object.hasOwn(value, name) ? value[name] : undefined;
      if (member === undefined && !check.optional)
        fail("missing_required_parameter", "is required");
      checked[name] = check(member, all);
    });
    return checked as { -readonly [K in keyof F]: Infer<F[K]> };
  });
}

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
