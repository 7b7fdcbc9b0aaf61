// Finds records by their request id: in the open days, then in the indexes of closed days.
import { closeSync, existsSync, openSync, readSync } from "node:fs";
import { inodeOf } from "../../scale/data-files/index.ts";
import {
  parseUsageLine,
  type RequestQuery,
  type UsageRecord,
  type UsageStore,
} from "../records/index.ts";
import type { DayFiles } from "./day-files.ts";
import type { ReadOpenDay } from "./day-index.ts";
import { compareTexts } from "./lines.ts";
import { findInMonth, type RecordPlace } from "./request-ids.ts";

/** Enough for most lines. */
const LINE_BYTES = 4 * 1024;

/** Finds records as UsageStore.find() says. */
export function createFinder(files: DayFiles, readOpenDay: ReadOpenDay): UsageStore["find"] {
  /**
   * Looks at days from the last one, until there are enough. Resolves with undefined if a day was
   * put in the order of the log meanwhile, so that its lines begin elsewhere.
   */
  async function search(query: RequestQuery): Promise<UsageRecord[] | undefined> {
    const found: UsageRecord[] = [];

    function take(places: Iterable<RecordPlace>): void {
      for (const { day, offset } of places) {
        if (found.length === query.limit) return;
        const record = parseUsageLine(lineAt(files.pathOf(day), offset));
        // Different ids may have the same hash.
        if (record && matches(record, query)) found.push(record);
      }
    }

    const days = [...files.days()].reverse();
    // A day that is closed meanwhile was searched already.
    const closed = new Set(days.filter(files.isClosed));
    for (const day of days.filter((each) => !closed.has(each))) {
      const { ids, inode } = await readOpenDay(day);
      take(ids.find(query).map((offset) => ({ day, offset })));
      if (inodeOf(files.pathOf(day)) !== inode) return undefined;
    }
    for (const month of new Set([...closed].map((day) => day.slice(0, 7)))) {
      if (found.length === query.limit) break;
      // A day that is about to be closed may be in the index already.
      take(placesIn(files, month, query).filter(({ day }) => closed.has(day)));
    }
    return found;
  }

  return async (query) => {
    for (;;) {
      const found = await search(query);
      if (found) return found.sort(byEnd);
    }
  };
}

const matches = (
  record: UsageRecord,
  { requestId, account = record.account }: RequestQuery,
): boolean => record.gateway_request_id === requestId && record.account === account;

const byEnd = (one: UsageRecord, other: UsageRecord): number =>
  compareTexts(one.ended_at, other.ended_at) || compareTexts(one.usage_id, other.usage_id);

/** The file with the index of the closed days of a month. */
export const indexOf = (files: DayFiles, month: string): string => files.besideOf(`${month}.ids`);

/** What the operator reads of an index that is gone. */
export const lostIndex = (path: string): string =>
  `${path} is not there, the index of closed days: run 'books rebuild'`;

function placesIn(files: DayFiles, month: string, query: RequestQuery): readonly RecordPlace[] {
  const index = indexOf(files, month);
  if (existsSync(index)) return findInMonth(index, query);
  throw new Error(lostIndex(index));
}

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
