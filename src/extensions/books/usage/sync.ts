// The usage sync. One pass recovers what dead processes have left, copies what was settled since
// the last pass from the spend log into the usage store, and deletes old segments that an earlier
// pass has copied.
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { withLock } from "../../data-files/index.ts";
import type { StoreFault } from "../../usage-records/index.ts";
import type { BooksFiles } from "../books-files.ts";
import { BooksFault } from "../books-fault.ts";
import { recover } from "../spend-log/recovery.ts";
import { claimFileOf, segmentsIn, strangersIn } from "../spend-log/segment-names.ts";
import { copySegment } from "./copy-segment.ts";
import { deleteOldSegments, type IdleSegment } from "./delete-segments.ts";
import { adoptOldMarks } from "./old-marks.ts";
import { byIdentity, describeStale } from "./segment-progress.ts";

/** What one pass did. */
export interface SyncResult {
  /** How many records were copied. */
  readonly copied: number;
  /** What the pass found wrong and worked around. */
  readonly faults: readonly StoreFault[];
}

/**
 * Runs a pass while no other process works on the books. Throws a BusyError if one does for a
 * minute.
 */
export const copySettled = (books: BooksFiles): Promise<SyncResult> =>
  withLock({ dir: books.spendDir, name: "books", clock: books.clock }, () => syncUsage(books));

/**
 * Runs a pass. The caller holds the lock of the books. Throws a BooksFault, with nothing written,
 * if the usage records are damaged so that nothing can be added to them.
 */
export async function syncUsage(books: BooksFiles): Promise<SyncResult> {
  const { spendDir, store } = books;
  await recover(books);
  const faults = [...(await store.inspect())];
  const blocking = faults.find(({ blocks }) => blocks);
  if (blocking) throw new BooksFault(blocking.detail);
  const marks = await adoptOldMarks(books, await store.marks());
  for (const detail of strangersIn(spendDir))
    faults.push({ event: "spend_segment_unreadable", detail, blocks: false });
  const marksOf = byIdentity(marks);
  const idle: IdleSegment[] = [];
  const present = new Set<string>();
  let copied = 0;
  for (const name of segmentsIn(spendDir)) {
    const path = join(spendDir, name);
    // The claim file is looked for before the size is asked for: lines that come later only make
    // the size larger.
    const inUse = existsSync(claimFileOf(path));
    const { size, mtimeMs } = statSync(path);
    const progress = books.reader.progressOf(path, name, marksOf);
    const { identity, mark, stale } = progress;
    if (identity !== undefined) present.add(identity);
    if (stale.length > 0) {
      const detail = describeStale(name, size, stale);
      faults.push({ event: "spend_segment_changed", detail, blocks: false });
    }
    if (size > (mark?.position ?? 0)) copied += await copySegment(books, { name, size, progress });
    else if (!inUse) idle.push({ name, size, modified: mtimeMs });
  }
  const closed = await books.sealing?.closeDays();
  faults.push(...(closed?.faults ?? []));
  // A day that has no head yet needs the lines of its segments.
  const keepLines = closed?.isComplete === false;
  faults.push(...(await deleteOldSegments(books, { idle, marks, present, keepLines })));
  faults.push(...(await store.maintain()));
  return { copied, faults };
}
