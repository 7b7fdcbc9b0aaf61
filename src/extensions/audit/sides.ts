// The two sides that an audit compares: the settled requests of the spend log, and the usage
// records. Each is read in full, as often as it takes, without holding it in memory.
import { existsSync } from "node:fs";
import { stat } from "node:fs/promises";
import { join } from "node:path";
import type { UsageRecord } from "../usage-records/index.ts";
import {
  byIdentity,
  claimFileOf,
  copiedBytes,
  describeStale,
  readSegment,
  retiredMonths,
  segmentsIn,
  strangersIn,
  usageRecord,
  type BooksFiles,
  type MonthSums,
} from "../books/index.ts";

/** Gets the description of a difference. */
export type Report = (difference: string) => void;

const ignore: Report = () => undefined;

/** Both sides of an audit. */
export interface Sides {
  /** Reads each settled request of the spend log that was copied, and reports nothing. */
  settled(take: (record: UsageRecord) => void): Promise<void>;
  /**
   * The same, and reports what is wrong in the log. Resolves with the number of requests in flight.
   */
  settledAndWrong(take: (record: UsageRecord) => void, report: Report): Promise<number>;
  /**
   * Reads each usage record of this data_dir. `report` gets lines that are no records. Absent: they
   * are ignored.
   */
  recorded(take: (record: UsageRecord) => void, report?: Report): Promise<void>;
  /** Describes segments that are not what was copied from them, or are no files. */
  changedSegments(): Promise<readonly string[]>;
  /** The sums of deleted segments, by month. */
  retired(report: Report): MonthSums;
}

/**
 * Opens both sides. The caller holds the lock of the books, so that nothing is copied meanwhile.
 */
export async function openSides({ spendDir, store, reader }: BooksFiles): Promise<Sides> {
  const marks = await store.marks();
  const names = existsSync(spendDir) ? segmentsIn(spendDir) : [];
  const positions = names.length > 0 ? copiedBytes(spendDir, reader, marks) : new Map();
  const pathOf = (name: string): string => join(spendDir, name);

  /** Resolves with the spend_ids of requests that are not settled in the part that was copied. */
  async function readSettled(
    name: string,
    take: (record: UsageRecord) => void,
    report: Report,
  ): Promise<ReadonlySet<string>> {
    const { unsettled, garbled } = await readSegment(pathOf(name), {
      to: positions.get(name),
      settled: (settle) => take(usageRecord(settle)),
      problem: (text) => report(`${text} in spend/${name}`),
    });
    return new Set([...unsettled.keys()].filter((id) => !garbled.has(id)));
  }

  return {
    async settled(take) {
      for (const name of names) await readSettled(name, take, ignore);
    },
    async settledAndWrong(take, report) {
      let inFlight = 0;
      for (const name of names) {
        const open = await readSettled(name, take, report);
        inFlight += await countInFlight(pathOf(name), name, open, report);
      }
      return inFlight;
    },
    async recorded(take, report = ignore) {
      const onUnreadable = (line: string): void =>
        report(`a line that is no usage record, in usage/${line}`);
      for await (const batch of store.records({ ownOnly: true, onUnreadable })) batch.forEach(take);
    },
    async changedSegments() {
      const marksOf = byIdentity(marks);
      const texts = existsSync(spendDir) ? strangersIn(spendDir) : [];
      for (const name of names) {
        const { stale } = reader.progressOf(pathOf(name), name, marksOf);
        if (stale.length > 0)
          texts.push(describeStale(name, (await stat(pathOf(name))).size, stale));
      }
      return texts;
    },
    retired(report) {
      const present = names.map((name) => reader.identityOf(pathOf(name)) ?? "");
      try {
        return retiredMonths(spendDir, new Set(present));
      } catch (error) {
        report((error as Error).message);
        return new Map();
      }
    },
  };
}

/**
 * How many of these requests are in flight. In a segment that no process writes none is, but its
 * last lines may not have been copied yet.
 */
async function countInFlight(
  path: string,
  name: string,
  open: ReadonlySet<string>,
  report: Report,
): Promise<number> {
  if (existsSync(claimFileOf(path))) return open.size;
  const { unsettled, end } = await readSegment(path);
  const lost = [...open].filter((id) => unsettled.has(id));
  for (const id of lost) report(`${id}: opened, never settled in spend/${name}`);
  const { size } = await stat(path);
  if (end < size) report(`spend/${name} ends in the middle of a line`);
  return open.size - lost.length;
}
