// One pass over the books: settles what dead processes have left open, copies what was settled
// since the last pass into the usage records, closes the days that are over, and deletes segments
// that are old enough. One process at a time does it.
import { existsSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { BusyError, syncToDisk } from "../../data-files/index.ts";
import {
  hasWriter,
  segmentsIn,
  settleInterrupted,
  socketOf,
  strangersIn,
} from "../ledger/index.ts";
import { usageRecord, type LogCursor, type StoreFault } from "../records/index.ts";
import type { BooksFiles } from "./books-files.ts";
import { bookedDay, brokenFile, type Days } from "../days/index.ts";
import { closeDays } from "./close-days.ts";
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
  books.locked(() => syncUsage(books));

/**
 * Runs a pass. The caller holds the lock of the books. Throws a BooksFault, with nothing written,
 * if a file of the books is not as it was left.
 */
export async function syncUsage(books: BooksFiles): Promise<SyncResult> {
  const { spendDir, store, clock } = books;
  const began = clock.now();
  const faults = [...(await store.inspect())];
  for (const detail of strangersIn(spendDir))
    faults.push({ event: "spend_segment_unreadable", detail, blocks: false });
  const blocking = faults.find(({ blocks }) => blocks);
  if (blocking) throw new BooksFault(blocking.detail);
  let cursor = await store.cursor();
  const there = segmentsIn(spendDir);
  assertWhole(books, there, cursor);
  const closedOnes = listed(books.days);
  // A process that died while it deleted old segments has left those that the cursor forgot.
  const names = there.filter((name) => cursor[name] !== undefined || !closedOnes.has(name));
  let copied = 0;
  for (const name of names) {
    const pass = await copySegment(books, name, cursor);
    copied += pass.copied;
    cursor = pass.cursor;
    faults.push(...pass.faults);
  }
  const closed = await closeDays(books, cursor, began);
  if (closed) await deleteOldSegments(books, cursor);
  return { copied, faults };
}

/**
 * Throws if a segment that was copied is gone or has less than what was copied, or if less is
 * copied than the closed days have: what is copied again would be booked on other days.
 */
function assertWhole(
  { spendDir, days, retention }: BooksFiles,
  names: readonly string[],
  cursor: LogCursor,
): void {
  const there = new Set(names);
  for (const [name, { bytes }] of Object.entries(cursor)) {
    const path = join(spendDir, name);
    const size = there.has(name) ? statSync(path).size : -1;
    if (bytes > 0 && size < bytes) throw new BooksFault(brokenFile(path, size, bytes));
  }
  for (const [segment, { day, bytes }] of listed(days)) {
    const isCopied = (cursor[segment]?.bytes ?? 0) >= bytes;
    // An expired one is about to be deleted: the cursor forgets it first.
    if (isCopied || !there.has(segment) || retention.isExpired(day)) continue;
    throw new BooksFault(
      `usage records of ${day} are lost, which ${segment} has and ${days.path} states: ` +
        "stop the gateway, run 'books rebuild' and start again",
    );
  }
}

/** What the last line of a closed day says of each segment. */
function listed(days: Days): ReadonlyMap<string, { readonly day: string; readonly bytes: number }> {
  const all = days
    .all()
    .flatMap(({ closed: { day, segments } }) =>
      segments.map(({ segment, bytes }) => [segment, { day, bytes }] as const),
    );
  return new Map(all);
}

/** A segment's part of a pass. */
interface SegmentPass {
  readonly copied: number;
  readonly cursor: LogCursor;
  readonly faults: readonly StoreFault[];
}

/** Whether this process or another one that lives writes a segment. */
async function isWritten(books: BooksFiles, path: string, name: string): Promise<boolean> {
  if (books.ownSegments?.().has(name)) return true;
  return existsSync(socketOf(path)) && (await hasWriter(path));
}

/**
 * Copies what is new in a segment. If its process is dead, whoever serves settles what it left
 * open; a command writes no log.
 */
async function copySegment(
  books: BooksFiles,
  name: string,
  before: LogCursor,
): Promise<SegmentPass> {
  const path = join(books.spendDir, name);
  const known = before[name];
  // Asked before the size: what a live process writes after that, the next pass copies.
  const mayWrite = books.ownSegments !== undefined && !(await isWritten(books, path, name));
  const isAtEnd = known?.bytes === statSync(path).size && known.unsettled === 0;
  if (mayWrite) tidy(path);
  if (mayWrite && isAtEnd) books.openSegments.delete(name);
  if (isAtEnd || !existsSync(path)) return { copied: 0, cursor: before, faults: [] };
  const reader = await readerOf(books, name, known?.bytes ?? 0);
  const pass = await copyNew(books, reader, { name, before });
  return mayWrite ? await settleRest(books, reader, name, pass) : pass;
}

/**
 * Settles what a dead process left open in a segment that is copied to its end, and copies that.
 */
async function settleRest(
  books: BooksFiles,
  reader: SegmentReader,
  name: string,
  pass: SegmentPass,
): Promise<SegmentPass> {
  const path = join(books.spendDir, name);
  const left = reader.unsettled();
  const end = reader.cursor().bytes;
  if (left.length === 0 && statSync(path).size === end) return pass;
  try {
    await settleInterrupted(path, end, left, books);
  } catch (error) {
    // A process lives after all, and writes. The next pass looks again.
    if (error instanceof BusyError) return pass;
    throw error;
  }
  const rest = await copyNew(books, reader, { name, before: pass.cursor });
  return { ...rest, copied: pass.copied + rest.copied, faults: [...pass.faults, ...rest.faults] };
}

/** Removes what a dead process left: its socket, and its segment if nothing stands in it. */
function tidy(path: string): void {
  if (existsSync(socketOf(path))) rmSync(socketOf(path), { force: true });
  if (statSync(path).size === 0) rmSync(path);
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
  for await (const _batch of reader.read(bytes));
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
  const old = [...listed(days)]
    .filter(([name, { day, bytes }]) => {
      const known = cursor[name];
      const isListed = !known || (known.bytes === bytes && known.unsettled === 0);
      return isListed && retention.isExpired(day) && existsSync(join(spendDir, name));
    })
    .map(([name]) => name);
  if (old.length === 0) return;
  // The cursor first: a segment that it names and that is gone is a fault.
  const kept = Object.entries(cursor).filter(([name]) => !old.includes(name));
  await store.setCursor(Object.fromEntries(kept));
  for (const name of old) {
    books.openSegments.delete(name);
    rmSync(join(spendDir, name));
  }
}
