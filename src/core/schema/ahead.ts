// The elements of a long list, checked ahead of the value that holds the list: in steps, because
// one check cannot be interrupted. The check of the whole then finds them done.
import type { Steps } from "../turns.ts";
import { makeCheck, ValidationError, type Check } from "./check.ts";

/** Elements that are checked between two places where the work can stop. */
const ELEMENTS_A_STEP = 50;

const NONE: ReadonlyMap<unknown, unknown> = new Map();

/**
 * The results of elements that were checked ahead. Set while the check of the whole runs, and only
 * then.
 */
let passed = NONE;

/** The same check of an element. One that was checked ahead is not checked again. */
export const aheadOr = <T>(check: Check<T>): Check<T> =>
  makeCheck(
    check.schema,
    (value, all) => (passed.has(value) ? (passed.get(value) as T) : check(value, all)),
    check,
  );

/**
 * Checks a value in steps: the elements of `list` first, which is the list in it that may be long.
 * The result, and the issue that is thrown, are those of `whole`. Elements from the first that does
 * not pass are left to it.
 */
export function* checkInSteps<T>(
  whole: Check<T>,
  value: unknown,
  list: unknown,
  element: Check<unknown>,
): Steps<T> {
  const checked = new Map<unknown, unknown>();
  try {
    for (const [index, each] of Array.isArray(list) ? list.entries() : []) {
      checked.set(each, element(each));
      if (index % ELEMENTS_A_STEP === 0) yield;
    }
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error;
  }
  passed = checked;
  try {
    return whole(value);
  } finally {
    passed = NONE;
  }
}
