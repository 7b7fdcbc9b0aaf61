// Measures GET /v1/requests/{request_id} over millions of usage records in files: `npm run build &&
// node --import tsx scripts/bench/receipts.ts`. Linux and loopback only. It writes usage records of
// eight months, closes their days, starts the built gateway on them, and requests receipts of
// random requests of any month, and of unknown ids: first one after another on an idle gateway,
// then 50 a second beside 50 chat requests a second and their syncs. Ten million records take 9 GB
// in the folder for temporary files; they are removed at the end.
// --records N: the number of usage records (10,000,000)

import { spawnSync } from "node:child_process";
import { cpus } from "node:os";
import { parseArgs } from "node:util";
import { systemClock } from "../../src/core/clock.ts";
import type { Config } from "../../src/core/config.ts";
import { install } from "../../src/core/extension/install.ts";
import { usageRecord, type UsageRecord } from "../../src/extensions/money/records/index.ts";
import type { SettleLine } from "../../src/extensions/money/records/index.ts";
import { closeDays } from "../../src/extensions/money/usage/close-days.ts";
import { openBooks } from "../../src/extensions/money/usage/index.ts";
import { PRICE, settleLine } from "../../test/support/books.ts";
import { folder } from "../../test/support/folder.ts";
import { createRandom } from "../../test/support/random.ts";
import { answersOf, memoryOf, percentile, startLoad } from "./load.ts";
import { table } from "./table.ts";
import { bodyOf, gateway, MACHINE, pinned, started } from "./targets.ts";
import { startProvider, type Target } from "./targets.ts";

const { values } = parseArgs({ options: { records: { type: "string", default: "10000000" } } });
const RECORDS = Number(values.records);
const MONTHS = 8;
/** Records per write. */
const BATCH = 10_000;
/** Enough accounts for the lookups: each may request 600 receipts a minute. */
const ACCOUNTS = 20;
/** Lookups per second, and chat requests per second. */
const RATE = 50;

const hex = (n: number): string => n.toString(16).padStart(8, "0");
const accountOf = (n: number): string => `account-${n % ACCOUNTS}`;
const requestIdOf = (n: number): string => `req_${hex(Math.imul(n, 0x9e3779b1) >>> 0)}${hex(n)}`;

function recordOf(n: number, ended: number): UsageRecord {
  const time = new Date(ended).toISOString();
  const about = { time, gateway_request_id: requestIdOf(n), account: accountOf(n), prices: PRICE };
  const place = { segment: "2026-01-01.0001.jsonl", line: n + 1, sha256: hex(n).padStart(64, "0") };
  return usageRecord(settleLine(n, about) as SettleLine, time.slice(0, 10), place);
}

/** Writes the records of the months before this one, and closes their days. */
async function writeBooks(dataDir: string): Promise<void> {
  const now = new Date();
  const monthsAgo = (count: number) => Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - count);
  const from = monthsAgo(MONTHS);
  const span = monthsAgo(0) - from;
  const books = openBooks({ data_dir: dataDir, currency: "USD" } as Config, {
    clock: systemClock,
    diagnose: () => undefined,
    installed: install([]),
  });
  for (let first = 0; first < RECORDS; first += BATCH) {
    const records = Array.from({ length: Math.min(BATCH, RECORDS - first) }, (_, at) =>
      recordOf(first + at, from + Math.floor(((first + at) * span) / RECORDS)),
    );
    await books.store.add(records, {});
  }
  await closeDays(books, {}, now.getTime());
}

const { between } = createRandom(Date.now());

/** Looks up random ids one after another. Returns a row of the table. */
async function lookUp(what: string, target: Target, isKnown: boolean, rate?: number) {
  const draw = (request: object) => {
    const n = between(0, RECORDS - 1);
    const path = `/v1/requests/${isKnown ? requestIdOf(n) : `no-${n}`}`;
    return { ...request, path, headers: { authorization: `Bearer sk-${accountOf(n)}` } };
  };
  const requests = [{ method: "GET", setupRequest: draw }];
  const options = { connections: 1, amount: isKnown ? 2_000 : 500, overallRate: rate, requests };
  const times = await answersOf(startLoad(target, "", options), target.name, isKnown ? 200 : 404);
  const figures = [0.5, 0.99, 1].map((share) => percentile(times, share).toFixed(1));
  const name = `${what}, ${isKnown ? "found" : "unknown"}`;
  return [name, String(times.length), ...figures];
}

async function measure(target: Target): Promise<void> {
  const idle = memoryOf(target.pid);
  const rows = [["", "lookups", "p50", "p99", "worst"]];
  for (const isKnown of [true, false]) rows.push(await lookUp("quiet", target, isKnown));
  const grown = memoryOf(target.pid) - idle;
  const options = { connections: 10, overallRate: RATE, duration: 3_600 };
  const chats = startLoad(target, bodyOf("bytes=300", target.model), options);
  const chatted = answersOf(chats, "chat requests");
  for (const isKnown of [true, false]) rows.push(await lookUp("under load", target, isKnown, RATE));
  chats.stop();
  await chatted;
  console.log(`milliseconds\n${table(rows)}\n`);
  const [before, more] = [idle, grown].map((bytes) => `${(bytes / 1e6).toFixed(0)} MB`);
  console.log(`memory: ${before}, after the quiet lookups ${more} more`);
}

const books = folder();
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(1));
await writeBooks(books);
const date = new Date().toISOString().slice(0, 10);
console.log(`${date}, ${MACHINE}, ${RECORDS} records of ${MONTHS} months`);
const accounts = Array.from({ length: ACCOUNTS }, (_, n) => accountOf(n));
const keys = accounts.map((account) => ({ account, key: `sk-${account}` }));
const provider = await startProvider();
try {
  const config = { data_dir: books, keys: [...keys, { account: "bench", key: "sk-bench" }] };
  const target = await started(gateway(config), provider.url);
  // The gateway was started on one core. Lookups use all cores, as in operation.
  if (pinned) spawnSync("taskset", ["-acp", `0-${cpus().length - 1}`, String(target.pid)]);
  await measure(target).finally(() => target.stop());
} finally {
  await provider.stop();
}
