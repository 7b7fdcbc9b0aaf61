// Deletes segments of the spend log that are empty or older than spend.keep_days, once everything
// in them is copied.
import { rmSync } from "node:fs";
import { join } from "node:path";
import type { Mark, StoreFault, UsageStore } from "../../usage-records/index.ts";
import { readLines } from "../read-lines.ts";
import { parseSpendLine } from "../spend-log/records.ts";
import type { Retention } from "./retention.ts";
import { retire, type RetiringSegment } from "./retired.ts";
import type { SegmentReader } from "./segment-progress.ts";

/** Where segments, marks and ages are looked up. */
export interface DeleteOptions {
  /** The folder of the segments. */
  readonly spendDir: string;
  /** The marks of deleted segments are removed from it. */
  readonly store: UsageStore;
  /** Tells the identities of segments. */
  readonly reader: SegmentReader;
  /** Says which segments and marks are old enough. */
  readonly retention: Retention;
}

/** A segment that no process writes, and of which an earlier pass has copied everything. */
export interface IdleSegment {
  /** Its file name in the folder. */
  readonly name: string;
  /** Bytes. */
  readonly size: number;
  /** When it was last written, in milliseconds since 1970. */
  readonly modified: number;
}

/** What a pass has found in the folder and in the store. */
export interface DeleteCandidates {
  /** Only segments in this list may be deleted. */
  readonly idle: readonly IdleSegment[];
  /** All that the store has. */
  readonly marks: readonly Mark[];
  /** The identities of all segments in the folder. */
  readonly present: ReadonlySet<string>;
  /** Only empty segments may be deleted. */
  readonly keepLines: boolean;
}

/**
 * Deletes old segments, and the marks of segments that are gone and too old to come back. The sums
 * of a segment are kept first. If that fails, which is a fault, old segments stay. Resolves with
 * the faults.
 */
export async function deleteOldSegments(
  options: DeleteOptions,
  { idle, marks, present, keepLines }: DeleteCandidates,
): Promise<readonly StoreFault[]> {
  const { spendDir, retention, reader, store } = options;
  const mayDelete = retention.isClockSteady() && !keepLines;
  const old = await oldSegments(options, idle, mayDelete);
  const withLines = old.filter(({ size }) => size > 0);
  const faults = await keepSums(spendDir, withLines);
  const deleted = new Set<string>();
  for (const { name, size, identity } of old) {
    if (size > 0 && faults.length > 0) continue;
    const path = join(spendDir, name);
    deleted.add(identity);
    reader.forget(path);
    rmSync(path);
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

/** Those segments that are empty or, if the clock can be believed, expired. */
async function oldSegments(
  { spendDir, retention, reader }: DeleteOptions,
  idle: readonly IdleSegment[],
  mayDelete: boolean,
): Promise<readonly RetiringSegment[]> {
  const old: RetiringSegment[] = [];
  for (const segment of idle) {
    const { name, size } = segment;
    const path = join(spendDir, name);
    const isExpired = () => retention.isExpired(segment, () => newestLine(path));
    const isOld = size === 0 || (mayDelete && (await isExpired()));
    if (isOld) old.push({ name, size, identity: reader.identityOf(path) ?? "" });
  }
  return old;
}

async function keepSums(
  spendDir: string,
  segments: readonly RetiringSegment[],
): Promise<readonly StoreFault[]> {
  try {
    await retire(spendDir, segments);
    return [];
  } catch (error) {
    const { message } = error as Error;
    const detail =
      "segments older than spend.keep_days stay, " +
      `because what they come to cannot be kept: ${message}`;
    return [{ event: "spend_sums_not_kept", detail, blocks: false }];
  }
}

/**
 * The time of the newest line of a segment, in milliseconds since 1970. Undefined if no line has a
 * time.
 */
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
