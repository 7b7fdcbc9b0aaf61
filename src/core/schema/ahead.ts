// Checks the elements of a long list in steps, before the value that holds the list: a single check
// cannot pause. The check of the whole value then reuses their results.
import type { Steps } from "../turns.ts";
import { makeCheck, ValidationError, type Check } from "./check.ts";

/** Elements that are checked between two `yield`s. */
const ELEMENTS_A_STEP = 50;

const NONE: ReadonlyMap<unknown, unknown> = new Map();

/** Results by element. Empty except while the check of the whole value runs. */
let checkedAhead = NONE;

/** A check of elements that reuses the result of an element that was checked ahead. */
export const withCheckedAhead = <T>(check: Check<T>): Check<T> =>
  makeCheck(
    check.schema,
    (value, all) => (checkedAhead.has(value) ? (checkedAhead.get(value) as T) : check(value, all)),
    check,
  );

/**
 * Checks a value in steps: first the elements of `list`, a long list in it, then the whole value.
 * Returns and throws what `whole(value)` alone would. The first invalid element ends the steps:
 * `whole` reports it.
 */
export function* checkInSteps<T>(
  whole: Check<T>,
  value: unknown,
  list: unknown,
  element: Check<unknown>,
): Steps<T> {
  const checked = new Map<unknown, unknown>();
  try {
    for (const [index, item] of Array.isArray(list) ? list.entries() : []) {
      checked.set(item, element(item));
      if (index % ELEMENTS_A_STEP === 0) yield;
    }
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error;
  }
  checkedAhead = checked;
  try {
    return whole(value);
  } finally {
    checkedAhead = NONE;
  }
}
