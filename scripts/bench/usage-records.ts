// Millions of usage records in files, for the benchmark of receipts: written through the file
// store, whose days are then closed as the usage sync does it.

import { install } from "../../src/core/extension/install.ts";
import { systemClock } from "../../src/core/clock.ts";
import type { Config } from "../../src/core/config.ts";
import { closeDays } from "../../src/extensions/money/usage/close-days.ts";
import { openBooks } from "../../src/extensions/money/usage/index.ts";
import type { UsageRecord } from "../../src/extensions/money/records/index.ts";

export interface Amount {
  readonly records: number;
  /** The months before the current one have the same number each. */
  readonly months: number;
}

export const ACCOUNTS = 20;
/** Records that are written at once. */
const BATCH = 10_000;

/** The account of a record, by its number. */
export const accountOf = (n: number): string => `account-${n % ACCOUNTS}`;

const hex = (n: number): string => n.toString(16).padStart(8, "0");

/** The request id of a record, by its number. */
export const requestIdOf = (n: number): string =>
  `req_${hex(Math.imul(n, 0x9e3779b1) >>> 0)}${hex(n)}`;

/** When a record ended, in milliseconds since 1970. */
function endOf(n: number, { records, months }: Amount, now: Date): number {
  const startOf = (month: number): number =>
    Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - months + month);
  const place = (n * months) / records;
  const month = Math.floor(place);
  return startOf(month) + Math.floor((place - month) * (startOf(month + 1) - startOf(month)));
}

function recordOf(n: number, ended: number): UsageRecord {
  return {
    usage_id: `sp_${hex(n).padStart(32, "0")}`,
    gateway_request_id: requestIdOf(n),
    account: accountOf(n),
    key_id: "key_0123456789abcdef",
    model: "m",
    provider: "fast",
    status: "completed",
    prompt_tokens: 20,
    completion_tokens: 70,
    total_tokens: 90,
    prompt_cache_hit_tokens: 8,
    prompt_cache_miss_tokens: 12,
    reasoning_tokens: 0,
    cost: "0.000032984",
    currency: "USD",
    started_at: new Date(ended - 950).toISOString(),
    ended_at: new Date(ended).toISOString(),
    cache_write_tokens: 0,
    details: {
      model_requested: "m",
      finish_reason: "stop",
      usage_source: "provider",
      attempts: [["m", "completed", 950]],
      prices: { input_cache_hit: 0.028, input_cache_miss: 0.28, output: 0.42 },
    },
    day: new Date(ended).toISOString().slice(0, 10),
    log: { segment: "2026-01-01.0001.jsonl", line: n + 1, sha256: hex(n).padStart(64, "0") },
  };
}

/** The books in a data_dir, which hold nothing but records. Absent settings have their defaults. */
const booksIn = (dataDir: string) =>
  openBooks({ data_dir: dataDir, currency: "USD" } as Config, {
    clock: systemClock,
    diagnose: () => undefined,
    installed: install([]),
  });

/** Writes the records of the months before `now`. */
export async function writeRecords(dataDir: string, amount: Amount, now: Date): Promise<void> {
  const { store } = booksIn(dataDir);
  for (let first = 0; first < amount.records; first += BATCH) {
    const count = Math.min(BATCH, amount.records - first);
    const records = Array.from({ length: count }, (_, at) =>
      recordOf(first + at, endOf(first + at, amount, now)),
    );
    await store.add(records, {});
  }
}

/** Closes all days but this one. */
export async function closeAll(dataDir: string, now: Date): Promise<void> {
  await closeDays(booksIn(dataDir), {}, now.getTime());
}
