// The usage sync: one pass recovers what dead processes left behind, copies what was settled since the last pass from the
// spend log into the usage store, and deletes old segments that an earlier pass has copied. One process at a time does it.
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  rmSync,
  statSync,
  truncateSync,
} from "node:fs";
import { join, resolve } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { DAY_MS, type Config } from "../config/schema.ts";
import type { Diagnose } from "../http/log.ts";
import { randomHex } from "../protocol/ids.ts";
import { createFileStore } from "./file-store.ts";
import { announce, isAlive, readLines, syncToDisk } from "./files.ts";
import { createPostgresStore } from "./postgres-store.ts";
import {
  parseSpendLine,
  settleRecord,
  usageRecord,
  type OpenRecord,
  type SettleRecord,
} from "./records.ts";
import { holderOf, segmentsIn, unclosedOf } from "./spend-log.ts";
import { NOTHING } from "./usage.ts";

export type Ledger = Readonly<ReturnType<typeof ledgerOf>>;
/** The books of one data_dir; `dir` is the folder of the segments, by its absolute path: of a relative one whose beginning has been deleted Node
 * 20 would try to make the folders for ever. Throws a CheckError if the store's package is not installed. */
export function ledgerOf(
  { data_dir, usage, spend, currency }: Config,
  now: () => number,
  diagnose: Diagnose,
) {
  const store =
    usage.store === "file"
      ? createFileStore(resolve(data_dir, "usage"))
      : createPostgresStore(usage.store, data_dir);
  return {
    dir: resolve(data_dir, "spend"),
    store,
    currency,
    keepDays: spend.keep_days,
    now,
    diagnose,
  };
}

export class BusyError extends Error {}

/** Does `work` while no other process works on the same books, or keys; a BusyError if one does so for all of `patienceMs` (a minute).
 * Everybody first announces itself under a name of its own and then looks for others: of two, the second sees the first. So never
 * two are at work, and what a dead process leaves behind is in nobody's way; two at the very same moment both try again. */
export async function holding<T>(
  dir: string,
  what: "books" | "keys",
  work: () => Promise<T>,
  patienceMs = 60_000,
): Promise<T> {
  for (const end = performance.now() + patienceMs; ; await pause(20 + 80 * Math.random())) {
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    const mine = `${what}.${randomHex(6)}.sock`;
    const release = await announce(join(dir, mine));
    try {
      const others = readdirSync(dir).filter(
        (name) => name !== mine && name.startsWith(`${what}.`) && name.endsWith(".sock"),
      );
      const alive = await Promise.all(others.map((other) => isAlive(join(dir, other))));
      others.forEach((other, at) => alive[at] || rmSync(join(dir, other), { force: true }));
      if (release && !alive.includes(true)) return await work();
    } finally {
      release?.();
    }
    if (performance.now() >= end) throw new BusyError(`another process is at work on the ${what}`);
  }
}

/** What a process that died has left behind: perhaps a torn last line, which is cut off, and open lines without a settle line,
 * which are settled as "interrupted": the provider's figures died with the process, so they cost nothing. The caller holds the
 * books, so that it happens once; if it dies half-way the next process goes on where it stopped. */
export async function recover({ dir, currency, now, diagnose }: Ledger): Promise<void> {
  const interrupted = {
    status: "interrupted",
    http_status: null,
    error_code: null,
    finish_reason: null,
    attempts: [],
    first_token_ms: null,
    model: undefined,
    ...NOTHING,
  } as const;
  let requests = 0;
  for (const mark of readdirSync(dir).filter((name) => name.endsWith(".open"))) {
    const segment = join(dir, mark.replace(/open$/, "jsonl"));
    if (await isAlive(holderOf(segment))) continue;
    if (existsSync(segment)) {
      const { unsettled, end } = await readSegment(segment);
      const lines = [...unsettled.values()].map(
        (open) => `${JSON.stringify(settleRecord(open, now(), interrupted, currency))}\n`,
      );
      truncateSync(segment, end);
      appendFileSync(segment, lines.join(""), { flush: true });
      requests += lines.length;
    }
    for (const path of [holderOf(segment), unclosedOf(segment)]) rmSync(path, { force: true });
  }
  if (requests > 0)
    diagnose({
      event: "spend_recovered",
      level: "warn",
      requests,
      detail: "requests of a process that died were settled as interrupted",
    });
}

/** One whole pass; resolves with the number of records copied. The caller holds the books. */
export async function syncUsage(ledger: Ledger): Promise<number> {
  const { dir, store, keepDays, now, diagnose } = ledger;
  await recover(ledger);
  const done = await store.cursor();
  let copied = 0;
  for (const segment of segmentsIn(dir)) {
    const path = join(dir, segment);
    const inUse = existsSync(unclosedOf(path)); // asked first: what is written from here on has another size
    const { size, mtimeMs } = statSync(path);
    const from = done.get(segment) ?? 0;
    if (!inUse && (size === 0 || (size === from && mtimeMs < now() - keepDays * DAY_MS)))
      rmSync(path);
    if (size > from) await syncToDisk(path); // a power failure must not take what the usage records have
    for await (const { lines, end } of readLines(path, from, size)) {
      const read = lines.map(parseSpendLine);
      const records = read.flatMap((record) =>
        record?.type === "settle" ? [usageRecord(record)] : [],
      );
      const unreadable = read.filter((record) => !record).length;
      if (unreadable > 0)
        diagnose({
          event: "spend_log_unreadable",
          level: "error",
          segment,
          lines: unreadable,
          before_byte: end,
        });
      await store.commit(records, new Map([[segment, end]]), []);
      copied += records.length;
    }
  }
  const gone = [...done.keys()].filter((segment) => !existsSync(join(dir, segment)));
  if (gone.length > 0) await store.commit([], new Map(), gone);
  return copied;
}

/** What of a segment is still unsettled, and where its last whole line ends. `each` is given every settle line, and whether it was open. */
export async function readSegment(
  path: string,
  to = Infinity,
  each: (record: SettleRecord, opened: boolean) => void = () => {},
) {
  const unsettled = new Map<string, OpenRecord>();
  let end = 0;
  for await (const batch of readLines(path, 0, to)) {
    for (const record of batch.lines.map(parseSpendLine)) {
      if (record?.type === "open") unsettled.set(record.spend_id, record);
      else if (record) each(record, unsettled.delete(record.spend_id));
    }
    end = batch.end;
  }
  return { unsettled, end };
}
