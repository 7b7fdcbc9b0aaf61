// The assertions of the checks, their error class, and waiting with a deadline.

import { find, holds, wordsOf, type Expected, type Fields } from "./shapes.ts";

/** A check found a violation of its rule. */
export class Expectation extends Error {
  readonly expected: string;
  readonly got: string;
  constructor(expected: string, got: unknown) {
    const text = typeof got === "string" ? got : (JSON.stringify(got) ?? "nothing");
    super(`expected ${expected}, got ${text}`);
    this.expected = expected;
    this.got = text.length > 300 ? `${text.slice(0, 300)}...` : text;
  }
}

/** Throws unless a condition `holds`. */
export function that(holds: boolean, expected: string, got: unknown): asserts holds {
  if (!holds) throw new Expectation(expected, got);
}

/** All values at a path must be as expected. */
export function field(root: unknown, path: string, expected: Expected): void {
  for (const found of find(root, path))
    that(holds(expected, found), `${found.path} to be ${wordsOf(expected)}`, found.value);
}
/** All values at several paths must be as expected, and each path must exist. */
export function fields(root: unknown, fields: Fields): void {
  for (const [path, expected] of Object.entries(fields)) {
    that(find(root, path).length > 0, `${path} to be ${wordsOf(expected)}`, root);
    field(root, path, expected);
  }
}
/** Two values must be the same as JSON. */
export const same = (got: unknown, expected: unknown): void => {
  const text = JSON.stringify(expected);
  that(JSON.stringify(got) === text, text, got);
};

/** A wait counts down in steps, so that a pause of this process counts as one step only. */
const STEPS = 50;

/** The promise's value. Rejects after `ms`. `giveUp` is called on any error. */
export async function within<T>(
  promise: Promise<T>,
  what: string,
  ms: number,
  giveUp?: () => void,
): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    let left = STEPS;
    timer = setTimeout(() => {
      left -= 1;
      if (left > 0) timer?.refresh();
      else reject(new Error(`waited ${ms} ms for ${what}`));
    }, ms / STEPS);
  });
  try {
    return await Promise.race([promise, late]);
  } catch (error) {
    giveUp?.();
    throw error;
  } finally {
    clearTimeout(timer);
  }
}
