// Sends the built gateway a hundred thousand mutated HTTP requests over raw sockets, and reads its
// answers strictly: `npm run build && node --import tsx scripts/fuzz.ts [--cases 100000] [--seed N]
// [--gateway FILE] [--workers 1] [--only 7,8]`. Loopback only; bounded in count, concurrency and
// time. It holds if every answer is well-formed and none a 5xx (fuzz/judge.ts), the server ends
// every connection that it has to, /healthz answers throughout, memory stays flat, nothing is
// unhandled, and the books are right at the end. Exit 1 otherwise, with the seed, the number and
// the bytes of the case; `--only` sends it again, several one after the other. `--self-test` proves
// that the judge notices a server that answers wrongly.

import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { within } from "../test/support/wait.ts";
import { isIdleSoon, startFuzzed, type Fuzzed } from "./fuzz/gateway.ts";
import { createRun, type Run } from "./fuzz/run.ts";
import { selfTest } from "./fuzz/self-test.ts";
import { startWatch } from "./fuzz/watch.ts";

const CONCURRENCY = 192;
const MAX_MS = 900_000;

const { values } = parseArgs({
  options: {
    cases: { type: "string", default: "100000" },
    seed: { type: "string" },
    gateway: { type: "string", default: "dist/chat-gateway.mjs" },
    workers: { type: "string", default: "1" },
    only: { type: "string" },
    "self-test": { type: "boolean", default: false },
  },
});

const hasEnded = ({ child }: Fuzzed): boolean =>
  child.exitCode !== null || child.signalCode !== null;

async function fuzz(): Promise<string[]> {
  const only = values.only?.split(",").map(Number);
  const cases = only?.length ?? Math.min(5_000_000, Number(values.cases));
  const seed = Number(values.seed ?? Date.now() % 1_000_000);
  const file = values.gateway;
  if (!existsSync(file)) throw new Error(`there is no ${file}: run npm run build`);
  console.log(`fuzz: ${cases} cases, seed ${seed}, Node ${process.version}`);
  const folder = mkdtempSync(join(tmpdir(), "fuzz-"));
  const fuzzed = await startFuzzed(file, folder, Number(values.workers));
  const { child, publicPort, adminPort } = fuzzed;
  const startedAt = performance.now();
  const faults: string[] = [];
  const fault = (text: string) => {
    faults.push(text);
  };
  const goesOn = () => faults.length === 0 && !hasEnded(fuzzed);
  const run = createRun({ seed, only, cases, publicPort, adminPort, goesOn, fault });
  const watch = startWatch({ pid: child.pid!, publicPort, cases, begun: run.begun, fault });
  const late = setTimeout(() => {
    fault(`not through after ${MAX_MS} ms`);
    child.kill("SIGKILL");
  }, MAX_MS);
  child.once("exit", run.suspect);
  await Promise.all(Array.from({ length: only ? 1 : CONCURRENCY }, run.work));
  watch.stop();
  clearTimeout(late);
  const seconds = (performance.now() - startedAt) / 1000;

  const crashed = await endOf(fuzzed, fault);
  if (crashed !== undefined) {
    // The other faults are of the connections that it has broken off.
    if (!only) faults.length = 0;
    const again = `--seed ${seed} --only ${run.suspects().join()}`;
    faults.unshift(`${crashed}; one of the cases that were under way did it: ${again}`);
  }
  const { code, stdout: said } = await fuzzed.audit();
  if (code !== 0) fault(`the books are wrong; they are in ${folder}\n${said}`);
  else rmSync(folder, { recursive: true });
  for (const complaint of fuzzed.complaints.slice(0, 10))
    fault(`unexpected in its logs: ${complaint}`);

  const { probes, slowestMs } = watch.health();
  const memory = watch.memory();
  printCounts(run);
  console.log(
    `  /healthz was asked ${probes} times meanwhile, the slowest answer took ${slowestMs.toFixed(0)} ms; ${said.trim().replaceAll("\n", "; ")}`,
  );
  console.log(
    `fuzz: ${run.begun()} cases in ${seconds.toFixed(0)} s, seed ${seed}: ${classesOf(run)}; memory ${memory}`,
  );
  return faults;
}

/** Ends the gateway. Resolves with how it ended before, if it did. */
async function endOf(fuzzed: Fuzzed, fault: (text: string) => void): Promise<string | undefined> {
  const { child, ended, adminPort } = fuzzed;
  const isIdle = await isIdleSoon(adminPort).catch(() => false);
  if (!isIdle) await within(ended, "its end, if that is why", 2_000).catch(() => undefined);
  if (hasEnded(fuzzed)) return `the gateway ended with ${child.exitCode ?? child.signalCode}`;
  if (!isIdle) fault("requests are still in flight");
  child.kill("SIGTERM");
  const end = await within(ended, "the end after SIGTERM", 60_000).catch(() => undefined);
  if (end?.code !== 0) fault(`after SIGTERM it ended with ${end?.code}`);
  return undefined;
}

function printCounts({ counts }: Run): void {
  for (const [what, times] of [...counts].sort())
    console.log(`  ${String(times).padStart(8)}  ${what}`);
}

/** How many answers there were of each class of statuses. */
function classesOf({ counts }: Run): string {
  const beginningWith = (digit: string) =>
    [...counts].reduce((sum, [what, times]) => sum + (what.startsWith(digit) ? times : 0), 0);
  const classes = ["2", "4", "5"].map((digit) => `${beginningWith(digit)} ${digit}xx`);
  const cut = counts.get("closed without an answer") ?? 0;
  return `${classes.join(", ")}, ${cut} closed without an answer`;
}

const isSelfTest = values["self-test"];
const faults = isSelfTest ? await selfTest() : await fuzz();
for (const fault of faults.slice(0, 5)) console.log(`FAILED: ${fault}`);
const verdict = faults.length === 0 ? "each wrong answer was noticed, and no right one" : "failed";
if (isSelfTest) console.log(`self-test: ${verdict}`);
process.exitCode = faults.length === 0 ? 0 : 1;
