// Where the records of a day are read from, line by line: files of data_dir as they are, byte by
// byte, or whatever store there is.
import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { parseUsageLine, type DayLine, type LogCursor, type UsageStore } from "../records/index.ts";
import { brokenFile, createDays, readLines, type ClosedDay } from "../days/index.ts";
import { createDayFiles, segmentIn } from "../file-store/index.ts";
import type { Findings } from "./findings.ts";

/** A line of a day, and where it stands. */
export interface RecordLine extends DayLine {
  /** The first line has 1. */
  readonly line: number;
}

/** Some lines of a day. */
export interface RecordBatch {
  readonly lines: readonly RecordLine[];
  /** The lines as their file has them. Absent: they are not read from one, or not in its order. */
  readonly bytes?: Buffer;
}

/** Some lines of a file, in its order. */
type FileBatch = Required<RecordBatch>;

export interface RecordSource {
  /** How far the log was copied when the source was made. */
  readonly cursor: LogCursor;
  /** The days that may have records. */
  days(): Promise<readonly string[]>;
  /** The lines of a day: as the file of a closed day has them, else in the order of the log. */
  linesOf(day: string): AsyncIterable<RecordBatch>;
  /** What is read for a day, for the operator. */
  nameOf(day: string): string;
}

/** The records in any store. */
export async function sourceOfStore(store: UsageStore): Promise<RecordSource> {
  return {
    cursor: await store.cursor(),
    days: store.days,
    async *linesOf(day) {
      let line = 0;
      for await (const lines of store.linesOf(day)) {
        const first = line;
        line += lines.length;
        yield { lines: lines.map((each, index) => ({ ...each, line: first + index + 1 })) };
      }
    },
    nameOf: (day) => `usage records of ${day}`,
  };
}

/** The records in the files of a data_dir, as they are when it is called. */
export function sourceOfFiles(
  dataDir: string,
  days: readonly ClosedDay[],
  findings: Findings,
): RecordSource {
  const last = days.at(-1)?.day ?? "";
  const nameOf = (day: string): string => `usage/${day}.jsonl`;
  const files = createDayFiles(join(dataDir, "usage"), createDays(join(dataDir, "days.jsonl")));
  const cursor = readCursor();

  function readCursor(): ReturnType<typeof files.read> {
    try {
      return files.read();
    } catch (error) {
      findings.add("usage/cursor.json", (error as Error).message);
      return { segments: {}, days: {} };
    }
  }

  const openDays = Object.keys(cursor.days).filter((day) => day > last);
  const newest = openDays.sort().at(-1) ?? "";
  for (const day of daysWithFiles(dataDir))
    if (day > last && day < newest && !openDays.includes(day))
      findings.add(
        `days.jsonl, line ${days.length + 1}`,
        `is gone: ${nameOf(day)} is there, and the cursor counts it no more as an open day`,
      );

  async function* linesOf(day: string): AsyncGenerator<RecordBatch> {
    const path = files.pathOf(day);
    const size = statSync(path, { throwIfNoEntry: false })?.size ?? -1;
    const counted = cursor.days[day] ?? 0;
    if (day > last && size < counted) findings.add(nameOf(day), brokenFile(path, size, counted));
    if (size <= 0) return;
    if (day > last) return yield* orderedLines(path, Math.min(size, counted));
    let end = 0;
    let count = 0;
    for await (const batch of numberedLines(path, { from: 0, to: size, line: 1 })) {
      end += batch.bytes.length;
      count += batch.lines.length;
      yield batch;
    }
    if (end < size)
      findings.add(`${nameOf(day)}, line ${count + 1}`, "has no end: it was added, or cut short");
  }

  return {
    cursor: cursor.segments,
    days: async () => [...days.map(({ day }) => day), ...openDays].sort(),
    linesOf,
    nameOf,
  };
}

const daysWithFiles = (dataDir: string): readonly string[] =>
  existsSync(join(dataDir, "usage"))
    ? readdirSync(join(dataDir, "usage"))
        .filter((name) => /^\d{4}-\d\d-\d\d\.jsonl$/.test(name))
        .map((name) => name.slice(0, 10))
    : [];

/** Some bytes of a file of records, which begin with line `line`. */
interface Run {
  readonly from: number;
  to: number;
  readonly line: number;
}

/** The lines of an open day in the order of the log: within a segment its file has it already. */
async function* orderedLines(path: string, to: number): AsyncGenerator<RecordBatch> {
  const runs = await runsOf(path, to);
  for (const segment of [...runs.keys()].sort())
    for (const run of runs.get(segment) ?? [])
      for await (const { lines } of numberedLines(path, run)) yield { lines };
}

/** The file in pieces whose records come from one segment each, by segment. */
async function runsOf(path: string, to: number): Promise<ReadonlyMap<string, readonly Run[]>> {
  const runs = new Map<string, Run[]>();
  let last = { segment: "", run: { from: 0, to: 0, line: 1 } };
  let line = 1;
  for await (const { lines } of readLines(path, { to }))
    for (const text of lines) {
      const segment = segmentIn(text);
      if (segment !== last.segment) {
        last = { segment, run: { from: last.run.to, to: last.run.to, line } };
        runs.set(segment, [...(runs.get(segment) ?? []), last.run]);
      }
      last.run.to += Buffer.byteLength(text) + 1;
      line += 1;
    }
  return runs;
}

async function* numberedLines(path: string, { from, to, line }: Run): AsyncGenerator<FileBatch> {
  let next = line;
  for await (const { lines, bytes } of readLines(path, { from, to })) {
    const first = next;
    next += lines.length;
    yield {
      lines: lines.map((text, index) => ({
        text,
        record: parseUsageLine(text),
        line: first + index,
      })),
      bytes,
    };
  }
}
