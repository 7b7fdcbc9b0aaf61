// Marks of versions that knew segments by their names only, taken over.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { readLines } from "./files.ts";
import { parseSpendLine } from "./records.ts";
import type { Mark } from "./segments.ts";
import type { Ledger } from "./sync.ts";

/** Marks that know their segments by name only become marks of what now has that name, if it can be what was copied: the position
 * is the end of a line, and the last request that was settled before it is in the usage records. Otherwise the segment is another,
 * and its mark is kept as one that does not fit, so that what has been copied of it is not copied again. */
export async function adoptOldMarks(
  { dir, store, segments }: Ledger,
  marks: readonly Mark[],
): Promise<readonly Mark[]> {
  const old = marks.filter(({ identity }) => identity === null);
  if (old.length === 0) return marks;
  const candidates: { mark: Mark; last: { usage_id: string; ended_at: string } | undefined }[] = [];
  for (const { segment, position } of old) {
    const path = join(dir, segment);
    const identity = existsSync(path) ? segments.identityOf(path) : undefined;
    if (identity === undefined) continue;
    const tail = segments.tailAt(path, position);
    const last = tail === "" ? undefined : await lastSettled(path, position);
    candidates.push({ mark: { segment, identity, position, tail, recovered: false }, last });
  }
  const held = await store.holds(candidates.flatMap(({ last }) => last ?? []));
  const put = candidates.map(({ mark, last }) =>
    last === undefined || held.has(last.usage_id) ? mark : { ...mark, tail: "" },
  );
  await store.commit({ records: [], corrections: new Set(), put, drop: old });
  return [...marks.filter(({ identity }) => identity !== null), ...put];
}

const LOOK_BACK_BYTES = 256 * 1024;
/** The last request that was settled before `position`; undefined if none was in the last stretch before it. */
async function lastSettled(path: string, position: number) {
  let last: { usage_id: string; ended_at: string } | undefined;
  for await (const { lines } of readLines(
    path,
    Math.max(0, position - LOOK_BACK_BYTES),
    position,
  )) {
    for (const record of lines.map(parseSpendLine)) {
      if (record?.type === "settle") last = { usage_id: record.spend_id, ended_at: record.time };
    }
  }
  return last;
}
