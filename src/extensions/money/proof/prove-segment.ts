// One segment against the lines of closed days, and against heads that were kept: the hashes of its
// first bytes. What its lines say is noted on the way; the records are compared in a second pass.
import { createHash } from "node:crypto";
import { statSync } from "node:fs";
import { join } from "node:path";
import { brokenFile, type Coverage, type Listing } from "../days/index.ts";
import type { LogCursor, SegmentCursor } from "../records/index.ts";
import { createSegmentReader, type UnsettledRequest } from "../usage/index.ts";
import type { Findings } from "./findings.ts";

/** The spend log, and what is known of it. */
export interface Log {
  /** The folder of the segments. */
  readonly spendDir: string;
  /** What the lines of closed days say of segments. */
  readonly coverage: Coverage;
  /** The same, and what heads say that were kept. The fewest bytes first. */
  listings(segment: string): readonly Listing[];
  /** How far the segments were copied. */
  readonly cursor: LogCursor;
  /** The segments that were read, by name, in their order. */
  readonly segments: ReadonlyMap<string, ProvedSegment>;
  /** Receives everything that is wrong. */
  readonly findings: Findings;
}

/** What is proved of a segment. `seal verify --json` prints it. */
export interface SegmentProof {
  /** Its path in data_dir. */
  readonly file: string;
  /** Its lines. */
  readonly lines: number;
  /** Lines that days.jsonl, or a head that was kept, has as they are. */
  readonly proved: number;
  /** What has the last of these. Null: nothing has any. */
  readonly by: string | null;
  /** Bytes after the last whole line. */
  readonly torn_bytes: number;
}

/** A segment that was read to its end. */
export interface ProvedSegment {
  /** What is proved of it. */
  readonly proof: SegmentProof;
  /** The last whole line. */
  readonly end: SegmentCursor;
  /** The records should have its requests up to this line. */
  readonly dueLines: number;
  /** For each day on which requests of it are booked, up to which byte. */
  readonly days: ReadonlyMap<string, number>;
  /** Requests that were opened and not settled. */
  readonly unsettled: readonly UnsettledRequest[];
}

/** Reads a segment to its end, and reports what is wrong with it. */
export async function proveSegment(name: string, log: Log): Promise<ProvedSegment> {
  const { spendDir, coverage, findings } = log;
  const cursor = log.cursor[name];
  const file = `spend/${name}`;
  const path = join(spendDir, name);
  const { size } = statSync(path);
  const reader = createSegmentReader(path, name);
  const hash = createHash("sha256");
  const days = new Map<string, number>();

  async function readTo(to: number): Promise<SegmentCursor> {
    for await (const batch of reader.read(to)) {
      hash.update(batch.bytes);
      for (const { line, what } of batch.problems) findings.add(`${file}, line ${line}`, what);
      for (const { settle, log: place } of batch.settled)
        days.set(coverage.bookedDay(name, place.line, settle.time), batch.cursor.bytes);
    }
    return reader.cursor();
  }

  const listings = log.listings(name);
  let good: Listing | undefined;
  for (const listing of listings) {
    const { bytes } = await readTo(listing.bytes);
    if (bytes !== listing.bytes || hash.copy().digest("hex") !== listing.sha256) {
      findings.add(
        `${file}, lines ${(good?.lines ?? 0) + 1} to ${listing.lines}`,
        `are not the bytes that ${listing.by} has: they were changed, removed, inserted or moved`,
      );
      break;
    }
    good = listing;
  }
  const end = await readTo(size);
  if (cursor && size < cursor.bytes)
    findings.add(`${file}, line ${end.lines + 1}`, brokenFile(path, size, cursor.bytes));
  const unsettled = reader.unsettled();
  for (const { spend_id: id, time, line } of unsettled) {
    const day = time.slice(0, 10);
    // A request of a closed day is settled: else the day would not be closed.
    if (coverage.bookedDay(name, Infinity, time) > day)
      findings.add(`${file}, line ${line}`, `${id}: opened on ${day}, never settled`);
  }
  const { lines: proved = 0, by = null } = good ?? {};
  return {
    proof: { file, lines: end.lines, proved, by, torn_bytes: size - end.bytes },
    end,
    dueLines: Math.max(cursor?.lines ?? 0, listings.at(-1)?.lines ?? 0),
    days,
    unsettled,
  };
}
