// Reads the lines of a day's file in the order of the log, and selects records by a filter.
import { closeSync, openSync, readSync } from "node:fs";
import { setImmediate as endOfTurn } from "node:timers/promises";
import {
  parseUsageLine,
  type NumberedLine,
  type UsageBatch,
  type UsageLine,
  type UsageFilter,
  type UsageRecord,
} from "../records/index.ts";
import { BooksFault, copyOfPart, readLines } from "../days/index.ts";

/** A batch has at least this many bytes, but for the last one: about 200 lines. */
const BATCH_BYTES = 128 * 1024;

/** A range of bytes in the file of a day whose records all come from one segment. */
interface Run {
  readonly segment: string;
  readonly from: number;
  to: number;
  /** The number of its first line. */
  readonly line: number;
}

/** Parses a line of the file. */
export const parseLine = (text: string): UsageLine => ({ text, record: parseUsageLine(text) });

/**
 * Yields the lines in the first `to` bytes of a day's file in the order of the log. Within one
 * segment they have that order already.
 */
export async function* orderedLines(path: string, to: number): AsyncIterable<UsageBatch> {
  const runs = await runsIn(path, to);
  if (runs.length === 0) return; // There may be no file.
  runs.sort((one, other) => compareTexts(one.segment, other.segment));
  const fd = openSync(path, "r");
  try {
    let lines: NumberedLine[] = [];
    let parts: Buffer[] = [];
    let size = 0;
    for (const run of runs) {
      // Synchronous, which takes a tenth of the time: a day may have a run for each record.
      const bytes = Buffer.alloc(run.to - run.from);
      readSync(fd, bytes, 0, bytes.length, run.from);
      const texts = bytes.toString("utf8", 0, bytes.length - 1).split("\n");
      lines.push(...texts.map((text, at) => ({ ...parseLine(text), number: run.line + at })));
      parts.push(bytes);
      size += bytes.length;
      if (size < BATCH_BYTES && run !== runs.at(-1)) continue;
      await endOfTurn();
      yield { lines, bytes: Buffer.concat(parts) };
      [lines, parts, size] = [[], [], 0];
    }
  } finally {
    closeSync(fd);
  }
}

/**
 * The runs in the first `to` bytes of a file. Each pass appends one run for each segment. None is
 * longer than what is read at a time.
 */
async function runsIn(path: string, to: number): Promise<Run[]> {
  const runs: Run[] = [];
  let from = 0;
  let line = 1;
  for await (const { lines, bytes } of readLines(path, { to })) {
    let at = 0;
    let last: Run | undefined;
    for (const text of lines) {
      const segment = segmentIn(text);
      // Searched in the bytes, because the text is longer where they are not valid UTF-8.
      const next = bytes.indexOf("\n", at) + 1;
      if (last?.segment !== segment) {
        last = { segment: copyOfPart(segment), from: from + at, to: 0, line };
        runs.push(last);
      }
      last.to = from + next;
      at = next;
      line += 1;
    }
    from += at;
  }
  return runs;
}

const SEGMENT = '"log":{"segment":"';

/**
 * Finds the segment of a record without parsing its line. Quotes are escaped inside of strings, so
 * no string contains SEGMENT.
 */
function segmentIn(line: string): string {
  const at = line.lastIndexOf(SEGMENT) + SEGMENT.length;
  return line.slice(at, line.indexOf('"', at));
}

/** Compares by UTF-16 code units, as sort() does. */
export function compareTexts(one: string, other: string): number {
  if (one === other) return 0;
  return one < other ? -1 : 1;
}

/** The record of a line. Throws a BooksFault if it is not a usage record. */
export function recordOf(path: string, { text, record }: UsageLine): UsageRecord {
  if (record) return record;
  throw new BooksFault(`${path} holds a line that is not a usage record: ${text.slice(0, 80)}`);
}

/** The columns that a filter can test. */
const FILTERED = ["account", "model", "key_id", "provider"] as const;

type FilteredColumns = { readonly [column in (typeof FILTERED)[number]]: string | null };

/** Whether a record, or a sum of records, matches the filter's columns. Its days are not tested. */
export function matcherOf(filter: UsageFilter): (columns: FilteredColumns) => boolean {
  const names = FILTERED.filter((name) => filter[name] !== undefined);
  return (columns) => names.every((name) => (columns[name] ?? "") === filter[name]);
}

/** Whether a line may match a filter. It searches the text, so that most lines are not parsed. */
export function textMatcherOf(filter: UsageFilter): (text: string) => boolean {
  // An empty provider in a filter is null in a record.
  const columns = { ...filter, provider: filter.provider === "" ? null : filter.provider };
  const members = FILTERED.filter((name) => columns[name] !== undefined).map(
    (name) => `"${name}":${JSON.stringify(columns[name])}`,
  );
  return (text) => members.every((member) => text.includes(member));
}
