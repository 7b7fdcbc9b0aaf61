// How long GET /v1/requests/{request_id} takes with millions of usage records in files: `npm run
// build && node --import tsx scripts/bench/receipts.ts`. Linux and loopback only. It writes usage
// records of several months, closes their days, starts the built gateway on them, and asks for
// receipts of random requests of any month, and for ids that nobody has used: one after the other
// with nothing else to do, then 50 a second between 50 chat requests a second and their syncs. Ten
// million records take 9 GB in the folder for temporary files, which are removed at the end.
// --records N how many usage records (10,000,000)

import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync, rmSync, statfsSync, statSync } from "node:fs";
import http from "node:http";
import { cpus, loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { parseArgs } from "node:util";
import { createRandom } from "../../test/support/random.ts";
import { bodyOf } from "./body.ts";
import { memoryOf, percentile, startLoad } from "./load.ts";
import { table } from "./table.ts";
import { pinned, scratch, type Target } from "./target.ts";
import { gateway, startProvider } from "./targets.ts";
import { ACCOUNTS, accountOf, closeAll, requestIdOf, writeRecords } from "./usage-records.ts";

const { values } = parseArgs({ options: { records: { type: "string", default: "10000000" } } });
const amount = { records: Number(values.records), months: 8 };
/** Each time. Every fifth is for an id that nobody has used. */
const LOOKUPS = 2_500;
/** More than a record takes, with its entry in the file of its month. */
const RECORD_BYTES = 1_100;
/** Between lookups under load: 2,500 lookups see ten syncs. */
const PACE_MS = 20;
/** Chat requests a second. */
const CHAT_RATE = 50;

const { between } = createRandom(Date.now());

const keyOf = (account: string): string => `sk-${account}`;
/** The load of the machine, of other processes too. */
const load = (): string => `load ${loadavg()[0]!.toFixed(1)}`;
const seconds = (since: number): string => `${((performance.now() - since) / 1000).toFixed(0)} s`;
const megabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(0)} MB`;

const agent = new http.Agent({ keepAlive: true });

/** An id, and whether somebody has used it. */
interface Lookup {
  readonly requestId: string;
  readonly account: string;
  readonly isKnown: boolean;
}

/** A known id of any month, or one that nobody has used. */
function drawLookup(isKnown: boolean): Lookup {
  const n = between(0, amount.records - 1);
  return { requestId: isKnown ? requestIdOf(n) : `no-${n}`, account: accountOf(n), isKnown };
}

/** How long the main thread of a process has waited for a core so far, in milliseconds. */
function waitedFor(pid: number): number {
  const [, nanoseconds] = readFileSync(`/proc/${pid}/task/${pid}/schedstat`, "utf8").split(" ");
  return Number(nanoseconds) / 1e6;
}

/** What a lookup took, in milliseconds. */
interface Took {
  readonly isKnown: boolean;
  readonly ms: number;
  /** Without the time in which the gateway's main thread was ready to run and no core was free. */
  readonly onCoreMs: number;
}

/** Throws if the answer is neither the receipt, nor a 404 for an unknown id. */
async function look(target: Target, { requestId, account, isKnown }: Lookup): Promise<Took> {
  const headers = { authorization: `Bearer ${keyOf(account)}` };
  const waited = waitedFor(target.pid);
  const began = performance.now();
  const req = http.get(`${target.url}/v1/requests/${requestId}`, { agent, headers });
  const [res] = (await once(req, "response")) as [http.IncomingMessage];
  const body = Buffer.concat(await res.toArray()).toString();
  const ms = performance.now() - began;
  const onCoreMs = Math.max(0, ms - (waitedFor(target.pid) - waited));
  const isRight = isKnown
    ? res.statusCode === 200 && body.includes(requestId)
    : res.statusCode === 404;
  if (!isRight) throw new Error(`${requestId}: ${res.statusCode} ${body.slice(0, 200)}`);
  return { isKnown, ms, onCoreMs };
}

async function lookAll(target: Target, paceMs: number): Promise<readonly Took[]> {
  const all: Took[] = [];
  for (let looks = 1; looks <= LOOKUPS; looks += 1) {
    const due = performance.now() + paceMs;
    all.push(await look(target, drawLookup(looks % 5 > 0)));
    if (paceMs > 0) await pause(Math.max(0, due - performance.now()));
  }
  return all;
}

/** Does work while the gateway passes on small chat requests. */
async function underLoad<T>(target: Target, work: () => Promise<T>): Promise<T> {
  const load = startLoad(target, bodyOf("bytes=300", target.model), {
    connections: 10,
    overallRate: CHAT_RATE,
    duration: 3_600,
  });
  const result = await work().finally(load.stop);
  const { non2xx, errors } = await load;
  if (non2xx + errors > 0) throw new Error(`${non2xx + errors} chat requests have failed`);
  return result;
}

/** The rows of found and of unknown ids. */
const rows = (what: string, all: readonly Took[]): string[][] =>
  [true, false].map((isKnown) => {
    const chosen = all.filter((took) => took.isKnown === isKnown);
    const times = chosen.map(({ ms }) => ms);
    const onCore = chosen.map(({ onCoreMs }) => onCoreMs);
    const figures = [
      ...[0.5, 0.99, 1].map((share) => percentile(times, share)),
      ...[0.99, 1].map((share) => percentile(onCore, share)),
    ];
    const name = `${what}, ${isKnown ? "found" : "unknown"}`;
    return [name, String(times.length), ...figures.map((ms) => ms.toFixed(1)), load()];
  });

async function measure(target: Target): Promise<void> {
  const heading = ["", "lookups", "p50", "p99", "worst", "p99 on core", "worst on core", "machine"];
  const idle = memoryOf(target.pid);
  const quiet = rows("quiet", await lookAll(target, 0));
  const grown = memoryOf(target.pid) - idle;
  const busy = rows("under load", await underLoad(target, () => lookAll(target, PACE_MS)));
  console.log(`\nmilliseconds\n${table([heading, ...quiet, ...busy])}\n`);
  console.log(`memory: ${megabytes(idle)}, after the quiet lookups ${megabytes(grown)} more`);
}

async function main(folder: string): Promise<void> {
  const now = new Date();
  const date = now.toISOString().slice(0, 10);
  console.log(`${date}, Node ${process.version}, ${cpus()[0]?.model.trim()}`);
  const usage = join(folder, "usage");
  let began = performance.now();
  await writeRecords(folder, amount, now);
  const { records, months } = amount;
  console.log(`${records} records of ${months} months, written in ${seconds(began)}; ${load()}`);
  began = performance.now();
  await closeAll(folder, now);
  const ids = readdirSync(usage).filter((name) => name.endsWith(".ids"));
  const size = megabytes(ids.reduce((sum, name) => sum + statSync(join(usage, name)).size, 0));
  console.log(`ids: ${ids.length} files with ${size}; days closed in ${seconds(began)}; ${load()}`);
  const accounts = Array.from({ length: ACCOUNTS }, (_, n) => accountOf(n));
  const keys = [
    { account: "bench", key: "sk-bench" },
    ...accounts.map((account) => ({ account, key: keyOf(account) })),
  ];
  const provider = await startProvider();
  try {
    const target = await gateway({ data_dir: folder, keys }).start(provider.url);
    // It was started on one core. Lookups are to take what they take where nobody says so.
    if (pinned) spawnSync("taskset", ["-acp", `0-${cpus().length - 1}`, String(target.pid)]);
    await measure(target).finally(() => target.stop());
  } finally {
    agent.destroy();
    await provider.stop();
  }
}

const { bavail, bsize } = statfsSync(tmpdir());
if (bavail * bsize < amount.records * RECORD_BYTES)
  throw new Error(`${tmpdir()} has no room for ${amount.records} records`);
const folder = scratch();
process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(1));
await main(folder);
