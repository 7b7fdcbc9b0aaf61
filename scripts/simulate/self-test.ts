// Proves that the simulation can fail: plants each bug of bugs.ts in the sources, and runs seeds
// until one notices it.

import { BUGS, type Bug } from "./bugs.ts";
import { bundleActors, bundleGateway } from "./bundles.ts";
import type { Bundle } from "./process.ts";
import { simulate } from "./run.ts";

/** Each bug is found within so many seeds. */
const SEEDS = 40;
const REQUESTS = 80;

/** The first seed that notices a bug. Undefined: none does. */
async function found(bug: Bug, actors: Bundle): Promise<number | undefined> {
  const bundles = { gateway: await bundleGateway([bug]), actors };
  for (let seed = 1; seed <= SEEDS; seed += 1) {
    const options = { seed, requests: REQUESTS, bundles, only: bug.faults ?? [] };
    const { violations } = await simulate(options);
    if (violations.length > 0) {
      console.log(`found with seed ${seed}: ${bug.name}: ${violations[0]!.slice(0, 150)}`);
      return seed;
    }
  }
  console.log(`NOT FOUND within ${SEEDS} seeds: ${bug.name}`);
  return undefined;
}

/** Returns how many of the bugs were not found. `only`: a part of a bug's name. */
export async function selfTest(only = ""): Promise<number> {
  const actors = await bundleActors();
  const bugs = BUGS.filter(({ name }) => name.includes(only));
  let missed = 0;
  for (const bug of bugs) if ((await found(bug, actors)) === undefined) missed += 1;
  console.log(`${bugs.length} bugs were planted, ${missed} of them not found`);
  return missed;
}
