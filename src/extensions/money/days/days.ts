// The closed days: `days.jsonl` in data_dir, one line for each. A line has hashes of the spend log
// and of the day's usage records, and the hash of the line before, so the last line proves all of
// them. It is signed if `seals` is enabled.
import { readFileSync, statSync } from "node:fs";
import { appendFile, truncate } from "node:fs/promises";
import { dirname } from "node:path";
import { asObject, parseJson } from "../../../core/schema/untrusted-json.ts";
import { syncToDisk, writeError } from "../../scale/data-files/index.ts";
import { isDay, type SegmentCursor } from "../records/index.ts";

/** How the operator repairs a damaged file of the books. */
export const REPAIR = "stop the gateway, restore data_dir, run 'books rebuild' and start again";

/** A file of the books is damaged or lost. Nothing is written until the operator repairs it. */
export class BooksFault extends Error {}

/** A segment of the spend log, and how far it was copied when a day was closed. */
export interface DaySegment extends Pick<SegmentCursor, "first" | "bytes" | "lines"> {
  /** Its file name. */
  readonly segment: string;
  /** SHA-256 of these bytes. */
  readonly sha256: string;
}

/** The usage records of a day, as its line states them. */
export interface DayRecords {
  /** How many usage records are booked on the day. */
  readonly records: number;
  /** Their total cost by currency, as exact decimal numbers. */
  readonly cost: Readonly<Record<string, string>>;
  /** Bytes of the lines of these records, line ends included. */
  readonly file_bytes: number;
  /** SHA-256 of these bytes, in the order of the log: by segment, then by line. */
  readonly file_sha256: string;
  /** Merkle root over these lines (merkle.ts). */
  readonly root: string;
}

/** The content of a line of days.jsonl. */
export interface ClosedDay extends DayRecords {
  /** `YYYY-MM-DD` in UTC. */
  readonly day: string;
  /** The number of the line. The first line has 1. */
  readonly number: number;
  /** SHA-256 of the line before, without its line end. Null: this is the first line. */
  readonly previous: string | null;
  /** All segments that have grown since the line before. */
  readonly segments: readonly DaySegment[];
  /** When the line was made: ISO 8601 in UTC. */
  readonly made_at: string;
  /** 64 hex digits: the Ed25519 key that signed the line. Absent: it is not signed. */
  readonly public_key?: string;
  /** 128 hex digits: the signature of the line without this member. */
  readonly signature?: string;
}

/** A line of days.jsonl. */
export interface DaysLine {
  /** The line without its line end. */
  readonly text: string;
  /** The parsed line. */
  readonly closed: ClosedDay;
}

/** The file of closed days. */
export interface Days {
  /** The path of the file. */
  readonly path: string;
  /** All lines. Throws a BooksFault if the file has become shorter, or a line is malformed. */
  all(): readonly DaysLine[];
  /** The last closed day. If there is none: "", which sorts before all days. */
  lastDay(): string;
  /** The line of a day. Undefined: the day is not closed. */
  of(day: string): DaysLine | undefined;
  /** Adds a line, and flushes it to the disk. */
  append(text: string): Promise<void>;
}

/** Reads a line. Undefined: it is not a closed day's line. */
export function parseClosedDay(text: string): ClosedDay | undefined {
  const line = asObject(parseJson(text));
  const isReadable =
    isDay(line["day"]) &&
    Number.isSafeInteger(line["number"]) &&
    Array.isArray(line["segments"]) &&
    typeof line["root"] === "string" &&
    typeof line["file_sha256"] === "string";
  return isReadable ? (line as unknown as ClosedDay) : undefined;
}

/** The closed days in the file at `path`. The lines are cached as long as its size is the same. */
export function createDays(path: string): Days {
  let known: readonly DaysLine[] = [];
  let knownBytes = 0;
  let knownSize = 0;

  function all(): readonly DaysLine[] {
    const found = statSync(path, { throwIfNoEntry: false });
    const size = found?.size ?? 0;
    if (size === knownSize) return known;
    // Otherwise a closed day whose line is lost would be closed again, without its records.
    if (size < knownBytes) throw new BooksFault(brokenFile(path, found ? size : -1, knownBytes));
    const bytes = size === 0 ? Buffer.alloc(0) : readFileSync(path);
    // A power failure may cut off the last line. Its day is not closed then.
    const whole = bytes.subarray(0, bytes.lastIndexOf("\n") + 1);
    known = whole.toString().split("\n").slice(0, -1).map(parse);
    knownBytes = whole.length;
    knownSize = bytes.length;
    return known;
  }

  function parse(text: string, index: number): DaysLine {
    const closed = parseClosedDay(text);
    if (!closed)
      throw new BooksFault(`${path}: line ${index + 1} is not a closed day's line: ${REPAIR}`);
    return { text, closed };
  }

  return {
    path,
    all,
    lastDay: () => all().at(-1)?.closed.day ?? "",
    of: (day) => all().find(({ closed }) => closed.day === day),
    async append(text) {
      const before = all();
      const beginning = knownBytes;
      if (knownSize > beginning) await truncate(path, beginning);
      const options = { mode: 0o600, flush: true };
      await appendFile(path, `${text}\n`, options).catch((error: Error) => {
        throw writeError(error, path);
      });
      // Not read again: with a clock that was years behind, thousands of days close at once. all()
      // may have read the new line already, while it was flushed.
      known = [...before, parse(text, before.length)];
      knownBytes = beginning + Buffer.byteLength(text) + 1;
      knownSize = knownBytes;
      await syncToDisk(dirname(path));
    },
  };
}

/** Stands in the cursor for the bytes of each segment until `books rebuild` has ended. */
export const REBUILDING = Number.MAX_SAFE_INTEGER;

/** The error text for a file that is shorter than the `bytes` written. `size` -1: it is gone. */
export const brokenFile = (path: string, size: number, bytes: number): string =>
  bytes === REBUILDING
    ? "the last 'books rebuild' has not ended: stop the gateway, run it again and start"
    : `${path} ${size < 0 ? "is not there" : `has ${size} bytes`}, although ${bytes} bytes of it ` +
      `were written: ${REPAIR}`;
