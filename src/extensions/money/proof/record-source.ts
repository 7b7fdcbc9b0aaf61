// Where the records of a day are read from, line by line: files of data_dir as they are, byte by
// byte, or whatever store there is.
import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { parseUsageLine, type DayLine, type LogCursor, type UsageStore } from "../records/index.ts";
import { brokenFile, createDays, readLines, type ClosedDay } from "../days/index.ts";
import { createDayFiles } from "../file-store/index.ts";
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
    let line = 0;
    for await (const batch of readLines(path, { to: size })) {
      const lines = batch.lines.map((text, index) => lineOf(text, line + index + 1));
      line += lines.length;
      end = batch.end;
      yield { lines, bytes: batch.bytes };
    }
    if (end < size)
      findings.add(`${nameOf(day)}, line ${line + 1}`, "has no end: it was added, or cut short");
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

const lineOf = (text: string, line: number): RecordLine => ({
  text,
  record: parseUsageLine(text),
  line,
});

/** The lines of an open day in the order of the log: within a segment its file has it already. */
async function* orderedLines(path: string, to: number): AsyncGenerator<RecordBatch> {
  const segmentOf = ({ record }: RecordLine): string => record?.log?.segment ?? "";
  const segments = new Set<string>();
  for await (const { lines } of numberedLines(path, to))
    for (const line of lines) segments.add(segmentOf(line));
  for (const segment of [...segments].sort())
    for await (const { lines } of numberedLines(path, to))
      yield { lines: lines.filter((line) => segmentOf(line) === segment) };
}

async function* numberedLines(path: string, to: number): AsyncGenerator<RecordBatch> {
  let line = 0;
  for await (const { lines } of readLines(path, { to })) {
    const first = line;
    line += lines.length;
    yield { lines: lines.map((text, index) => lineOf(text, first + index + 1)) };
  }
}
