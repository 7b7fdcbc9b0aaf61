// Which days a file store has, and the lines of a day, as its file has them or in the order of the log.
import { statSync } from "node:fs";
import type { DayFilter } from "../../records/index.ts";
import { brokenFile } from "../broken-file.ts";
import type { Days } from "../days.ts";
import { readLines } from "../read-lines.ts";
import type { DayFiles } from "./day-files.ts";
import { segmentIn } from "./lines.ts";
import type { OpenDays } from "./open-days.ts";

/** So many bytes are read at once. */
const BATCH_BYTES = 256 * 1024;

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

/** Some bytes of the file of a day, whose records come from one segment. */
interface Run {
  readonly segment: string;
  readonly from: number;
  to: number;
}

/** All of the file of a day, in its order. Each pass leaves a run of each segment. */
async function runsOf(source: Source, day: string): Promise<readonly Run[]> {
  const runs: Run[] = [];
  let from = 0;
  for await (const texts of textsOf(source, day))
    for (const text of texts) {
      const segment = segmentIn(text);
      const to = from + Buffer.byteLength(text) + 1;
      const last = runs.at(-1);
      if (last?.segment === segment) last.to = to;
      else runs.push({ segment, from, to });
      from = to;
    }
  return runs;
}

/** The same in the order of the log: within a segment the file has it already. */
export async function* orderedTexts(
  source: Source,
  day: string,
): AsyncGenerator<readonly string[]> {
  const path = source.files.pathOf(day);
  const runs = await runsOf(source, day);
  const ordered = [...runs].sort((one, other) => compareTexts(one.segment, other.segment));
  for (const { from, to } of ordered)
    for await (const { lines } of readLines(path, { from, to, batchBytes: BATCH_BYTES }))
      yield lines;
}

/** By UTF-16 code units, as the names in a folder are sorted. */
export function compareTexts(one: string, other: string): number {
  if (one === other) return 0;
  return one < other ? -1 : 1;
}
