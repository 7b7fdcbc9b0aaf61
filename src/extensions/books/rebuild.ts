// `books rebuild`: the usage records made anew from the spend log, for both stores.
import { join } from "node:path";
import { syncToDisk } from "./files.ts";
import { usageRecord, type SettleRecord, type UsageRecord } from "./records.ts";
import type { RebuildCounts } from "./usage-store.ts";
import { recover } from "./recovery.ts";
import { readSegment, type Mark } from "./segments.ts";
import { segmentsIn, strangersIn } from "./spend-log.ts";
import type { Ledger } from "./sync.ts";

/** `unreadable`: lines of the spend log that say nothing; what the usage records have of their requests was left as it was. */
export interface RebuildResult extends RebuildCounts {
  readonly unreadable: number;
  /** What was wrong with the usage records before. */
  readonly mended: readonly string[];
}

const BATCH = 1_000;
/** A segment as far as it was written when the rebuild began. */
interface Part {
  readonly path: string;
  readonly end: number;
}

/** The caller holds the books. */
export async function rebuildBooks(ledger: Ledger): Promise<RebuildResult> {
  const { dir, store, segments } = ledger;
  await recover(ledger);
  const faults = await store.inspect();
  const parts: Part[] = [];
  const marks = new Map<string, Mark>();
  let unreadable = 0;
  for (const detail of strangersIn(dir))
    ledger.diagnose({ event: "spend_segment_unreadable", level: "error", detail });
  for (const segment of segmentsIn(dir)) {
    const path = join(dir, segment);
    await syncToDisk(path); // a power failure must not take what the usage records have
    const problem = (text: string) => {
      if (text.endsWith("cannot be read")) unreadable += 1;
    };
    const { end, recovered } = await readSegment(path, Infinity, { problem });
    const identity = segments.identityOf(path);
    if (identity === undefined || end === 0) continue;
    parts.push({ path, end });
    const tail = segments.tailAt(path, end);
    const known = marks.get(identity);
    if (!known || known.position < end)
      marks.set(identity, { segment, identity, position: end, tail, recovered });
  }
  const gone = (await store.marks()).filter(
    ({ identity }) => identity !== null && !marks.has(identity),
  );
  const counts = await store.rebuild(() => settledIn(parts), [...gone, ...marks.values()]);
  const mended = faults.filter(({ blocks }) => blocks).map(({ detail }) => detail);
  return { ...counts, unreadable, mended };
}

/** Each settled request of the spend log, as a usage record. */
async function* settledIn(parts: readonly Part[]): AsyncGenerator<readonly UsageRecord[]> {
  for (const { path, end } of parts) {
    const settled: SettleRecord[] = [];
    await readSegment(path, end, { settled: (record) => settled.push(record) });
    while (settled.length > 0) yield settled.splice(0, BATCH).map(usageRecord);
  }
}
