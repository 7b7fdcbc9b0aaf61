// What answers questions about a day: its sums, and where the records of a request id are. Of an
// open day it is held in memory, and grows with the file; of a closed day it is in files.
import { inodeOf } from "../../scale/data-files/index.ts";
import {
  createSummer,
  DIMENSIONS,
  type DayLine,
  type Dimension,
  type Summer,
} from "../records/index.ts";
import { readLines } from "../days/index.ts";
import { bytesOf, pathOf, type DayFiles } from "./day-files.ts";
import { parseLine, recordOf } from "./lines.ts";
import { createDayIds, type DayIds } from "./request-ids.ts";

/** What is known of the lines of a day. */
export interface DayIndex {
  /** The path of the file of the day. */
  readonly path: string;
  /** The number of the file when the index was begun. In another file the lines are elsewhere. */
  readonly inode: number | undefined;
  /** Has the sums by all dimensions. */
  readonly summer: Summer<Dimension>;
  /** Says where records are. */
  readonly ids: DayIds;
  /** How many bytes of the file of the day are in the index. */
  bytes: number;
}

/** An index without lines. */
export function createDayIndex(path: string, day: string): DayIndex {
  const summer = createSummer(DIMENSIONS);
  return { path, inode: inodeOf(path), summer, ids: createDayIds(day), bytes: 0 };
}

/** Adds the next lines of the file. Throws if one has no record, and adds none then. */
export function addLines(index: DayIndex, lines: readonly DayLine[]): void {
  const records = lines.map((line) => recordOf(index.path, line));
  for (const [at, record] of records.entries()) {
    index.summer.addRecord(record);
    index.ids.add(record.gateway_request_id, record.account, index.bytes);
    index.bytes += Buffer.byteLength(lines[at]!.text) + 1;
  }
}

/** Reads on to the end of the lines of a day that count. Rejects if one has no record. */
export type ReadOpenDay = (day: string) => Promise<DayIndex>;

export function createOpenDays(files: DayFiles): ReadOpenDay {
  const known = new Map<string, DayIndex>();
  /** Resolves when nobody reads. One reading follows the other. */
  let reading: Promise<unknown> = Promise.resolve();

  async function readOn(day: string): Promise<DayIndex> {
    const path = pathOf(files, day);
    const to = bytesOf(files, day);
    let open = known.get(day);
    if (!open || open.inode !== inodeOf(path) || open.bytes > to) {
      open = createDayIndex(path, day);
      known.set(day, open);
      // Only the last two days can be open for long.
      for (const other of [...known.keys()].sort().slice(0, -3)) known.delete(other);
    }
    for await (const { lines } of readLines(path, { from: open.bytes, to }))
      addLines(open, lines.map(parseLine));
    return open;
  }

  return (day) => {
    const opened = reading.then(() => readOn(day));
    reading = opened.catch(() => undefined);
    return opened;
  };
}
