// Simulates gateways from seeds: one number determines clock, network, disk, chance and other
// processes, so a run that fails can be repeated event by event. `npm run --silent simulate --
// --seeds 100`
//
// The manual's page "simulation" has the options, and says how to find a bug with it. The exit code
// is 1 if a run finds a violation, or if the self-test does not find a bug.

import { parseArgs } from "node:util";
import { selfTest } from "./simulate/bugs.ts";
import { FAULTS, LASTING } from "./simulate/faults.ts";
import { bundleActors, bundleGateway } from "./simulate/process.ts";
import { type Outcome, simulate } from "./simulate/run.ts";

const { values } = parseArgs({
  options: {
    seed: { type: "string", default: "1" },
    seeds: { type: "string" },
    minutes: { type: "string" },
    requests: { type: "string", default: "100" },
    only: { type: "string" },
    trace: { type: "boolean", default: false },
    "self-test": { type: "boolean", default: false },
    bug: { type: "string" },
    part: { type: "string", default: "1/1" },
  },
});

function numberOf(name: "seed" | "seeds" | "minutes" | "requests", least: number): number {
  const value = Number(values[name]);
  if (!(value >= least)) throw new Error(`--${name} must be a number from ${least} on`);
  return value;
}

function faultsOf(text: string | undefined): readonly string[] | undefined {
  const names = text?.split(",").filter((name) => name !== "");
  const known: readonly string[] = [...FAULTS.keys(), ...LASTING];
  const unknown = names?.find((name) => !known.includes(name));
  if (unknown !== undefined) throw new Error(`no fault is called ${unknown}: ${known.join(", ")}`);
  return names;
}

function report(seed: number, outcome: Outcome): void {
  const { faults, requests, steps, fingerprint, violations, lastLines } = outcome;
  const state = violations.length === 0 ? "passed" : "FAILED";
  const about = `${requests} requests, ${steps} events, ${fingerprint}`;
  console.log(`seed ${seed} ${state}: ${about}; faults: ${faults.join(", ") || "none"}`);
  if (violations.length === 0) return;
  console.log(`\nThe last ${lastLines.length} events of step ${steps}:\n${lastLines.join("\n")}\n`);
  for (const violation of violations.slice(0, 20)) console.log(`seed ${seed}: ${violation}`);
}

/** Runs one seed after another. Returns the number of seeds that failed. */
async function runSeeds(): Promise<number> {
  const bundles = { gateway: await bundleGateway(), actors: await bundleActors() };
  const first = numberOf("seed", 0);
  const until = values.minutes ? Date.now() + numberOf("minutes", 0) * 60_000 : undefined;
  const most = until === undefined ? 1 : Infinity;
  const count = values.seeds ? numberOf("seeds", 1) : most;
  let failed = 0;
  let requests = 0;
  let seed = first;
  for (; seed < first + count && !(until !== undefined && Date.now() > until); seed += 1) {
    const outcome = await simulate({
      seed,
      requests: numberOf("requests", 1),
      bundles,
      only: faultsOf(values.only),
      trace: values.trace ? console.log : undefined,
    });
    report(seed, outcome);
    requests += outcome.requests;
    if (outcome.violations.length > 0) failed += 1;
  }
  console.log(`${requests} requests over ${seed - first} seeds: ${failed} seeds failed`);
  return failed;
}

const failed = values["self-test"] ? await selfTest(values.bug, values.part) : await runSeeds();
process.exitCode = failed === 0 ? 0 : 1;
