// What the judge has compared, and what was not as it must be.

import { isDeepStrictEqual } from "node:util";

export interface Findings {
  /** One comparison. `violation` says what is wrong, and is asked for only then. */
  check(right: boolean, violation: () => string): void;
  /** Compares two values of JSON; amounts may be BigInts. */
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
      const isRight = isDeepStrictEqual(actual, expected);
      check(isRight, () => `${what}: ${difference(textOf(actual), textOf(expected))}`);
    },
    comparisons: () => comparisons,
    violations,
  };
}
