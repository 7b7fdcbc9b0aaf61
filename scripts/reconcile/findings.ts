// What the judge has compared, and what was not as it must be.

export interface Findings {
  /** One comparison. `violation` says what is wrong, and is asked for only then. */
  check(right: boolean, violation: () => string): void;
  /** Compares two values by their JSON; amounts are BigInts. */
  equal(actual: unknown, expected: unknown, what: string): void;
  comparisons(): number;
  readonly violations: readonly string[];
}

const textOf = (value: unknown): string =>
  JSON.stringify(value, (_, member) => (typeof member === "bigint" ? `${member} pico` : member)) ??
  "undefined";

/** Two texts from a little before the place where they begin to differ. */
function difference(one: string, other: string): string {
  let at = 0;
  while (at < one.length && one[at] === other[at]) at += 1;
  const from = Math.max(0, at - 80);
  return `${one.slice(from, at + 160)}, not ${other.slice(from, at + 160)}`;
}

export function createFindings(prefix: string): Findings {
  const violations: string[] = [];
  let comparisons = 0;
  const check = (right: boolean, violation: () => string): void => {
    comparisons += 1;
    if (!right) violations.push(`${prefix}: ${violation()}`);
  };
  return {
    check,
    equal(actual, expected, what) {
      const [one, other] = [textOf(actual), textOf(expected)];
      check(one === other, () => `${what}: ${difference(one, other)}`);
    },
    comparisons: () => comparisons,
    violations,
  };
}

/** A value with the members of its objects in one order: PostgreSQL has an order of its own. */
export function inOrder(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(inOrder);
  if (typeof value !== "object" || value === null) return value;
  const members = Object.entries(value).map(([name, member]) => [name, inOrder(member)] as const);
  return Object.fromEntries(members.sort(([a], [b]) => (a < b ? -1 : 1)));
}
