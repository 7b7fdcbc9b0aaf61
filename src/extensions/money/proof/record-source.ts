// Where the lines of a day are read from: files of data_dir as they are, byte by byte, or whatever
// store there is.
import { statSync } from "node:fs";
import { join } from "node:path";
import { brokenFile, type ClosedDay } from "../days/index.ts";
import { cursorOrAll, dayFilesIn, orderedLines } from "../file-store/index.ts";
import {
  CopiedElsewhere,
  type LogCursor,
  type UsageBatch,
  type UsageStore,
} from "../records/index.ts";
import type { Findings } from "./findings.ts";

export interface RecordSource {
  /** How far the log was copied when the source was made. */
  readonly cursor: LogCursor;
  /** The days that have records, at least those that are open. */
  readonly days: readonly string[];
  /** What is read for a day, for the operator. */
  nameOf(day: string): string;
  /** Reads the lines of a day. */
  linesOf(day: string): AsyncIterable<UsageBatch>;
}

/** The records in any store. */
export const sourceOfStore = async (store: UsageStore): Promise<RecordSource> => ({
  // A rebuild makes what a copy of the data_dir has made wrong.
  cursor: await store.cursor().catch((error: unknown) => {
    if (error instanceof CopiedElsewhere) return {};
    throw error;
  }),
  days: await store.days(),
  nameOf: (day) => `usage records of ${day}`,
  linesOf: store.linesOf,
});

/** The records in the files of a data_dir. Of open days, what the cursor counts now. */
export function sourceOfFiles(
  dataDir: string,
  closedDays: readonly ClosedDay[],
  findings: Findings,
): RecordSource {
  const dir = join(dataDir, "usage");
  const last = closedDays.at(-1)?.day ?? "";
  const cursor = cursorOrAll(dir, last, (fault) => findings.add("usage/cursor.json", fault));
  const openDays = Object.keys(cursor.days).filter((day) => day > last);
  const nameOf = (day: string): string => `usage/${day}.jsonl`;
  // The file of a new day is written before the cursor.
  for (const day of dayFilesIn(dir))
    if (day > last && !openDays.includes(day) && openDays.some((open) => open > day))
      findings.add(
        `days.jsonl, line ${closedDays.length + 1}`,
        `is gone: ${nameOf(day)} is there, and the cursor counts it no more as an open day`,
      );
  return {
    cursor: cursor.segments,
    days: openDays,
    nameOf,
    async *linesOf(day) {
      const closed = closedDays.find((line) => line.day === day);
      const bytes = closed?.file_bytes ?? cursor.days[day] ?? 0;
      const path = join(dataDir, nameOf(day));
      const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
      if (size < bytes) findings.add(nameOf(day), brokenFile(path, size, bytes));
      if (closed && size > bytes)
        findings.add(`${nameOf(day)}, line ${closed.records + 1}`, "stands after the end");
      yield* orderedLines(path, closed ? size : Math.min(size, bytes));
    },
  };
}
