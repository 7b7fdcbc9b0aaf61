// Reads a segment of the spend log from where the last reading stopped, and yields the settled
// requests. Both lines of a request are in one segment, the open line first. The reader remembers
// the open lines of unsettled requests, and the ids of settled ones.
import { setImmediate as endOfTurn } from "node:timers/promises";
import {
  hashOfLines,
  parseSpendLine,
  type LogPlace,
  type OpenLine,
  type SegmentCursor,
  type SettleLine,
} from "../records/index.ts";
import { readLines } from "../days/index.ts";
import { firstIdIn } from "./segment-copies.ts";

/** A request that is settled. */
export interface Settled {
  /** Its first settle line, which is the one that counts. */
  readonly settle: SettleLine;
  /** The place of this line, and the hash of both lines. */
  readonly log: LogPlace;
  /** The number of the open line. 0: there is no open line. */
  readonly opened: number;
}

/** Consecutive lines of a segment. */
export interface SettledBatch {
  /** The requests that they settle, in the order of their settle lines. */
  readonly settled: readonly Settled[];
  /** Faulty lines: their numbers, and what is wrong, for the operator. */
  readonly problems: readonly { readonly line: number; readonly what: string }[];
  /** The bytes of the lines in the file. */
  readonly bytes: Buffer;
  /** How far the segment has been read after these lines. */
  readonly cursor: SegmentCursor;
}

/** A request with an open line but no settle line. */
export interface UnsettledRequest extends OpenLine {
  /** The number of its open line. */
  readonly line: number;
}

/** An open line whose settle line has not been read. */
interface UnsettledLine {
  readonly record: OpenLine;
  readonly line: number;
  readonly text: string;
}

/** Reads one segment. */
export interface SegmentReader {
  /** How far the segment was read. */
  cursor(): SegmentCursor;
  /** The requests that are unsettled in the part that was read. */
  unsettled(): readonly UnsettledRequest[];
  /** Reads on, up to byte `to`. */
  read(to: number): AsyncIterable<SettledBatch>;
}

/** How many lines to parse before yielding to the event loop: about two milliseconds. */
const LINES_A_TURN = 250;

/** Creates a reader at the beginning of the segment at `path`, whose file name is `segment`. */
export function createSegmentReader(path: string, segment: string): SegmentReader {
  /** The open lines of unsettled requests, by their spend_ids. */
  const open = new Map<string, UnsettledLine>();
  const settledIds = new Set<string>();
  let first = "";
  let bytes = 0;
  let lines = 0;
  const cursor = (): SegmentCursor => ({ first, bytes, lines, unsettled: open.size });

  /** Processes a line. Returns what is wrong with it. */
  function take(text: string, line: number, settled: Settled[]): string | undefined {
    if (line === 1) first = firstIdIn(text);
    const record = parseSpendLine(text);
    if (!record) return "is not a line of the spend log";
    const id = record.spend_id;
    const before = open.get(id);
    if (record.type === "open") {
      if (before || settledIds.has(id)) return `opens ${id} a second time`;
      open.set(id, { record, line, text });
      return undefined;
    }
    if (settledIds.has(id)) return `settles ${id} a second time, and does not count`;
    settledIds.add(id);
    open.delete(id);
    // A settle line without its open line is billed nevertheless: it has every field of a record.
    const log = { segment, line, sha256: hashOfLines(before?.text ?? "", text) };
    settled.push({ settle: record, log, opened: before?.line ?? 0 });
    return undefined;
  }

  return {
    cursor,
    unsettled: () => [...open.values()].map(({ record, line }) => ({ ...record, line })),
    async *read(to) {
      for await (const batch of readLines(path, { from: bytes, to })) {
        const settled: Settled[] = [];
        const problems = [];
        for (const text of batch.lines) {
          lines += 1;
          const what = take(text, lines, settled);
          if (what !== undefined) problems.push({ line: lines, what });
          if (lines % LINES_A_TURN === 0) await endOfTurn();
        }
        bytes += batch.bytes.length;
        yield { settled, problems, bytes: batch.bytes, cursor: cursor() };
      }
    },
  };
}
