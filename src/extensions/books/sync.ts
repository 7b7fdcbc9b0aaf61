// The usage sync: one pass recovers what dead processes left behind, copies what was settled since the last pass from the
// spend log into the usage store, and deletes old segments that an earlier pass has copied. One process at a time does it.
import { existsSync, mkdirSync, readdirSync, rmSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import type { Config } from "../../core/config/schema.ts";
import type { Diagnose } from "../../core/diagnose.ts";
import { randomHex } from "../../core/ids.ts";
import { createFileStore } from "./file-store.ts";
import { acquireSocketLock, isLockHeld, readLines, syncToDisk } from "./files.ts";
import { BooksFault } from "./month-files.ts";
import { adoptOldMarks } from "./old-marks.ts";
import { createPostgresStore } from "../postgres/store.ts";
import { parseSpendLine, usageRecord, type SettleRecord, type UsageRecord } from "./records.ts";
import type { StoreFault } from "./usage-store.ts";
import { recover } from "./recovery.ts";
import { createRetention } from "./retention.ts";
import { retire } from "./retired.ts";
import {
  byIdentity,
  counting,
  createSegmentReader,
  describeStale,
  isInterrupted,
  noteSettled,
  settledBefore,
  type Mark,
  type Progress,
} from "./segments.ts";
import { segmentsIn, strangersIn, unclosedOf } from "./spend-log.ts";

export type Ledger = Readonly<ReturnType<typeof ledgerOf>>;
/** The books of one data_dir; `dir` is the folder of the segments, by its absolute path: of a relative one whose beginning has been deleted Node
 * 20 would try to make the folders for ever. Throws a ValidationError if the store's package is not installed. */
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
    retention: createRetention(resolve(data_dir), spend.keep_days, now),
    segments: createSegmentReader(),
    now,
    diagnose,
  };
}

export class BusyError extends Error {}

/** Does `work` while no other process works on the same books, or keys; a BusyError if one does so for all of `patienceMs` (a minute).
 * Everybody first announces itself under a name of its own and then looks for others: of two, the second sees the first. So never
 * two are at work, and what a dead process leaves behind is in nobody's way; two at the very same moment both try again. */
export async function withLock<T>(
  dir: string,
  what: "books" | "keys",
  work: () => Promise<T>,
  patienceMs = 60_000,
): Promise<T> {
  for (const end = performance.now() + patienceMs; ; await pause(20 + 80 * Math.random())) {
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    const mine = `${what}.${randomHex(6)}.sock`;
    const release = await acquireSocketLock(join(dir, mine));
    try {
      const others = readdirSync(dir).filter(
        (name) => name !== mine && name.startsWith(`${what}.`) && name.endsWith(".sock"),
      );
      const alive = await Promise.all(others.map((other) => isLockHeld(join(dir, other))));
      others.forEach((other, at) => {
        if (!alive[at]) rmSync(join(dir, other), { force: true });
      });
      if (release && !alive.includes(true)) return await work();
    } finally {
      release?.();
    }
    if (performance.now() >= end) throw new BusyError(`another process is at work on the ${what}`);
  }
}

/** What one pass of the sync did; `faults` are what it found wrong, and worked around. */
export interface SyncResult {
  /** Records. */
  readonly copied: number;
  readonly faults: readonly StoreFault[];
}

/** One whole pass. The caller holds the books. Throws a BooksFault, with nothing written, where the usage records are damaged so
 * that nothing can be added to them. */
export async function syncUsage(ledger: Ledger): Promise<SyncResult> {
  const { dir, store } = ledger;
  await recover(ledger);
  const faults = [...(await store.inspect())];
  const blocking = faults.find(({ blocks }) => blocks);
  if (blocking) throw new BooksFault(blocking.detail);
  const marks = await adoptOldMarks(ledger, await store.marks());
  const marksOf = byIdentity(marks);
  const idle: IdleSegment[] = [];
  const present = new Set<string>();
  let copied = 0;
  for (const detail of strangersIn(dir))
    faults.push({ event: "spend_segment_unreadable", detail, blocks: false });
  for (const name of segmentsIn(dir)) {
    const path = join(dir, name);
    const inUse = existsSync(unclosedOf(path)); // asked first: what is written from here on has another size
    const { size, mtimeMs } = statSync(path);
    const progress = ledger.segments.progressOf(path, name, marksOf);
    const { identity, mark, stale } = progress;
    if (identity !== undefined) present.add(identity);
    if (stale.length > 0) {
      const detail = describeStale(name, size, stale);
      faults.push({ event: "spend_segment_changed", detail, blocks: false });
    }
    if (size > (mark?.position ?? 0)) copied += await copySegment(ledger, name, size, progress);
    else if (!inUse) idle.push({ name, size, modified: mtimeMs });
  }
  faults.push(...(await deleteOld(ledger, idle, marks, present)));
  return { copied, faults };
}

/** A segment that nobody writes and of which all has been copied in an earlier pass. */
interface IdleSegment {
  readonly name: string;
  readonly size: number;
  /** When it was last written, in milliseconds. */
  readonly modified: number;
}

/** Deletes segments that are empty or too old, and the marks of those that are gone and too old to come back. What a segment came to
 * is kept first; where that fails, which is a fault, those that are too old stay. */
async function deleteOld(
  { dir, retention, segments, store }: Ledger,
  idle: readonly IdleSegment[],
  marks: readonly Mark[],
  present: ReadonlySet<string>,
): Promise<readonly StoreFault[]> {
  const mayDelete = retention.isClockSteady();
  const old: { readonly name: string; readonly size: number; readonly identity: string }[] = [];
  for (const { name, size, modified } of idle) {
    const path = join(dir, name);
    const isExpired = () => retention.isExpired(name, modified, () => newestLine(path));
    if (size > 0 && !(mayDelete && (await isExpired()))) continue;
    old.push({ name, size, identity: segments.identityOf(path) ?? "" });
  }
  const faults = await keepSums(
    dir,
    old.filter(({ size }) => size > 0),
  );
  const deleted = new Set<string>();
  for (const { name, size, identity } of old) {
    if (size > 0 && faults.length > 0) continue;
    deleted.add(identity);
    segments.forget(join(dir, name));
    rmSync(join(dir, name));
  }
  if (!mayDelete) return faults;
  const drop = marks.filter(
    ({ identity, segment }) =>
      identity !== null &&
      (deleted.has(identity) || (!present.has(identity) && retention.isForgotten(segment))),
  );
  if (drop.length > 0) await store.commit({ records: [], corrections: new Set(), put: [], drop });
  return faults;
}

/** Keeps what segments come to that are about to be deleted. Resolves with why that is not possible. */
async function keepSums(
  dir: string,
  old: Parameters<typeof retire>[1],
): Promise<readonly StoreFault[]> {
  try {
    await retire(dir, old);
    return [];
  } catch (error) {
    const detail = `segments older than spend.keep_days stay, because what they come to cannot be kept: ${(error as Error).message}`;
    return [{ event: "spend_sums_not_kept", detail, blocks: false }];
  }
}

/** The time of the newest line of a segment, in milliseconds. */
async function newestLine(path: string): Promise<number | undefined> {
  let newest: number | undefined;
  for await (const { lines } of readLines(path)) {
    for (const line of lines) {
      const time = Date.parse(parseSpendLine(line)?.time ?? "");
      if (!Number.isNaN(time)) newest = Math.max(newest ?? time, time);
    }
  }
  return newest;
}

/** Copies what has been settled in a segment since its mark, up to byte `size`; resolves with the number of records. */
async function copySegment(
  ledger: Ledger,
  segment: string,
  size: number,
  progress: Progress,
): Promise<number> {
  const { store, segments, diagnose } = ledger;
  const { identity } = progress;
  if (identity === undefined) return 0;
  const path = join(ledger.dir, segment);
  let mark = progress.mark;
  let earlier: Map<string, boolean> | undefined;
  await syncToDisk(path); // a power failure must not take what the usage records have
  const known = await alreadyThere(ledger, segment, size, progress);
  let copied = 0;
  for await (const { lines, end } of readLines(path, mark?.position ?? 0, size)) {
    const read = lines.map(parseSpendLine);
    const unreadable = read.filter((record) => !record).length;
    if (unreadable > 0)
      diagnose({
        event: "spend_log_unreadable",
        level: "error",
        segment,
        lines: unreadable,
        before_byte: end,
      });
    const settles = read.filter((record) => record?.type === "settle");
    const recovered = (mark?.recovered ?? false) || settles.some(isInterrupted);
    // Only a segment that was recovered has more than one settle line of a request.
    if (recovered) earlier ??= await settledBefore(path, mark?.position ?? 0);
    const { records, corrections } = resolveSettles(settles, earlier ?? new Map());
    if (earlier) for (const settle of settles) noteSettled(earlier, settle);
    const added = records.filter(
      ({ usage_id }) => corrections.has(usage_id) || !known.has(usage_id),
    );
    const tail = segments.tailAt(path, end);
    const next = { segment, identity, position: end, tail, recovered };
    await store.commit({ records: added, corrections, put: [next], drop: mark ? [mark] : [] });
    mark = next;
    copied += added.length;
  }
  return copied;
}

/** The records that settle lines come to, each request once; `earlier` are requests whose lines have been copied, by whether
 * these say "interrupted". */
function resolveSettles(settles: readonly SettleRecord[], earlier: ReadonlyMap<string, boolean>) {
  const last = new Map<string, SettleRecord>();
  for (const settle of settles) {
    const before = last.get(settle.spend_id);
    last.set(settle.spend_id, before ? counting(before, settle) : settle);
  }
  const records: UsageRecord[] = [];
  const corrections = new Set<string>();
  for (const [id, settle] of last) {
    const wasInterrupted = earlier.get(id);
    if (wasInterrupted === false || (wasInterrupted && isInterrupted(settle))) continue;
    if (wasInterrupted) corrections.add(id);
    records.push(usageRecord(settle));
  }
  return { records, corrections };
}

/** The requests of the rest of a segment that are in the usage records although its mark does not say so: it was another before, or
 * is so old that its mark has been dropped. */
async function alreadyThere(
  { dir, store, retention }: Ledger,
  segment: string,
  size: number,
  { mark, stale }: Progress,
): Promise<ReadonlySet<string>> {
  const isNew = stale.length === 0 && (mark !== undefined || !retention.isForgotten(segment));
  if (isNew) return new Set();
  const ids: { usage_id: string; ended_at: string }[] = [];
  for await (const { lines } of readLines(join(dir, segment), mark?.position ?? 0, size)) {
    for (const record of lines.map(parseSpendLine)) {
      if (record?.type === "settle") ids.push({ usage_id: record.spend_id, ended_at: record.time });
    }
  }
  return store.holds(ids);
}

/** Where the copying of each segment has come to, by its name, for whoever reads what has not been copied yet. */
export function copiedUpTo(
  { dir, segments }: Pick<Ledger, "dir" | "segments">,
  marks: readonly Mark[],
): ReadonlyMap<string, number> {
  const marksOf = byIdentity(marks);
  const positions = segmentsIn(dir).map((name) => {
    const { mark } = segments.progressOf(join(dir, name), name, marksOf);
    const old = marks.find(({ identity, segment }) => identity === null && segment === name);
    return [name, mark?.position ?? old?.position ?? 0] as const;
  });
  return new Map(positions);
}
