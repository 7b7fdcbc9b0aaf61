// Takes over the marks of versions that knew segments by name only.
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Mark, RecordKey, UsageStore } from "../../usage-records/index.ts";
import { readLines } from "../read-lines.ts";
import { parseSpendLine } from "../spend-log/records.ts";
import type { SegmentReader } from "./segment-progress.ts";

/** How far before a mark its last settled request is looked for. */
const LOOK_BACK_BYTES = 256 * 1024;

/** Where segments and marks are. */
export interface OldMarksOptions {
  /** The folder of the segments. */
  readonly spendDir: string;
  /** Knows the records, and gets the new marks in the place of the old ones. */
  readonly store: UsageStore;
  /** Tells the identities of segments. */
  readonly reader: SegmentReader;
}

/**
 * Turns marks without an identity into marks of the segments that now have their names. A segment
 * can be the one that was copied if a line ends at the mark's position, and the last request
 * settled before it is in the usage records. If not, the segment is another, and the mark is kept
 * as one that does not match, so that nothing is copied twice. Resolves with all marks.
 */
export async function adoptOldMarks(
  { spendDir, store, reader }: OldMarksOptions,
  marks: readonly Mark[],
): Promise<readonly Mark[]> {
  const old = marks.filter(({ identity }) => identity === null);
  if (old.length === 0) return marks;
  const candidates: { readonly mark: Mark; readonly last: RecordKey | undefined }[] = [];
  for (const { segment, position } of old) {
    const path = join(spendDir, segment);
    const identity = existsSync(path) ? reader.identityOf(path) : undefined;
    if (identity === undefined) continue;
    const tail = reader.tailAt(path, position);
    const last = tail === "" ? undefined : await lastSettled(path, position);
    candidates.push({ mark: { segment, identity, position, tail, recovered: false }, last });
  }
  const stored = await store.holds(candidates.flatMap(({ last }) => last ?? []));
  const put = candidates.map(({ mark, last }) =>
    last === undefined || stored.has(last.usage_id) ? mark : { ...mark, tail: "" },
  );
  await store.commit({ records: [], corrections: new Set(), put, drop: old });
  return [...marks.filter(({ identity }) => identity !== null), ...put];
}

/** The last request that was settled shortly before `position`. Undefined if none was. */
async function lastSettled(path: string, position: number): Promise<RecordKey | undefined> {
  let last: RecordKey | undefined;
  const from = Math.max(0, position - LOOK_BACK_BYTES);
  for await (const { lines } of readLines(path, { from, to: position })) {
    for (const record of lines.map(parseSpendLine)) {
      if (record?.type === "settle") last = { usage_id: record.spend_id, ended_at: record.time };
    }
  }
  return last;
}
