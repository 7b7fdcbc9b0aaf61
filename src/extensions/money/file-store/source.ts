// What the parts of the file store share: which days there are, and the lines of their files.
import { statSync } from "node:fs";
import { brokenFile, readLines, type Days } from "../days/index.ts";
import { parseUsageLine, type DayFilter, type UsageRecord } from "../records/index.ts";
import type { DayFiles } from "./day-files.ts";
import type { OpenDays } from "./open-days.ts";

/** So many bytes are read at once. */
export const BATCH_BYTES = 256 * 1024;

/** What the parts of the store share. */
export interface Source {
  readonly files: DayFiles;
  readonly days: Days;
  readonly openDays: OpenDays;
}

/** The days with records that a filter means, in their order. */
export function daysOf({ files, days }: Source, filter: DayFilter): string[] {
  const { month = "", day, from = "", to = "9999-12-31" } = filter;
  const closed = days.all().filter((line) => line.closed.records > 0);
  const all = new Set([
    ...closed.map((line) => line.closed.day),
    ...Object.keys(files.read().days),
  ]);
  const isMeant = (name: string): boolean =>
    name.startsWith(month) && name === (day ?? name) && name >= from && name <= to;
  return [...all].filter(isMeant).sort();
}

/** How many bytes of the file of a day count. Throws if it has less. */
export function bytesOf({ files, days }: Source, day: string): number {
  const closed = days.all().find((line) => line.closed.day === day);
  const bytes = closed?.closed.file_bytes ?? files.read().days[day] ?? 0;
  const path = files.pathOf(day);
  const size = statSync(path, { throwIfNoEntry: false })?.size ?? -1;
  if (bytes > 0 && size < bytes) throw new Error(brokenFile(path, size, bytes));
  return bytes;
}

/** The texts of the lines of a day as its file has them, in batches. */
export async function* textsOf(source: Source, day: string): AsyncGenerator<readonly string[]> {
  const to = bytesOf(source, day);
  const path = source.files.pathOf(day);
  for await (const { lines } of readLines(path, { to, batchBytes: BATCH_BYTES })) yield lines;
}

export function recordIn({ files }: Source, day: string, text: string): UsageRecord {
  const record = parseUsageLine(text);
  if (record) return record;
  throw new Error(
    `${files.pathOf(day)} holds a line that is no usage record: ${text.slice(0, 80)}`,
  );
}

/** By UTF-16 code units, as the names in a folder are sorted. */
export function compareTexts(one: string, other: string): number {
  if (one === other) return 0;
  return one < other ? -1 : 1;
}
