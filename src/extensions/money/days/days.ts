// The days of the books: `days.jsonl` in data_dir, one line a closed day. A line says what the
// spend log and the usage records of the day are, byte by byte, and has the hash of the line
// before, so the last line vouches for everything. It is signed where the configuration has a key.
import { readFileSync, statSync } from "node:fs";
import { appendFile, truncate } from "node:fs/promises";
import { dirname } from "node:path";
import { asObject, parseJson } from "../../../core/schema/untrusted-json.ts";
import { syncToDisk } from "../../scale/data-files/index.ts";
import { isDay } from "../records/index.ts";

/** What mends a file of the books that is not as it was left, for the operator. */
export const MENDING = "stop the gateway, restore data_dir, run 'books rebuild' and start again";

/** A file of the books is damaged or lost. Nothing is written until somebody has mended it. */
export class BooksFault extends Error {}

/** A segment of the spend log as it was when a day was closed. */
export interface DaySegment {
  /** Its file name. */
  readonly segment: string;
  /** The spend_id of its first line. */
  readonly first: string;
  /** Bytes from its beginning that were copied by then. */
  readonly bytes: number;
  /** Lines in these bytes. */
  readonly lines: number;
  /** SHA-256 of these bytes. */
  readonly sha256: string;
}

/** What a line states about the usage records of its day. */
export interface DayRecords {
  /** How many usage records are booked on the day. */
  readonly records: number;
  /** What they come to: exact decimal numbers by currency. */
  readonly cost: Readonly<Record<string, string>>;
  /** Bytes of the lines of these records, line ends included. */
  readonly file_bytes: number;
  /** SHA-256 of these bytes, in the order of the log: by segment, then by line. */
  readonly file_sha256: string;
  /** Merkle root over these lines (merkle.ts). */
  readonly root: string;
}

/** What a line says of a closed day. */
export interface ClosedDay extends DayRecords {
  /** `YYYY-MM-DD` in UTC. */
  readonly day: string;
  /** 1 for the first line. Each has one more than the line before. */
  readonly number: number;
  /** SHA-256 of the line before, without its line end. Null: it is the first. */
  readonly previous: string | null;
  /** All segments that had more bytes than at the line before. */
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
  /** As it stands there, without its line end. */
  readonly text: string;
  /** What it says. */
  readonly closed: ClosedDay;
}

/** The file of closed days. */
export interface Days {
  /** The path of the file. */
  readonly path: string;
  /** All lines. Throws a BooksFault if the file is shorter than it was, or a line is none. */
  all(): readonly DaysLine[];
  /** The last day that is closed. Empty, which is before all days: none. */
  lastDay(): string;
  /** The line of a day. Undefined: it is not closed. */
  of(day: string): DaysLine | undefined;
  /** Adds a line, and brings it to the disk. */
  append(text: string): Promise<void>;
}

/** Reads a line. Undefined: it is no line of a closed day. */
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

/** The days of a data_dir. What was read is remembered as long as the file has the same size. */
export function createDays(path: string): Days {
  let known: readonly DaysLine[] = [];
  let knownBytes = 0;
  let knownSize = 0;

  function all(): readonly DaysLine[] {
    // Every look at a day asks, so the file is not read each time.
    const found = statSync(path, { throwIfNoEntry: false });
    const size = found?.size ?? 0;
    if (size === knownSize) return known;
    // Days that are closed would be closed again, without their records.
    if (size < knownBytes) throw new BooksFault(brokenFile(path, found ? size : -1, knownBytes));
    const bytes = size === 0 ? Buffer.alloc(0) : readFileSync(path);
    // A last line without an end was cut short by a power failure: its day is not closed.
    const whole = bytes.subarray(0, bytes.lastIndexOf("\n") + 1);
    known = whole.toString().split("\n").slice(0, -1).map(parse);
    knownBytes = whole.length;
    knownSize = bytes.length;
    return known;
  }

  function parse(text: string, index: number): DaysLine {
    const closed = parseClosedDay(text);
    if (!closed)
      throw new BooksFault(`${path}: line ${index + 1} is no line of a closed day: ${MENDING}`);
    return { text, closed };
  }

  return {
    path,
    all,
    lastDay: () => all().at(-1)?.closed.day ?? "",
    of: (day) => all().find(({ closed }) => closed.day === day),
    async append(text) {
      all();
      if (knownSize > knownBytes) await truncate(path, knownBytes);
      await appendFile(path, `${text}\n`, { mode: 0o600, flush: true });
      await syncToDisk(dirname(path));
    },
  };
}

/** Of a file of the books that has less than it had. `size` -1: it is not there. */
export const brokenFile = (path: string, size: number, bytes: number): string =>
  `${path} ${size < 0 ? "is not there" : `has ${size} bytes`}, although ${bytes} bytes of it ` +
  `were written: ${MENDING}`;
