// Of cases that are much alike and each take long, the usual run tries some: others each day, and
// all of them where LONG_TESTS is set, as .ci/run does.

import { LONG } from "./long.ts";

const day = Math.floor(Date.now() / 86_400_000);

/** One of every `share` cases; at least one. */
export function todays<T>(cases: readonly T[], share: number): readonly T[] {
  if (LONG) return cases;
  const step = Math.min(share, cases.length);
  return cases.filter((_, at) => (at + day) % step === 0);
}
