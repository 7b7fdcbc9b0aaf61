// What is held in memory of the days that are open: their sums, and where the records of a request
// id are. Each grows with the file of its day, and is made anew if the file was put in order.
import { inodeOf } from "../../data-files/index.ts";
import {
  createSummer,
  DIMENSIONS,
  parseUsageLine,
  sumOfRecord,
  type Dimension,
  type RequestQuery,
  type SumBy,
  type Summer,
} from "../records/index.ts";
import { readLines } from "../days/index.ts";
import type { DayFiles } from "./day-files.ts";
import { addOpen, emptyIds, findOpen, type OpenIds } from "./request-ids.ts";

/** What is known of an open day. */
export interface OpenDay {
  /** The file in which the offsets are. */
  readonly path: string;
  /** The number of this file. Once it is another one, the offsets are wrong. */
  readonly inode: number | undefined;
  /** All sums, by all dimensions. */
  sums(): readonly SumBy<Dimension>[];
  /** Where lines may begin that a query looks for: the last ones of each account. */
  offsetsOf(query: RequestQuery): readonly number[];
}

/** The open days of a file store. */
export interface OpenDays {
  /** Reads on up to byte `bytes` of the file of a day. Throws if a line is no record. */
  upTo(day: string, bytes: number): Promise<OpenDay>;
}

interface Known extends OpenDay {
  readonly ids: OpenIds;
  readonly summer: Summer<Dimension>;
  /** Settles when nobody reads the file. One reading follows the other. */
  reading: Promise<void>;
}

export function createOpenDays(files: DayFiles): OpenDays {
  const known = new Map<string, Known>();

  function begin(path: string, inode: number | undefined): Known {
    const ids = emptyIds();
    const summer = createSummer(DIMENSIONS);
    return {
      path,
      inode,
      ids,
      summer,
      sums: summer.sums,
      offsetsOf: (query) => findOpen(ids, query),
      reading: Promise.resolve(),
    };
  }

  return {
    async upTo(day, bytes) {
      const path = files.pathOf(day);
      const inode = inodeOf(path);
      let entry = known.get(day);
      if (!entry || entry.inode !== inode || entry.ids.end > bytes) {
        entry = begin(path, inode);
        known.set(day, entry);
        // Only the last two days can be open for long.
        for (const other of [...known.keys()].sort().slice(0, -3)) known.delete(other);
      }
      const { reading } = entry;
      entry.reading = reading.catch(() => undefined).then(() => readOn(entry, bytes));
      await entry.reading;
      return entry;
    },
  };
}

async function readOn({ path, ids, summer }: Known, to: number): Promise<void> {
  for await (const { lines, end } of readLines(path, { from: ids.end, to })) {
    let offset = ids.end;
    for (const line of lines) {
      const record = parseUsageLine(line);
      if (!record) throw new Error(`${path} holds a line that is no usage record`);
      summer.add(sumOfRecord(record));
      addOpen(ids, record, offset);
      offset += Buffer.byteLength(line) + 1;
    }
    ids.end = end;
  }
}
