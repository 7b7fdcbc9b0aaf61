// Copies the settled requests of one segment into the usage store, from where the last sync
// stopped.
import { join } from "node:path";
import { syncToDisk } from "../../data-files/index.ts";
import type { Diagnose } from "../../../core/diagnose.ts";
import type { Mark, RecordKey, UsageRecord, UsageStore } from "../../usage-records/index.ts";
import { readLines, type LineBatch } from "../read-lines.ts";
import { decisive, isInterrupted } from "../spend-log/read-segment.ts";
import { parseSpendLine, type SettleRecord } from "../spend-log/records.ts";
import type { Retention } from "./retention.ts";
import type { Progress, SegmentReader } from "./segment-progress.ts";
import { usageRecord } from "./usage-record.ts";

/** Where to copy from and to. */
export interface CopyOptions {
  /** The folder of the segments. */
  readonly spendDir: string;
  /** Gets each batch of records together with its mark. */
  readonly store: UsageStore;
  /** Hashes what stands before a mark. */
  readonly reader: SegmentReader;
  /** Says of a segment whether its mark may have been dropped. */
  readonly retention: Retention;
  /** Told of lines that cannot be read. */
  readonly diagnose: Diagnose;
}

/** A segment of which not everything has been copied. */
export interface PendingSegment {
  /** Its file name in the folder. */
  readonly name: string;
  /** How much of it to copy, in bytes. */
  readonly size: number;
  /** Where copying goes on, and what contradicts the segment's content. */
  readonly progress: Progress;
}

/**
 * Requests whose settle lines were copied earlier, by their spend_ids. True: every line says
 * "interrupted", so a later line may correct the record.
 */
type SettledEarlier = Map<string, boolean>;

/**
 * Copies a segment, batch by batch, each with its mark. Resolves with the number of records that
 * were written.
 */
export async function copySegment(options: CopyOptions, segment: PendingSegment): Promise<number> {
  const { spendDir, store, reader } = options;
  const { name, size, progress } = segment;
  const { identity } = progress;
  if (identity === undefined) return 0;
  const path = join(spendDir, name);
  let mark = progress.mark;
  let earlier: SettledEarlier | undefined;
  // A power failure must not take lines from the spend log that the usage records have.
  await syncToDisk(path);
  const stored = await storedAlready(options, segment);
  let copied = 0;
  for await (const batch of readLines(path, { from: mark?.position, to: size })) {
    const settles = settlesIn(batch, name, options.diagnose);
    const recovered = (mark?.recovered ?? false) || settles.some(isInterrupted);
    // Only a segment that was recovered has more than one settle line of a request.
    if (recovered) earlier ??= await settledBefore(path, mark?.position ?? 0);
    const { records, corrections } = resolveSettles(settles, earlier ?? new Map());
    if (earlier) for (const settle of settles) noteSettled(earlier, settle);
    const added = records.filter(
      ({ usage_id }) => corrections.has(usage_id) || !stored.has(usage_id),
    );
    const tail = reader.tailAt(path, batch.end);
    const next: Mark = { segment: name, identity, position: batch.end, tail, recovered };
    await store.commit({ records: added, corrections, put: [next], drop: mark ? [mark] : [] });
    mark = next;
    copied += added.length;
  }
  return copied;
}

/** The settle lines of a batch. Lines that cannot be read are reported. */
function settlesIn({ lines, end }: LineBatch, segment: string, diagnose: Diagnose): SettleRecord[] {
  const records = lines.map(parseSpendLine);
  const unreadable = records.filter((record) => !record).length;
  if (unreadable > 0)
    diagnose({
      event: "spend_log_unreadable",
      level: "error",
      segment,
      lines: unreadable,
      before_byte: end,
    });
  return records.filter((record) => record?.type === "settle");
}

/**
 * Turns settle lines into records, one a request. Corrections replace a record that says
 * "interrupted".
 */
function resolveSettles(
  settles: readonly SettleRecord[],
  earlier: ReadonlyMap<string, boolean>,
): { readonly records: readonly UsageRecord[]; readonly corrections: ReadonlySet<string> } {
  const decided = new Map<string, SettleRecord>();
  for (const settle of settles) {
    const before = decided.get(settle.spend_id);
    decided.set(settle.spend_id, before ? decisive(before, settle) : settle);
  }
  const records: UsageRecord[] = [];
  const corrections = new Set<string>();
  for (const [id, settle] of decided) {
    const wasInterrupted = earlier.get(id);
    if (wasInterrupted === false || (wasInterrupted && isInterrupted(settle))) continue;
    if (wasInterrupted) corrections.add(id);
    records.push(usageRecord(settle));
  }
  return { records, corrections };
}

/** The requests that were settled before byte `to`. */
async function settledBefore(path: string, to: number): Promise<SettledEarlier> {
  const settled: SettledEarlier = new Map();
  for await (const { lines } of readLines(path, { to })) {
    for (const record of lines.map(parseSpendLine)) {
      if (record?.type === "settle") noteSettled(settled, record);
    }
  }
  return settled;
}

function noteSettled(settled: SettledEarlier, record: SettleRecord): void {
  const { spend_id: id } = record;
  settled.set(id, isInterrupted(record) && (settled.get(id) ?? true));
}

/**
 * The usage_ids of the rest of a segment that are stored although the mark does not say so: the
 * segment was another before, or is so old that its mark was dropped.
 */
async function storedAlready(
  { spendDir, store, retention }: CopyOptions,
  { name, size, progress: { mark, stale } }: PendingSegment,
): Promise<ReadonlySet<string>> {
  const isNew = stale.length === 0 && (mark !== undefined || !retention.isForgotten(name));
  if (isNew) return new Set();
  const keys: RecordKey[] = [];
  for await (const { lines } of readLines(join(spendDir, name), {
    from: mark?.position,
    to: size,
  })) {
    for (const record of lines.map(parseSpendLine)) {
      if (record?.type === "settle")
        keys.push({ usage_id: record.spend_id, ended_at: record.time });
    }
  }
  return store.holds(keys);
}
