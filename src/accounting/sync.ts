// The usage sync: one pass recovers what dead processes left behind, copies what was settled since the last pass from the
// spend log into the usage store, and deletes segments that have been copied and are old. One process at a time does it.
import { existsSync, mkdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import type { Config } from "../config/schema.ts";
import type { Diagnose } from "../http/log.ts";
import { createFileStore } from "./file-store.ts";
import { readLines, syncToDisk } from "./files.ts";
import { createPostgresStore } from "./postgres-store.ts";
import { tryLock } from "./process-lock.ts";
import { parseSpendLine, usageRecord, type UsageRecord, type UsageStore } from "./records.ts";
import { recover } from "./recovery.ts";
import { segmentsIn, unclosedOf } from "./spend-log.ts";

/** Records that are committed at once. */
const BATCH = 2_000;
export const DAY_MS = 86_400_000;

/** The books of one data_dir, as whoever works on them sees them. */
export interface Ledger {
  /** The folder of the spend log's segments. */
  readonly dir: string;
  readonly store: UsageStore; readonly currency: string; readonly keepDays: number; readonly now: () => number; readonly diagnose: Diagnose;
}

/** Throws a CheckError if the store's package is not installed. */
export function ledgerOf({ data_dir, usage, spend, currency }: Config, now: () => number, diagnose: Diagnose): Ledger {
  const store = usage.store === "file" ? createFileStore(join(data_dir, "usage")) : createPostgresStore(usage.store, data_dir);
  return { dir: join(data_dir, "spend"), store, currency, keepDays: spend.keep_days, now, diagnose };
}

export class BusyError extends Error {}

/** Does `work` while no other process works on the same books, or keys. Throws a BusyError if one does so for all of `patienceMs`; absent: a minute. */
export async function holding<T>(dir: string, what: "books" | "keys", work: () => Promise<T>, patienceMs = 60_000): Promise<T> {
  for (const end = performance.now() + patienceMs; ; await pause(20 + 80 * Math.random())) {
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    const unlock = await tryLock(dir, what);
    if (unlock) return await work().finally(unlock);
    if (performance.now() >= end) throw new BusyError(`another process is at work on the ${what}`);
  }
}

/** One whole pass; resolves with the number of records copied. The caller holds the books. */
export async function syncUsage(ledger: Ledger): Promise<number> {
  const { dir, store, diagnose } = ledger;
  await recover(ledger);
  const done = await store.cursor();
  let records: UsageRecord[] = [];
  let moved = new Map<string, number>();
  let copied = 0;
  const commit = async () => {
    if (moved.size > 0) await store.commit(records, moved);
    copied += records.length;
    [records, moved] = [[], new Map()];
  };
  for (const segment of segmentsIn(dir)) {
    const path = join(dir, segment);
    const { size } = statSync(path);
    const from = done.get(segment) ?? 0;
    if (size > from) await syncToDisk(path); // a power failure must not take what the usage records have
    for await (const { lines, end } of readLines(path, from, size)) {
      const read = lines.map(parseSpendLine);
      for (const record of read) if (record?.type === "settle") records.push(usageRecord(record));
      const unreadable = read.filter((record) => !record).length;
      if (unreadable > 0) diagnose({ event: "spend_log_unreadable", level: "error", segment, lines: unreadable, before_byte: end });
      moved.set(segment, end);
      if (records.length >= BATCH) await commit();
    }
  }
  await commit();
  await deleteOld(ledger);
  return copied;
}

async function deleteOld({ dir, store, keepDays, now }: Ledger): Promise<void> {
  const cursor = await store.cursor();
  for (const segment of segmentsIn(dir)) {
    const path = join(dir, segment);
    if (existsSync(unclosedOf(path))) continue;
    const { size, mtimeMs } = statSync(path);
    if (size === 0 || (mtimeMs < now() - keepDays * DAY_MS && cursor.get(segment) === size)) rmSync(path);
  }
  const gone = [...cursor.keys()].filter((segment) => !existsSync(join(dir, segment)));
  if (gone.length > 0) await store.forget(gone);
}
