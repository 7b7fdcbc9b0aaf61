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

/** Tries each spoil on a copy of each phase. `tell` hears of each. */
export function selfTest(houses: readonly House[], tell: (text: string) => void): SelfTest {
  const missed: string[] = [];
  let found = 0;
  for (const { name, by, apply } of SPOILS) {
    let tried = 0;
    let words = "";
    for (const house of houses) {
      const copy = structuredClone(house);
      if (!apply(copy)) continue;
      tried += 1;
      const violation = judge(copy).violations.find((each) => by.test(each));
      words ||= violation?.slice(0, 160) ?? "";
      if (violation !== undefined) found += 1;
      else missed.push(`${house.phase}: ${name}`);
    }
    if (tried === 0) missed.push(`${name}: there was nothing to spoil`);
    tell(`spoilt: ${name}: tried in ${tried} of ${houses.length} phases, found as: ${words}`);
  }
  return { found, missed };
}
