// The self-test: spoils what was collected, in one way at a time, and looks whether the judge finds
// it. A judge that finds nothing wrong with any books would be of no use.

import type { House } from "./house.ts";
import { judge } from "./judge.ts";
import { SPOILS } from "./spoils.ts";

export interface SelfTest {
  /** How often a spoil was tried and found. */
  readonly found: number;
  /** What was spoilt, and not found. */
  readonly missed: readonly string[];
}

/**
 * Tries each spoil on a copy of a phase: of another one for each, and, by `seed`, in each run.
 * `tell` hears of each.
 */
export function selfTest(
  houses: readonly House[],
  seed: number,
  tell: (text: string) => void,
): SelfTest {
  const missed: string[] = [];
  let found = 0;
  for (const [at, { name, by, apply }] of SPOILS.entries()) {
    const first = (seed + at) % houses.length;
    const spoilt = spoiltOf([...houses.slice(first), ...houses.slice(0, first)], apply);
    const violation = spoilt && judge(spoilt).violations.find((each) => by.test(each));
    if (violation !== undefined) found += 1;
    else missed.push(spoilt ? `${spoilt.phase}: ${name}` : `${name}: there was nothing to spoil`);
    tell(`spoilt in ${spoilt?.phase}: ${name}: found as: ${violation?.slice(0, 160)}`);
  }
  return { found, missed };
}

/** A copy of the first phase in which there was something to spoil, spoilt. */
function spoiltOf(houses: readonly House[], apply: (house: House) => boolean): House | undefined {
  for (const house of houses) {
    const copy = structuredClone(house);
    if (apply(copy)) return copy;
  }
  return undefined;
}
