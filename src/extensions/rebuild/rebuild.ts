// Makes the usage records anew from the spend log, in whichever store they are.
import { join } from "node:path";
import { syncToDisk } from "../data-files/index.ts";
import type { Mark, RebuildCounts, UsageRecord } from "../usage-records/index.ts";
import {
  readSegment,
  recover,
  segmentsIn,
  strangersIn,
  usageRecord,
  type BooksFiles,
  type SettleRecord,
} from "../books/index.ts";

/** How many records are handed to the store at once. */
const BATCH = 1_000;

/** What a rebuild did. */
export interface RebuildResult extends RebuildCounts {
  /**
   * Lines of the spend log that cannot be read. The usage records of their requests stayed as they
   * were.
   */
  readonly unreadable: number;
  /** What was so wrong with the usage records before that nothing could be written to them. */
  readonly mended: readonly string[];
}

/** A segment as far as it was written when the rebuild began. */
interface SegmentPart {
  readonly path: string;
  /** Bytes. */
  readonly end: number;
}

/** The spend log when the rebuild began. */
interface SpendLogState {
  readonly parts: readonly SegmentPart[];
  /** The mark of each segment, by its identity. Of copies of one segment the longest counts. */
  readonly marks: ReadonlyMap<string, Mark>;
  /** Lines that cannot be read. */
  readonly unreadable: number;
}

/** Rebuilds the usage records. The caller holds the lock of the books. */
export async function rebuildBooks(books: BooksFiles): Promise<RebuildResult> {
  const { spendDir, store, diagnose } = books;
  await recover(books);
  const faults = await store.inspect();
  for (const detail of strangersIn(spendDir))
    diagnose({ event: "spend_segment_unreadable", level: "error", detail });
  const { parts, marks, unreadable } = await readSpendLog(books);
  const gone = (await store.marks()).filter(
    ({ identity }) => identity !== null && !marks.has(identity),
  );
  const counts = await store.rebuild(() => settledIn(parts), [...gone, ...marks.values()]);
  const mended = faults.filter(({ blocks }) => blocks).map(({ detail }) => detail);
  return { ...counts, unreadable, mended };
}

async function readSpendLog({ spendDir, reader }: BooksFiles): Promise<SpendLogState> {
  const parts: SegmentPart[] = [];
  const marks = new Map<string, Mark>();
  let unreadable = 0;
  for (const segment of segmentsIn(spendDir)) {
    const path = join(spendDir, segment);
    // A power failure must not take lines from the spend log that the usage records have.
    await syncToDisk(path);
    const problem = (text: string): void => {
      if (text.endsWith("cannot be read")) unreadable += 1;
    };
    const { end, recovered } = await readSegment(path, { problem });
    const identity = reader.identityOf(path);
    if (identity === undefined || end === 0) continue;
    parts.push({ path, end });
    const tail = reader.tailAt(path, end);
    const known = marks.get(identity);
    if (!known || known.position < end)
      marks.set(identity, { segment, identity, position: end, tail, recovered });
  }
  return { parts, marks, unreadable };
}

/** Yields each settled request as a usage record. */
async function* settledIn(parts: readonly SegmentPart[]): AsyncGenerator<readonly UsageRecord[]> {
  for (const { path, end } of parts) {
    const settled: SettleRecord[] = [];
    await readSegment(path, { to: end, settled: (record) => settled.push(record) });
    while (settled.length > 0) yield settled.splice(0, BATCH).map(usageRecord);
  }
}
