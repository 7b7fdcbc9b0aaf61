// Attacks the built gateway as hostile clients do: with mutated HTTP requests over raw sockets
// (fuzz/mutated.ts), and with thousands of connections, streams that nobody reads and JSON that is
// expensive to process (fuzz/load-attacks.ts): `npm run build && node --import tsx scripts/fuzz.ts
// [--cases 100000] [--scale 1] [--seed N] [--case 7,8]`. Loopback only; bounded in count,
// concurrency and time: some four minutes in all.
//
// It passes if every answer is well-formed and correct (fuzz/judge.ts), and if the gateway survives
// each attack within its bounds (fuzz/attack.ts). Otherwise it exits with 1 and prints the reasons:
// for a mutated request its seed, number and bytes. `--case` repeats cases one after another. First
// a self-test proves that the judge finds wrong answers.

import { existsSync } from "node:fs";
import { parseArgs } from "node:util";
import { leaveCore, MACHINE } from "./bench/targets.ts";
import { createProbe } from "../test/support/probe.ts";
import { runAttack } from "./fuzz/attack.ts";
import { startLoadAttacks } from "./fuzz/load-attacks.ts";
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
  const loadAttacks = await startLoadAttacks(scope, Math.min(1, Number(values.scale)));
  const faults: string[] = [];
  try {
    for (const attack of only ? [mutated] : [mutated, ...loadAttacks]) {
      const began = performance.now();
      const { summary, faults: found } = await runAttack(attack, FILE, probe).catch(
        ({ stack }: Error) => ({
          summary: "broken off",
          faults: [`${attack.name}: ${stack}`],
        }),
      );
      faults.push(...found);
      const took = ((performance.now() - began) / 1000).toFixed(1);
      const verdict = `${found.length === 0 ? "holds" : "FAILED"} after ${took} s`;
      console.log(`  ${attack.name}: ${verdict}\n    ${summary}`);
    }
  } finally {
    for (const end of ends) await end();
  }
  return faults;
}

if (!existsSync(FILE)) throw new Error(`there is no ${FILE}: npm run build`);
const probe = createProbe(); // before the load has a core of its own
console.log(`fuzz: ${MACHINE}, ${leaveCore("the gateway and for its clients")}`);
const mistakes = await selfTest();
const verdict =
  mistakes.length === 0 ? "each wrong answer was noticed, and no right one" : "failed";
console.log(`  self-test: ${verdict}`);
const faults = mistakes.length > 0 ? mistakes : await attackAll();
probe.end();
for (const fault of faults.slice(0, 10)) console.log(`FAILED: ${fault}`);
console.log(`fuzz: ${faults.length === 0 ? "passed" : "failed"}`);
process.exitCode = faults.length === 0 ? 0 : 1;
