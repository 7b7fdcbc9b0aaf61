// Proves that the simulation can fail: plants each bug of bugs.ts in the sources, and runs seeds
// until one notices it. The same seed must notice nothing in the sources as they are.

import { BUGS, type Bug } from "./bugs.ts";
import { bundleActors, bundleGateway } from "./bundles.ts";
import type { Bundles } from "./installation.ts";
import { simulate } from "./run.ts";

/** Each bug is found within so many seeds. */
const SEEDS = 40;
const REQUESTS = 80;

/** Whether a seed notices a bug, and nothing without it. */
async function isFound(bug: Bug, sound: Bundles): Promise<boolean> {
  const planted = { ...sound, gateway: await bundleGateway([bug]) };
  for (let seed = 1; seed <= SEEDS; seed += 1) {
    const options = { seed, requests: REQUESTS, only: bug.faults ?? [] };
    const { violations } = await simulate({ ...options, bundles: planted });
    if (violations.length === 0) continue;
    const without = await simulate({ ...options, bundles: sound });
    const isSound = without.violations.length === 0;
    const state = isSound ? "found" : "SOMETHING ELSE IS WRONG";
    const shown = [violations, without.violations].map((each) => (each[0] ?? "").slice(0, 150));
    console.log(`${state} with seed ${seed}: ${bug.name}: ${shown[isSound ? 0 : 1]}`);
    return isSound;
  }
  console.log(`NOT FOUND within ${SEEDS} seeds: ${bug.name}`);
  return false;
}

/**
 * Returns how many of the bugs were not found. `only`: a part of a bug's name. Of those that have
 * it, every one whose place among `parts` is that of `part`, from 1, is planted.
 */
export async function selfTest(
  only = "",
  { part, parts } = { part: 1, parts: 1 },
): Promise<number> {
  const sound = { gateway: await bundleGateway(), actors: await bundleActors() };
  const named = BUGS.filter(({ name }) => name.includes(only));
  const bugs = named.filter((_bug, index) => index % parts === part - 1);
  let missed = 0;
  for (const bug of bugs) if (!(await isFound(bug, sound))) missed += 1;
  console.log(`${bugs.length} bugs were planted, ${missed} of them not found`);
  return missed;
}
