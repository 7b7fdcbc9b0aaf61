// Attacks the built gateway as hostile clients do: with mutated HTTP requests over raw sockets
// (fuzz/mutated.ts), with crowds, streams that nobody reads and JSON that costs more than it is long
// (fuzz/crowds.ts): `npm run build && node --import tsx scripts/fuzz.ts [--cases 100000]
// [--scale 1] [--seed N] [--case 7,8]`.
// Loopback only; bounded in count, concurrency and time: some four minutes in all.
//
// It passes if every answer is well-formed and right (fuzz/judge.ts), and if each attack leaves
// unchanged what it must (fuzz/attack.ts). Otherwise it exits with 1 and prints the reasons: for a
// mutated request its seed, number and bytes; `--case` sends it again, several one after the other.
// First it proves that the judge notices a server that answers wrongly.

import { existsSync } from "node:fs";
import { parseArgs } from "node:util";
import { leaveCore, MACHINE } from "./bench/targets.ts";
import { createProbe } from "../test/support/probe.ts";
import { play } from "./fuzz/attack.ts";
import { startCrowds } from "./fuzz/crowds.ts";
import { mutatedRequests } from "./fuzz/mutated.ts";
import { selfTest } from "./fuzz/self-test.ts";

const { values } = parseArgs({
  options: {
    cases: { type: "string", default: "100000" },
    scale: { type: "string", default: "1" },
    seed: { type: "string" },
    case: { type: "string" },
  },
});

const FILE = "dist/chat-gateway.mjs";

async function attackAll(): Promise<string[]> {
  const only = values.case?.split(",").map(Number);
  const mutated = mutatedRequests({
    seed: Number(values.seed ?? Date.now() % 1_000_000),
    cases: only?.length ?? Math.min(5_000_000, Number(values.cases)),
    only,
  });
  const ends: (() => unknown)[] = [];
  const scope = { after: (end: () => unknown) => ends.push(end) };
  const crowds = await startCrowds(scope, Math.min(1, Number(values.scale)));
  const faults: string[] = [];
  try {
    for (const attack of only ? [mutated] : [mutated, ...crowds]) {
      const began = performance.now();
      const { told, faults: found } = await play(attack, FILE, probe).catch(({ stack }: Error) => ({
        told: "broken off",
        faults: [`${attack.name}: ${stack}`],
      }));
      faults.push(...found);
      const took = ((performance.now() - began) / 1000).toFixed(1);
      const verdict = `${found.length === 0 ? "holds" : "FAILED"} after ${took} s`;
      console.log(`  ${attack.name}: ${verdict}\n    ${told}`);
    }
  } finally {
    for (const end of ends) await end();
  }
  return faults;
}

if (!existsSync(FILE)) throw new Error(`there is no ${FILE}: npm run build`);
const probe = createProbe(); // before the load has a core of its own
console.log(`fuzz: ${MACHINE}, ${leaveCore("the gateway and for its clients")}`);
const missed = await selfTest();
const verdict = missed.length === 0 ? "each wrong answer was noticed, and no right one" : "failed";
console.log(`  self-test: ${verdict}`);
const faults = missed.length > 0 ? missed : await attackAll();
probe.end();
for (const fault of faults.slice(0, 10)) console.log(`FAILED: ${fault}`);
console.log(`fuzz: ${faults.length === 0 ? "passed" : "failed"}`);
process.exitCode = faults.length === 0 ? 0 : 1;
