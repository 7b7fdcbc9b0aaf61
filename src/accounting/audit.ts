// The proof of the books: every opened request is settled once, and every settled one stands in the usage records once, as it
// was settled. Both sides are summed up in buckets by their ids, in flat memory; only where the sums differ are the records
// themselves compared, in a second reading.
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { formatMoney, parseMoney } from "./price.ts";
import { USAGE_COLUMNS, usageRecord, type UsageRecord } from "./records.ts";
import { readSegment } from "./recovery.ts";
import { segmentsIn, unclosedOf } from "./spend-log.ts";
import { syncUsage, type Ledger } from "./sync.ts";

const BUCKETS = 65_536;
/** How many records are looked up one by one where the sums differ. */
const MAX_COMPARED = 100_000;
const DAY_MS = 86_400_000;

export interface Audit {
  readonly ok: boolean; readonly settled: number; readonly recorded: number; readonly differences: readonly string[];
  /** Requests that are on their way at the moment. */
  readonly in_flight: number;
  /** By currency. */
  readonly cost_settled: Readonly<Record<string, string>>; readonly cost_recorded: Readonly<Record<string, string>>;
}

const textOf = (record: UsageRecord): string => JSON.stringify(USAGE_COLUMNS.map((column) => record[column]));
/** The last digits of an id are random. */
const bucketOf = ({ usage_id }: UsageRecord): number => parseInt(usage_id.slice(-4), 16) || 0;

/** One side: how many, what they cost, and sums of fingerprints that no missing, doubled or altered record leaves as they are. */
function createTally() {
  const sums = new BigUint64Array(BUCKETS);
  const costs: Record<string, bigint> = {};
  let count = 0;
  return {
    sums,
    add(record: UsageRecord) {
      sums[bucketOf(record)]! += createHash("sha256").update(textOf(record)).digest().readBigUInt64LE();
      costs[record.currency] = (costs[record.currency] ?? 0n) + parseMoney(record.cost);
      count += 1;
    },
    count: () => count,
    costs: () => Object.fromEntries(Object.entries(costs).sort().map(([currency, cost]) => [currency, formatMoney(cost)])),
  };
}

/** Brings the usage records up to date, then compares. The caller holds the books. */
export async function auditBooks(ledger: Ledger): Promise<Audit> {
  const { dir, store } = ledger;
  await syncUsage(ledger);
  const cursor = await store.cursor();
  const differences: string[] = [];
  // Segments from before this day may have been deleted.
  const since = new Date(ledger.now() - (ledger.keepDays - 1) * DAY_MS).toISOString();

  async function readLog(each: (record: UsageRecord) => void, tell: (difference: string) => void): Promise<number> {
    let inFlight = 0;
    for (const segment of segmentsIn(dir)) {
      const { unsettled } = await readSegment(join(dir, segment), cursor.get(segment) ?? 0, (settle, opened) => {
        if (!opened) tell(`${settle.spend_id} in ${segment}: settled twice, or never opened`);
        if (settle.time >= since) each(usageRecord(settle));
      });
      // Asked first: a segment that is closed by now has its last settle lines behind the cursor.
      const inUse = existsSync(unclosedOf(join(dir, segment)));
      const still = unsettled.size > 0 ? (await readSegment(join(dir, segment))).unsettled : unsettled;
      for (const id of unsettled.keys()) {
        if (inUse || !still.has(id)) inFlight += 1;
        else tell(`${id} in ${segment}: opened, never settled`);
      }
    }
    return inFlight;
  }
  async function readRecords(each: (record: UsageRecord) => void): Promise<void> {
    for await (const records of store.records({ own: true })) for (const record of records) if (record.ended_at >= since) each(record);
  }

  const [log, usage] = [createTally(), createTally()];
  const in_flight = await readLog(log.add, (difference) => differences.push(difference));
  await readRecords(usage.add);
  if (log.sums.some((sum, bucket) => sum !== usage.sums[bucket])) {
    /** What both sides say of an id, where they are not the same in sum. */
    const said = new Map<string, { settled: string[]; recorded: string[] }>();
    const collect = (side: "settled" | "recorded") => (record: UsageRecord) => {
      const same = log.sums[bucketOf(record)] === usage.sums[bucketOf(record)];
      if (!same && said.size < MAX_COMPARED && !said.has(record.usage_id)) said.set(record.usage_id, { settled: [], recorded: [] });
      said.get(record.usage_id)?.[side].push(textOf(record));
    };
    await readLog(collect("settled"), () => undefined);
    await readRecords(collect("recorded"));
    for (const [id, { settled, recorded }] of said) {
      if (settled.length === 0) differences.push(`${id}: in the usage records, but never settled`);
      else if (recorded.length !== 1) differences.push(`${id}: settled, and ${recorded.length} times in the usage records`);
      else if (settled[0] !== recorded[0]) differences.push(`${id}: its usage record is not what was settled`);
    }
    if (differences.length === 0) differences.push("the sums differ");
  }
  return { ok: differences.length === 0, settled: log.count(), recorded: usage.count(), in_flight, cost_settled: log.costs(), cost_recorded: usage.costs(), differences };
}
