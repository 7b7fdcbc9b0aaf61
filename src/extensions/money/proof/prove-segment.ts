// Compares one segment with the hashes of its first bytes in lines of closed days and in heads that
// somebody kept elsewhere. Notes on which days its requests are booked, for a second pass that
// compares the records.
import { createHash } from "node:crypto";
import { statSync } from "node:fs";
import { join } from "node:path";
import { brokenFile, type Coverage, type Listing } from "../days/index.ts";
import type { LogCursor, SegmentCursor } from "../records/index.ts";
import { createSegmentReader, type UnsettledRequest } from "../usage/index.ts";
import type { Findings } from "./findings.ts";

/** The spend log, and everything that it is compared with. */
export interface Log {
  /** The folder of the segments. */
  readonly spendDir: string;
  /** The segments that the lines of closed days list. */
  readonly coverage: Coverage;
  /** The entries of a segment in lines of closed days and in kept heads, fewest bytes first. */
  listings(segment: string): readonly Listing[];
  /** How far the segments were copied. */
  readonly cursor: LogCursor;
  /** The segments that were read so far, by name, in their order. */
  readonly segments: ReadonlyMap<string, ProvedSegment>;
  /** Receives everything that is wrong. */
  readonly findings: Findings;
}

/** What is proved of a segment. `seal verify --json` prints it. */
export interface SegmentProof {
  /** Its path in data_dir. */
  readonly file: string;
  /** How many lines it has. */
  readonly lines: number;
  /** How many of its first lines match the hash in days.jsonl or in a kept head. */
  readonly proved: number;
  /** Names the line or head with that hash. Null: nothing proves any line. */
  readonly by: string | null;
  /** Bytes after the last whole line. */
  readonly torn_bytes: number;
}

/** A segment that was read to its end. */
export interface ProvedSegment {
  /** What is proved of it. */
  readonly proof: SegmentProof;
  /** The position after its last whole line. */
  readonly end: SegmentCursor;
  /** Requests that settle in the first `dueLines` lines must have a usage record. */
  readonly dueLines: number;
  /** For each day on which its requests are booked: the byte up to which it must be read. */
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
  let lastProved: Listing | undefined;
  for (const listing of listings) {
    await readTo(listing.bytes);
    if (hash.copy().digest("hex") !== listing.sha256) {
      findings.add(
        `${file}, lines ${(lastProved?.lines ?? 0) + 1} to ${listing.lines}`,
        `are not the bytes that ${listing.by} has: they were changed, removed, inserted or moved`,
      );
      break;
    }
    lastProved = listing;
  }
  const end = await readTo(size);
  if (cursor && size < cursor.bytes)
    findings.add(`${file}, line ${end.lines + 1}`, brokenFile(path, size, cursor.bytes));
  const unsettled = reader.unsettled();
  for (const { spend_id: id, time, line } of unsettled) {
    const day = time.slice(0, 10);
    // A day closes only when all of its requests are settled.
    if (coverage.bookedDay(name, Infinity, time) > day)
      findings.add(`${file}, line ${line}`, `${id}: opened on ${day}, never settled`);
  }
  const { lines: proved = 0, by = null } = lastProved ?? {};
  return {
    proof: { file, lines: end.lines, proved, by, torn_bytes: size - end.bytes },
    end,
    dueLines: Math.max(cursor?.lines ?? 0, listings.at(-1)?.lines ?? 0),
    days,
    unsettled,
  };
}
