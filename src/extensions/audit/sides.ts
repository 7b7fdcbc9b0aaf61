// The two sides that an audit compares: the settled requests of the spend log, and the usage
// records. Each is read in full, as often as it takes, without holding it in memory.
import { existsSync } from "node:fs";
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { AMOUNT, parseMoney } from "../usage-records/index.ts";
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
  type OpenRecord,
  type MonthSums,
} from "../books/index.ts";

/** Gets the description of a difference. */
export type Report = (difference: string) => void;

/** Requests that are opened and not settled yet. */
export interface InFlight {
  /** Number of requests. */
  readonly requests: number;
  /** What is held for them, in pico-units. */
  readonly held: bigint;
}

const ignore: Report = () => undefined;

/** Both sides of an audit. */
export interface Sides {
  /** Reads each settled request of the spend log that was copied, and reports nothing. */
  settled(take: (record: UsageRecord) => void): Promise<void>;
  /** The same, and reports what is wrong in the log. Resolves with what is in flight. */
  settledAndWrong(take: (record: UsageRecord) => void, report: Report): Promise<InFlight>;
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

  /**
   * Resolves with the requests that are not settled in the part that was copied, by their
   * spend_ids.
   */
  async function readSettled(
    name: string,
    take: (record: UsageRecord) => void,
    report: Report,
  ): Promise<ReadonlyMap<string, OpenRecord>> {
    const { unsettled, garbled } = await readSegment(pathOf(name), {
      to: positions.get(name),
      settled: (settle) => take(usageRecord(settle)),
      problem: (text) => report(`${text} in spend/${name}`),
    });
    return new Map([...unsettled].filter(([id]) => !garbled.has(id)));
  }

  return {
    async settled(take) {
      for (const name of names) await readSettled(name, take, ignore);
    },
    async settledAndWrong(take, report) {
      let requests = 0;
      let held = 0n;
      for (const name of names) {
        const open = await readSettled(name, take, report);
        const inFlight = await findInFlight(pathOf(name), name, open, report);
        requests += inFlight.length;
        for (const record of inFlight) held += heldFor(record, name, report);
      }
      return { requests, held };
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

/** What is held for a request, in pico-units. */
function heldFor({ spend_id, hold = "0" }: OpenRecord, name: string, report: Report): bigint {
  if (AMOUNT.test(hold)) return parseMoney(hold);
  report(`${spend_id}: its hold is no amount in spend/${name}`);
  return 0n;
}

/**
 * Those of these requests that are in flight. In a segment that no process writes none is, but its
 * last lines may not have been copied yet.
 */
async function findInFlight(
  path: string,
  name: string,
  open: ReadonlyMap<string, OpenRecord>,
  report: Report,
): Promise<readonly OpenRecord[]> {
  if (existsSync(claimFileOf(path))) return [...open.values()];
  const { unsettled, end } = await readSegment(path);
  const lost = [...open.keys()].filter((id) => unsettled.has(id));
  for (const id of lost) report(`${id}: opened, never settled in spend/${name}`);
  const { size } = await stat(path);
  if (end < size) report(`spend/${name} ends in the middle of a line`);
  return [...open].flatMap(([id, record]) => (unsettled.has(id) ? [] : [record]));
}
