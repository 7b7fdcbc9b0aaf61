// The index of a day: its sums, and the places of records by request id. The index of an open day
// is in memory, and grows with its file. That of a closed day is in files. A search for a request
// id goes through the open days, then through the indexes of closed days.
import { closeSync, openSync, readSync, statSync } from "node:fs";
import { join } from "node:path";
import {
  createSummer,
  DIMENSIONS,
  type UsageLine,
  type Dimension,
  type Summer,
  type UsageRecord,
  type UsageStore,
} from "../records/index.ts";
import { BooksFault, readLines } from "../days/index.ts";
import {
  bytesOf,
  cursorFile,
  daysOf,
  isClosed,
  pathOf,
  readCursor,
  type DayFiles,
} from "./day-files.ts";
import { compareTexts, parseLine, recordOf } from "./lines.ts";
import {
  createDayIds,
  entryCountIn,
  findInMonth,
  type DayIds,
  type RecordPlace,
} from "./request-ids.ts";

/** The index of the lines of a day. */
export interface DayIndex {
  /** The path of the file of the day. */
  readonly path: string;
  /** The identity of the file when the index was begun. In another file the offsets are wrong. */
  readonly file: string | undefined;
  /** The sums by all dimensions. */
  readonly summer: Summer<Dimension>;
  /** The places of records by their request ids. */
  readonly ids: DayIds;
  /** How many bytes of the file are indexed. */
  bytes: number;
}

/**
 * Distinguishes a file from all that had its name before. A file that replaces another may get the
 * inode number of the one before that. Undefined: there is no file.
 */
function identityOf(path: string): string | undefined {
  const found = statSync(path, { throwIfNoEntry: false });
  return found && `${found.ino} ${found.birthtimeMs}`;
}

/** An index without lines. */
export function createDayIndex(path: string, day: string): DayIndex {
  const summer = createSummer(DIMENSIONS);
  return { path, file: identityOf(path), summer, ids: createDayIds(day), bytes: 0 };
}

/** Adds the next lines of the file. Throws, and adds none, if one of them is not a usage record. */
export function addLines(index: DayIndex, lines: readonly UsageLine[]): void {
  const records = lines.map((line) => recordOf(index.path, line));
  for (const [at, record] of records.entries()) {
    index.summer.addRecord(record);
    index.ids.add(record.gateway_request_id, record.account, index.bytes);
    index.bytes += Buffer.byteLength(lines[at]!.text) + 1;
  }
}

/**
 * Returns a function that resolves with the index of an open day, up to the last byte that counts.
 * It rejects if a line is not a usage record.
 */
export function createOpenDays(files: DayFiles): (day: string) => Promise<DayIndex> {
  const known = new Map<string, DayIndex>();
  /** Resolves when the last reading is done. They run one after the other. */
  let reading: Promise<unknown> = Promise.resolve();

  async function readNewLines(day: string): Promise<DayIndex> {
    const path = pathOf(files, day);
    const to = bytesOf(files, day);
    let open = known.get(day);
    if (!open || open.file !== identityOf(path) || open.bytes > to) {
      open = createDayIndex(path, day);
      known.set(day, open);
      // More than two days are rarely open for long.
      for (const other of [...known.keys()].sort().slice(0, -3)) known.delete(other);
    }
    for await (const { lines } of readLines(path, { from: open.bytes, to }))
      addLines(open, lines.map(parseLine));
    return open;
  }

  return (day) => {
    const opened = reading.then(() => readNewLines(day));
    reading = opened.catch(() => undefined);
    return opened;
  };
}

/** Enough for most lines. */
const LINE_BYTES = 4 * 1024;

/** Creates UsageStore.find(). */
export function createFinder(
  files: DayFiles,
  readOpenDay: (day: string) => Promise<DayIndex>,
): UsageStore["find"] {
  /** Searches the days, the latest first, until enough records are found. */
  return async function find(query) {
    const { requestId, limit } = query;
    const found: UsageRecord[] = [];

    function take(places: Iterable<RecordPlace>): void {
      for (const { day, offset } of places) {
        if (found.length === limit) return;
        const { record } = parseLine(lineAt(pathOf(files, day), offset));
        // Different ids may have the same hash.
        const isOf = record?.account === (query.account ?? record?.account);
        if (record?.gateway_request_id === requestId && isOf) found.push(record);
      }
    }

    const days = [...daysOf(files)].reverse();
    // Decided once: a day that closes during the search is searched only as an open one.
    const closed = new Set(days.filter((day) => isClosed(files, day)));
    for (const day of days.filter((each) => !closed.has(each))) {
      const { ids, file } = await readOpenDay(day);
      take(ids.find(query).map((offset) => ({ day, offset })));
      // The day was sorted meanwhile, so the offsets are wrong: search again.
      if (identityOf(pathOf(files, day)) !== file) return await find(query);
    }
    const isWholeIndex = createIndexCheck(files);
    for (const month of new Set([...closed].map(monthOf))) {
      if (found.length === limit) break;
      const index = indexFile(files, month);
      if (!isWholeIndex(month)) throw new BooksFault(lostIndex(index));
      // The index may already have a day that is just being closed.
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

export const monthOf = (day: string): string => day.slice(0, 7);

/**
 * Returns a function that tells whether the index of a month has entries for all records of its
 * closed days.
 */
export function createIndexCheck(files: DayFiles): (month: string) => boolean {
  const { lost = [] } = readCursor(cursorFile(files));
  const stated = new Map<string, number>();
  for (const { closed } of files.closedDays.all()) {
    const month = monthOf(closed.day);
    const records = lost.includes(closed.day) ? 0 : closed.records;
    stated.set(month, (stated.get(month) ?? 0) + records);
  }
  return (month) => entryCountIn(indexFile(files, month)) >= (stated.get(month) ?? 0);
}

/** The error text for an index that is gone or incomplete. */
export const lostIndex = (path: string): string =>
  `${path}, the index of closed days, is not there or was cut short: run 'books rebuild'`;

/** Reads the line at an offset. Synchronous, because that takes a tenth of the time. */
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
