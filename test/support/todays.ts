// Of cases that are much alike and each take long, the usual run tries some: others each day. All of
// them are tried where LONG_TESTS is set; .ci/run divides long lists among its parts instead.

import { LONG, PART } from "./long.ts";

const day = Math.floor(Date.now() / 86_400_000);

/** One of every `share` cases; at least one. */
export function todays<T>(cases: readonly T[], share: number): readonly T[] {
  if (PART && cases.length > PART.of)
    return cases.filter((_, at) => at % PART!.of === PART!.number - 1);
  if (LONG) return cases;
  const step = Math.min(share, cases.length);
  return cases.filter((_, at) => (at + day) % step === 0);
}
