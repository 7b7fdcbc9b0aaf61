// Finds records by their request id: in the open days, then in the indexes of closed days.
import { closeSync, existsSync, openSync, readSync } from "node:fs";
import { join } from "node:path";
import { inodeOf } from "../../scale/data-files/index.ts";
import { parseUsageLine, type UsageRecord, type UsageStore } from "../records/index.ts";
import { daysOf, isClosed, pathOf, type DayFiles } from "./day-files.ts";
import type { ReadOpenDay } from "./day-index.ts";
import { compareTexts } from "./lines.ts";
import { findInMonth, type RecordPlace } from "./request-ids.ts";

/** Enough for most lines. */
const LINE_BYTES = 4 * 1024;

/** Finds records as UsageStore.find() says. */
export function createFinder(files: DayFiles, readOpenDay: ReadOpenDay): UsageStore["find"] {
  /** Looks at days from the last one, until there are enough. */
  return async function find(query) {
    const { requestId, limit } = query;
    const found: UsageRecord[] = [];

    function take(places: Iterable<RecordPlace>): void {
      for (const { day, offset } of places) {
        if (found.length === limit) return;
        const record = parseUsageLine(lineAt(pathOf(files, day), offset));
        // Different ids may have the same hash.
        const isOf = record?.account === (query.account ?? record?.account);
        if (record?.gateway_request_id === requestId && isOf) found.push(record);
      }
    }

    const days = [...daysOf(files)].reverse();
    // A day that is closed meanwhile was searched already.
    const closed = new Set(days.filter((day) => isClosed(files, day)));
    for (const day of days.filter((each) => !closed.has(each))) {
      const { ids, inode } = await readOpenDay(day);
      take(ids.find(query).map((offset) => ({ day, offset })));
      // The day was put in the order of the log meanwhile, so its lines begin elsewhere.
      if (inodeOf(pathOf(files, day)) !== inode) return await find(query);
    }
    for (const month of new Set([...closed].map((day) => day.slice(0, 7)))) {
      if (found.length === limit) break;
      const index = indexFile(files, month);
      if (!existsSync(index)) throw new Error(lostIndex(index));
      // A day that is about to be closed may be in the index already.
      take(findInMonth(index, query).filter(({ day }) => closed.has(day)));
    }
    return found.sort(
      (one, other) =>
        compareTexts(one.ended_at, other.ended_at) || compareTexts(one.usage_id, other.usage_id),
    );
  };
}

/** The file with the index of the closed days of a month. */
export const indexFile = ({ dir }: DayFiles, month: string): string => join(dir, `${month}.ids`);

/** What the operator reads of an index that is gone. */
export const lostIndex = (path: string): string =>
  `${path} is not there, the index of closed days: run 'books rebuild'`;

/** Reading in step takes a tenth of the time, and no more lines are read than are asked for. */
function lineAt(path: string, offset: number): string {
  const fd = openSync(path, "r");
  try {
    for (let length = LINE_BYTES; ; length *= 4) {
      const bytes = Buffer.allocUnsafe(length);
      const read = readSync(fd, bytes, 0, length, offset);
      const end = bytes.subarray(0, read).indexOf("\n");
      if (end >= 0) return bytes.toString("utf8", 0, end);
      if (read < length) return ""; // no line ends there
    }
  } finally {
    closeSync(fd);
  }
}
