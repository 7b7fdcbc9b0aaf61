// Where a proof reads usage records from: the files of a data_dir, even damaged ones, or any store.
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
  /** How far the log was copied when the source was opened. */
  readonly cursor: LogCursor;
  /** Days that have records. Closed days may be missing. */
  readonly days: readonly string[];
  /** Names the records of a day in findings: "usage/2026-11-22.jsonl". */
  nameOf(day: string): string;
  /** Reads the lines of a day. */
  linesOf(day: string): AsyncIterable<UsageBatch>;
}

/** Opens the records in any store. */
export const openStoreSource = async (store: UsageStore): Promise<RecordSource> => ({
  // A gateway on a copy of the data_dir has moved the cursor, so it does not count. `books rebuild`
  // repairs this, and must not fail here.
  cursor: await store.cursor().catch((error: unknown) => {
    if (error instanceof CopiedElsewhere) return {};
    throw error;
  }),
  days: await store.days(),
  nameOf: (day) => `usage records of ${day}`,
  linesOf: store.linesOf,
});

/**
 * Opens the records in the files of a data_dir. Of open days, it reads the bytes in the cursor, and
 * all bytes of those whose lines in days.jsonl are lost.
 */
export function openFileSource(
  dataDir: string,
  closedDays: readonly ClosedDay[],
  findings: Findings,
): RecordSource {
  const dir = join(dataDir, "usage");
  const last = closedDays.at(-1)?.day ?? "";
  const cursor = cursorOrAll(dir, last, (fault) => findings.add("usage/cursor.json", fault));
  const openDays = Object.keys(cursor.days).filter((day) => day > last);
  const nameOf = (day: string): string => `usage/${day}.jsonl`;
  // The sync writes the file of a new day before the cursor, so the newest file may not be in it.
  const reopened = dayFilesIn(dir).filter(
    (day) => day > last && !openDays.includes(day) && openDays.some((open) => open > day),
  );
  for (const day of reopened)
    findings.add(
      `days.jsonl, line ${closedDays.length + 1}`,
      `is gone: ${nameOf(day)} is there, and the cursor counts it no more as an open day`,
    );
  return {
    cursor: cursor.segments,
    days: [...openDays, ...reopened],
    nameOf,
    async *linesOf(day) {
      const closed = closedDays.find((line) => line.day === day);
      const path = join(dataDir, nameOf(day));
      const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
      const uncounted = reopened.includes(day) ? size : 0;
      const bytes = closed?.file_bytes ?? cursor.days[day] ?? uncounted;
      if (size < bytes) findings.add(nameOf(day), brokenFile(path, size, bytes));
      if (closed && size > bytes)
        findings.add(`${nameOf(day)}, line ${closed.records + 1}`, "stands after the end");
      yield* orderedLines(path, closed ? size : Math.min(size, bytes));
    },
  };
}
