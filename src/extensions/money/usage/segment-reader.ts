// Reads a segment of the spend log line by line, from wherever the last reading stopped, and yields
// the requests that have been settled. Both lines of a request stand in one segment, the open line
// first. Nothing but what is unsettled, and the ids of what is settled, is held in memory.
import { setImmediate as endOfTurn } from "node:timers/promises";
import {
  hashOfLines,
  parseSpendLine,
  type LogPlace,
  type OpenRecord,
  type SegmentCursor,
  type SettleRecord,
} from "../records/index.ts";
import { readLines } from "../days/index.ts";
import { firstIdIn } from "./segment-copies.ts";

/** A request that is settled. */
export interface Settled {
  /** The settle line that counts: the first one. */
  readonly settle: SettleRecord;
  /** Where it stands, and the hash of both lines. */
  readonly log: LogPlace;
  /** The number of the open line. 0: there is none. */
  readonly opened: number;
}

/** The lines of some bytes of a segment. */
export interface SettledBatch {
  /** In the order of their settle lines. */
  readonly settled: readonly Settled[];
  /** Lines that should not be there, by their number, and what is wrong, for the operator. */
  readonly problems: readonly { readonly line: number; readonly what: string }[];
  /** The lines as they stand in the file. */
  readonly bytes: Buffer;
  /** How far the segment has been read by now. */
  readonly cursor: SegmentCursor;
}

/** A request that is opened and not settled. */
export interface UnsettledRequest extends OpenRecord {
  /** The number of its open line. */
  readonly line: number;
}

/** An open line whose settle line has not been read. */
interface OpenLine {
  readonly record: OpenRecord;
  readonly line: number;
  readonly text: string;
}

/** Reads one segment. */
export interface SegmentReader {
  /** How far it was read. */
  cursor(): SegmentCursor;
  /** The requests that are not settled, as far as it was read. */
  unsettled(): readonly UnsettledRequest[];
  /** Reads on, to byte `to` at most. */
  read(to: number): AsyncIterable<SettledBatch>;
}

/** Lines that are parsed before requests get a turn: some two milliseconds. */
const LINES_A_TURN = 250;

/** A reader at the beginning of the segment at `path`, whose file name is `segment`. */
export function createSegmentReader(path: string, segment: string): SegmentReader {
  /** The requests that are not settled, with their open lines. */
  const open = new Map<string, OpenLine>();
  const settledIds = new Set<string>();
  let first = "";
  let bytes = 0;
  let lines = 0;
  const cursor = (): SegmentCursor => ({ first, bytes, lines, unsettled: open.size });

  /** Takes a line. Returns what is wrong with it. */
  function take(text: string, line: number, settled: Settled[]): string | undefined {
    if (line === 1) first = firstIdIn(text);
    const record = parseSpendLine(text);
    if (!record) return "is no line of the spend log";
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
    // A settle line whose open line is gone is billed all the same: it says everything.
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
