// One pass over the books: settles what dead processes have left open, copies what was settled since
// the last pass into the usage records, closes the days that are over, and deletes segments that are
// old enough. One process at a time does it.
import { existsSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { syncToDisk, withLock } from "../../data-files/index.ts";
import {
  hasWriter,
  segmentsIn,
  settleInterrupted,
  socketOf,
  strangersIn,
} from "../ledger/index.ts";
import type { LogCursor, StoreFault } from "../records/index.ts";
import { usageRecord } from "../records/index.ts";
import type { BooksFiles } from "./books-files.ts";
import { brokenFile } from "./broken-file.ts";
import { closeDays } from "./close-days.ts";
import { bookedDay } from "./days.ts";
import { createSegmentReader, type SegmentReader } from "./segment-reader.ts";

/** What one pass did. */
export interface SyncResult {
  /** How many records were copied. */
  readonly copied: number;
  /** What the pass found wrong and worked around. */
  readonly faults: readonly StoreFault[];
}

/** The books cannot be written to, or not be read in full, until somebody has mended them. */
export class BooksFault extends Error {}

/**
 * Runs a pass while no other process works on the books. Throws a BusyError if one does for a
 * minute.
 */
export const copySettled = (books: BooksFiles): Promise<SyncResult> =>
  withLock({ dir: books.spendDir, name: "books", clock: books.clock }, () => syncUsage(books));

/**
 * Runs a pass. The caller holds the lock of the books. Throws a BooksFault, with nothing written,
 * if a file of the books is not as it was left.
 */
export async function syncUsage(books: BooksFiles): Promise<SyncResult> {
  const { spendDir, store } = books;
  const faults = [...(await store.inspect())];
  for (const detail of strangersIn(spendDir))
    faults.push({ event: "spend_segment_unreadable", detail, blocks: false });
  const blocking = faults.find(({ blocks }) => blocks);
  if (blocking) throw new BooksFault(blocking.detail);
  let cursor = await store.cursor();
  const names = segmentsIn(spendDir);
  assertWhole(books, names, cursor);
  let copied = 0;
  for (const name of names) {
    const pass = await copySegment(books, name, cursor);
    copied += pass.copied;
    cursor = pass.cursor;
    faults.push(...pass.faults);
  }
  const closed = await closeDays(books, cursor);
  if (closed) await deleteOldSegments(books, cursor);
  return { copied, faults };
}

/** Throws if a segment that was copied is gone, or has less than what was copied. */
function assertWhole({ spendDir }: BooksFiles, names: readonly string[], cursor: LogCursor): void {
  const there = new Set(names);
  for (const [name, { bytes }] of Object.entries(cursor)) {
    const path = join(spendDir, name);
    const size = there.has(name) ? statSync(path).size : -1;
    if (size < bytes) throw new BooksFault(brokenFile(path, size, bytes));
  }
}

/** A segment's part of a pass. */
interface SegmentPass {
  readonly copied: number;
  readonly cursor: LogCursor;
  readonly faults: readonly StoreFault[];
}

/** Copies what is new in a segment and, if its process is dead, settles the rest before. */
async function copySegment(
  books: BooksFiles,
  name: string,
  before: LogCursor,
): Promise<SegmentPass> {
  const path = join(books.spendDir, name);
  const known = before[name];
  // Most segments are at their end and have no socket: nobody is asked about them.
  const hasSocket = existsSync(socketOf(path));
  // Asked before the size: what a live process writes after that, the next pass copies.
  const isLive = books.isOwn(name) || (hasSocket && (await hasWriter(path)));
  const { size } = statSync(path);
  const isAtEnd = known?.bytes === size && known.unsettled === 0;
  const isEmpty = !isLive && size === 0;
  if (hasSocket && !isLive) rmSync(socketOf(path), { force: true });
  if (isEmpty) rmSync(path);
  if (isAtEnd && !isLive) books.openSegments.delete(name);
  if (isAtEnd || isEmpty) return { copied: 0, cursor: before, faults: [] };
  const reader = await readerOf(books, name, known?.bytes ?? 0);
  let pass = await copyNew(books, reader, { name, before });
  if (isLive) return pass;
  const left = reader.unsettled();
  const end = reader.cursor().bytes;
  if (left.length > 0 || statSync(path).size > end) {
    await settleInterrupted(path, end, left, books);
    const rest = await copyNew(books, reader, { name, before: pass.cursor });
    pass = { ...rest, copied: pass.copied + rest.copied, faults: [...pass.faults, ...rest.faults] };
  }
  return pass;
}

/** The reader of a segment, at the byte up to which it was copied. */
async function readerOf(
  { openSegments, spendDir }: BooksFiles,
  name: string,
  bytes: number,
): Promise<SegmentReader> {
  const remembered = openSegments.get(name);
  const isBehind = remembered !== undefined && remembered.cursor().bytes <= bytes;
  const reader = isBehind ? remembered : createSegmentReader(join(spendDir, name), name);
  // Another process may have copied it up to there. What is unsettled is found by reading that.
  for await (const _batch of reader.read(bytes)) continue;
  openSegments.set(name, reader);
  return reader;
}

async function copyNew(
  { spendDir, store, days }: BooksFiles,
  reader: SegmentReader,
  { name, before }: { readonly name: string; readonly before: LogCursor },
): Promise<SegmentPass> {
  const path = join(spendDir, name);
  const { size } = statSync(path);
  const faults: StoreFault[] = [];
  let cursor = before;
  let copied = 0;
  if (reader.cursor().bytes === size) return { copied, cursor, faults };
  // A power failure must not take lines from the spend log that the usage records have.
  await syncToDisk(path);
  const closed = days.last()?.closed.day;
  for await (const batch of reader.read(size)) {
    const records = batch.settled.map(({ settle, log }) =>
      usageRecord(settle, bookedDay(settle.time, closed), log),
    );
    for (const { line, what } of batch.problems)
      faults.push({
        event: "spend_line_unusable",
        detail: `${path}: line ${line} ${what}`,
        blocks: false,
      });
    cursor = { ...cursor, [name]: batch.cursor };
    await store.add(records, cursor);
    copied += records.length;
  }
  return { copied, cursor, faults };
}

/** Deletes segments of which everything is on the line of a day that is older than keep_days. */
async function deleteOldSegments(books: BooksFiles, cursor: LogCursor): Promise<void> {
  const { spendDir, days, retention, store } = books;
  if (!retention.isClockSteady()) return;
  const isOld = new Map<string, boolean>();
  for (const { closed } of days.all())
    for (const { segment, bytes } of closed.segments)
      isOld.set(segment, retention.isExpired(closed.day) && bytes === cursor[segment]?.bytes);
  const old = Object.keys(cursor).filter(
    (name) => cursor[name]?.unsettled === 0 && !books.isOwn(name) && isOld.get(name),
  );
  if (old.length === 0) return;
  for (const name of old) books.openSegments.delete(name);
  // The cursor first: a segment that it names and that is gone is a fault.
  await store.setCursor(
    Object.fromEntries(Object.entries(cursor).filter(([name]) => !old.includes(name))),
  );
  for (const name of old) {
    const path = join(spendDir, name);
    if (existsSync(path)) rmSync(path);
  }
}
