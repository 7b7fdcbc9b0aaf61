// One pass over the books: copies the requests that were settled since the last pass into the usage
// records, settles the open requests of dead processes and copies those too, closes the days that
// are over, and deletes old segments. Only one process at a time runs a pass.
import { rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { syncToDisk } from "../../scale/data-files/index.ts";
import { hasWriter, segmentsIn, settleInterrupted, socketOf } from "../ledger/index.ts";
import {
  usageRecord,
  type LogCursor,
  type SegmentCursor,
  type StoreFault,
} from "../records/index.ts";
import {
  BooksFault,
  brokenFile,
  createCoverage,
  keptFrom,
  REPAIR,
  type Coverage,
} from "../days/index.ts";
import type { BooksFiles } from "./books-files.ts";
import { closeDays } from "./close-days.ts";
import { isClockSteady, isExpired } from "./retention.ts";
import { copyFaults, firstIdOf } from "./segment-copies.ts";
import { createSegmentReader, type SegmentReader } from "./segment-reader.ts";

/** The result of a pass. */
export interface SyncResult {
  /** How many records were copied. */
  readonly copied: number;
  /** The faults that the pass found and that did not stop it. */
  readonly faults: readonly StoreFault[];
}

/** The state of a pass. */
interface Pass {
  /** The books that it works on. */
  readonly books: BooksFiles;
  /** The coverage of the days that were closed when the pass began. */
  readonly coverage: Coverage;
  /** How far the log is copied. */
  cursor: LogCursor;
  /** As SyncResult.copied. */
  copied: number;
  /** As SyncResult.faults. */
  readonly faults: StoreFault[];
}

/** Runs a pass under the lock of the books. Throws a BusyError if it is held for a minute. */
export const copySettled = (books: BooksFiles): Promise<SyncResult> =>
  books.locked(() => syncUsage(books));

/**
 * Runs a pass. The caller holds the lock of the books. Throws a BooksFault, before it writes
 * anything, if a file of the books was changed or lost.
 */
export async function syncUsage(books: BooksFiles): Promise<SyncResult> {
  const { spendDir, store, days, clock } = books;
  const began = clock.now();
  // Checked before the store can fail: time without a database must not look like a jump.
  const [steady] = await Promise.allSettled([isClockSteady(books)]);
  const coverage = createCoverage(days.all().map(({ closed }) => closed));
  const faults = [...(await store.inspect())];
  const pass: Pass = { books, coverage, cursor: await store.cursor(), copied: 0, faults };
  const names = segmentsIn(spendDir);
  const isUnknown = (name: string) => !pass.cursor[name] && coverage.of(name).length > 0;
  const recordDays = names.some(isUnknown) ? await store.days() : [];
  const toCopy = segmentsToCopy(pass, names, recordDays);
  refuseCopies(pass, toCopy);
  for (const name of toCopy) await copySegment(pass, name);
  if (steady.status === "rejected") throw steady.reason;
  // Only with a clock that can be trusted, because neither can be undone.
  if (steady.value) {
    await closeDays(books, pass.cursor, began);
    await deleteOldSegments(pass, names);
  }
  return { copied: pass.copied, faults };
}

/**
 * The segments that are not past their retention. Throws a BooksFault if a copied segment is gone
 * or shorter than its copied part, or if the cursor is behind a closed day: copying those lines
 * again would book them on other days.
 */
function segmentsToCopy(
  { books, coverage, cursor }: Pass,
  names: readonly string[],
  recordDays: readonly string[],
): readonly string[] {
  const { spendDir, days } = books;
  for (const [name, { bytes }] of Object.entries(cursor)) {
    const path = join(spendDir, name);
    const size = statSync(path, { throwIfNoEntry: false })?.size ?? -1;
    if (bytes > 0 && size < bytes) throw new BooksFault(brokenFile(path, size, bytes));
    if (bytes === 0 && size > 0)
      throw new BooksFault(`${path} has the name of a segment that was gone: ${REPAIR}`);
  }
  return names.filter((name) => {
    const last = coverage.of(name).at(-1);
    const { bytes = 0, isCut = false } = cursor[name] ?? {};
    if (!last || bytes >= last.bytes || isCut) return true;
    // deleteOldSegments() removes a segment from the cursor first. So if its deletion was
    // interrupted, it has records; if the database was replaced by an empty one, it has none.
    const hasRecords = days.of(last.day)?.closed.records === 0 || recordDays.includes(last.day);
    if (!cursor[name] && isExpired(books, keptFrom(last)) && hasRecords) return false;
    throw new BooksFault(
      `usage records of ${last.day} are lost, which ${name} has and ${days.path} states: ` +
        "stop the gateway, run 'books rebuild' and start again",
    );
  });
}

/**
 * Throws a BooksFault if a new segment has the same beginning as another. The pass must not copy
 * either: once the operator removes one of the two files, its records would remain and be billed.
 */
function refuseCopies(
  { books: { spendDir }, coverage, cursor }: Pass,
  names: readonly string[],
): void {
  const begun: Record<string, { readonly first: string }> = {};
  for (const name of names) {
    const isNew = !cursor[name] && coverage.of(name).length === 0;
    const first = isNew ? firstIdOf(join(spendDir, name)) : "";
    if (first !== "") begun[name] = { first };
  }
  if (Object.keys(begun).length === 0) return;
  for (const { name, fault } of copyFaults(coverage, begun, cursor))
    throw new BooksFault(`${join(spendDir, name)} ${fault}: ${REPAIR}`);
}

/**
 * Copies what is new in a segment. If the process that wrote it is dead, settles its open requests,
 * unless this process is a command: commands write no log.
 */
async function copySegment(pass: Pass, name: string): Promise<void> {
  const { books } = pass;
  const known = pass.cursor[name];
  if (known?.isCut) return;
  const path = join(books.spendDir, name);
  const isAtEnd = (): boolean => known?.bytes === statSync(path).size && known.unsettled === 0;
  // So are nearly all segments. A remembered reader may be behind the cursor, because another
  // process copied the end.
  if (isAtEnd() && !books.openSegments.has(name)) return;
  // Checked before the size, which is final only in an abandoned segment.
  const isAbandoned = !(await hasWriter(path));
  const recovers = isAbandoned && books.recovers;
  if (recovers) rmSync(socketOf(path), { force: true });
  if (isAbandoned && isAtEnd()) {
    books.openSegments.delete(name);
    return;
  }
  if (recovers && statSync(path).size === 0) return rmSync(path);
  const reader = await readerOf(books, name, known);
  await copyNew(pass, reader, name);
  if (recovers) await settleRest(pass, reader, name);
}

/** Settles the open requests of a dead process in a segment copied to its end, and copies them. */
async function settleRest(pass: Pass, reader: SegmentReader, name: string): Promise<void> {
  const path = join(pass.books.spendDir, name);
  const unsettled = reader.unsettled();
  const end = reader.cursor().bytes;
  if (unsettled.length === 0 && statSync(path).size === end) return;
  // If the process is alive after all, the next pass tries again.
  if (await settleInterrupted(path, end, unsettled, pass.books)) await copyNew(pass, reader, name);
}

/**
 * The reader of a segment, which has read the part that was copied. Throws a BooksFault if that
 * part was of another file of this name.
 */
async function readerOf(
  { openSegments, spendDir }: BooksFiles,
  name: string,
  { bytes, first }: Pick<SegmentCursor, "bytes" | "first"> = { bytes: 0, first: "" },
): Promise<SegmentReader> {
  const path = join(spendDir, name);
  const remembered = openSegments.get(name);
  const isBehind = remembered !== undefined && remembered.cursor().bytes <= bytes;
  const reader = isBehind ? remembered : createSegmentReader(path, name);
  // Another process may have copied this part. Read it anyway: it may have unsettled requests.
  for await (const _batch of reader.read(bytes));
  const { first: found } = reader.cursor();
  if (first && first !== found)
    throw new BooksFault(`${path} begins with ${found}, not ${first}: ${REPAIR}`);
  openSegments.set(name, reader);
  return reader;
}

/** Copies the part of a segment that the reader has not read. */
async function copyNew(pass: Pass, reader: SegmentReader, name: string): Promise<void> {
  const { books, coverage, faults } = pass;
  const path = join(books.spendDir, name);
  const { size } = statSync(path);
  if (reader.cursor().bytes === size) return;
  // After a power failure the usage records must not hold requests that the spend log lost.
  await syncToDisk(path);
  for await (const batch of reader.read(size)) {
    const records = batch.settled.map(({ settle, log }) =>
      usageRecord(settle, coverage.bookedDay(name, log.line, settle.time), log),
    );
    for (const { line, what } of batch.problems) {
      const detail = `${path}: line ${line} ${what}`;
      faults.push({ event: "spend_line_unusable", detail });
    }
    pass.cursor = { ...pass.cursor, [name]: batch.cursor };
    await books.store.add(records, pass.cursor);
    pass.copied += records.length;
  }
}

/** Deletes segments whose last line is covered by a closed day, after keep_days (keptFrom). */
async function deleteOldSegments(
  { books, cursor, coverage }: Pass,
  names: readonly string[],
): Promise<void> {
  const { spendDir, store, openSegments } = books;
  const old = names.filter((name) => {
    const last = coverage.of(name).at(-1);
    const known = cursor[name];
    const isWhole = known?.bytes === last?.bytes && known?.unsettled === 0;
    const isListed = !known || known.isCut || isWhole;
    return last !== undefined && isListed && isExpired(books, keptFrom(last));
  });
  if (old.length === 0) return;
  // The cursor first: a segment that the cursor names must exist.
  const kept = Object.entries(cursor).filter(([name]) => !old.includes(name));
  await store.setCursor(Object.fromEntries(kept));
  for (const name of old) {
    openSegments.delete(name);
    const path = join(spendDir, name);
    // A process that had nothing left to settle or to copy when it died leaves its socket.
    for (const file of [path, socketOf(path)]) rmSync(file, { force: true });
  }
}
