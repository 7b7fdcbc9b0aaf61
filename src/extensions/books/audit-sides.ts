// The two sides that an audit compares: the settled requests of the spend log, and the usage records; read in full, as often as
// it takes, in flat memory.
import { existsSync } from "node:fs";
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { formatMoney, parseMoney } from "../../core/ledger/price.ts";
import { usageRecord, type UsageRecord } from "./records.ts";
import { byIdentity, describeStale, readSegment, type Mark } from "./segments.ts";
import { retiredMonths, type MonthSums, type RecordSum } from "./retired.ts";
import { segmentsIn, strangersIn, unclosedOf } from "./spend-log.ts";
import { copiedUpTo, type Ledger } from "./sync.ts";

type Tell = (difference: string) => void;
const tellNobody: Tell = () => undefined;

/** Counts records and their costs, and remembers when the first and the last of them ended. */
export function createTotals() {
  const costs = new Map<string, bigint>();
  let count = 0;
  let from: string | null = null;
  let to: string | null = null;
  const addCost = (currency: string, pico: bigint) =>
    costs.set(currency, (costs.get(currency) ?? 0n) + pico);
  return {
    add({ ended_at, currency, cost }: UsageRecord): void {
      count += 1;
      if (from === null || ended_at < from) from = ended_at;
      if (to === null || ended_at > to) to = ended_at;
      addCost(currency, parseMoney(cost));
    },
    /** Takes a record back that has been added; the span stays as it is. */
    remove({ currency, cost }: UsageRecord): void {
      count -= 1;
      addCost(currency, -parseMoney(cost));
    },
    /** Takes many back. */
    removeAll(sum: RecordSum): void {
      count -= sum.records;
      for (const [currency, pico] of sum.costs) addCost(currency, -pico);
    },
    count: (): number => count,
    span: () => ({ from, to }),
    /** Exact decimals by currency. */
    costs: (): Record<string, string> => {
      const billed = [...costs].filter(([, pico]) => pico !== 0n || count > 0).sort();
      return Object.fromEntries(billed.map(([currency, pico]) => [currency, formatMoney(pico)]));
    },
  };
}

export interface Sides {
  /** Each settled request of the spend log, as far as it has been copied. */
  settled(take: (record: UsageRecord) => void): Promise<void>;
  /** The same, and whatever is wrong in the log itself. Resolves with the number of requests that are on their way. */
  settledAndWrong(take: (record: UsageRecord) => void, tell: Tell): Promise<number>;
  /** Each usage record of this data_dir; `tell` hears of what is there and is none. */
  recorded(take: (record: UsageRecord) => void, tell?: Tell): Promise<void>;
  /** Segments that are not what was copied from them, or are no files at all. */
  changedSegments(): Promise<readonly string[]>;
  /** What the segments came to that were deleted, by month. */
  retired(tell: Tell): MonthSums;
}

/** The caller holds the books, so that nothing is copied meanwhile. */
export async function openSides({ dir, store, segments }: Ledger): Promise<Sides> {
  const marks: readonly Mark[] = await store.marks();
  const names = existsSync(dir) ? segmentsIn(dir) : [];
  const positions = names.length > 0 ? copiedUpTo({ dir, segments }, marks) : new Map();

  async function readSettled(
    name: string,
    take: (record: UsageRecord) => void,
    tell: Tell,
  ): Promise<ReadonlySet<string>> {
    const { unsettled, garbled } = await readSegment(join(dir, name), positions.get(name), {
      settled: (settle) => take(usageRecord(settle)),
      problem: (text) => tell(`${text} in spend/${name}`),
    });
    return new Set([...unsettled.keys()].filter((id) => !garbled.has(id)));
  }

  /** How many of these requests are on their way. Of a segment that is closed none is, but its last lines may not be copied yet. */
  async function countInFlight(
    name: string,
    open: ReadonlySet<string>,
    tell: Tell,
  ): Promise<number> {
    const path = join(dir, name);
    if (existsSync(unclosedOf(path))) return open.size;
    const { unsettled, end } = await readSegment(path);
    const lost = [...open].filter((id) => unsettled.has(id));
    for (const id of lost) tell(`${id}: opened, never settled in spend/${name}`);
    const { size } = await stat(path);
    if (end < size) tell(`spend/${name} ends in the middle of a line`);
    return open.size - lost.length;
  }

  return {
    async settled(take) {
      for (const name of names) await readSettled(name, take, tellNobody);
    },
    async settledAndWrong(take, tell) {
      let inFlight = 0;
      for (const name of names) {
        const open = await readSettled(name, take, tell);
        inFlight += await countInFlight(name, open, tell);
      }
      return inFlight;
    },
    async recorded(take, tell = tellNobody) {
      const unreadable = (what: string) => tell(`a line that is no usage record, in usage/${what}`);
      for await (const batch of store.records({ own: true, unreadable })) batch.forEach(take);
    },
    async changedSegments() {
      const marksOf = byIdentity(marks);
      const texts = existsSync(dir) ? strangersIn(dir) : [];
      for (const name of names) {
        const path = join(dir, name);
        const { stale } = segments.progressOf(path, name, marksOf);
        if (stale.length > 0) texts.push(describeStale(name, (await stat(path)).size, stale));
      }
      return texts;
    },
    retired(tell) {
      const present = names.map((name) => segments.identityOf(join(dir, name)) ?? "");
      try {
        return retiredMonths(dir, new Set(present));
      } catch (error) {
        tell((error as Error).message);
        return new Map();
      }
    },
  };
}
