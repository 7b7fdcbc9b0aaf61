// The proof of the books: every opened request is settled once, and stands in the usage records once, as it was settled. Both sides are
// summed up in buckets by their ids, in flat memory; only where the sums differ are the records compared, in a second reading.
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { DAY_MS } from "../config/schema.ts";
import { formatMoney, parseMoney } from "./price.ts";
import { USAGE_COLUMNS, usageRecord, type UsageRecord } from "./records.ts";
import { segmentsIn, unclosedOf } from "./spend-log.ts";
import { readSegment, type Ledger } from "./sync.ts";

const MAX_COMPARED = 100_000; // records, where the sums differ
type Side = "settled" | "recorded";
const textOf = (record: UsageRecord): string =>
  `${record.usage_id}: ${JSON.stringify(USAGE_COLUMNS.map((column) => record[column]))}`;
/** The last digits of an id are random. */
const bucketOf = ({ usage_id }: UsageRecord): number => parseInt(usage_id.slice(-4), 16) || 0;
/** A sum of these is another if a record is missing, doubled or altered. */
const fingerprint = (record: UsageRecord): bigint =>
  createHash("sha256").update(textOf(record)).digest().readBigUInt64LE();

/** Compares what has been copied into the usage records with what was settled. The caller holds the books. */
export async function auditBooks({ dir, store, keepDays, now }: Ledger) {
  const cursor = await store.cursor();
  const differences = new Set<string>();
  // Segments from before this day may have been deleted.
  const since = new Date(now() - (keepDays - 1) * DAY_MS).toISOString();

  /** Reads both sides in full; resolves with the number of requests that are on their way at the moment. */
  async function read(each: (record: UsageRecord, side: Side) => void): Promise<number> {
    let inFlight = 0;
    for (const segment of segmentsIn(dir)) {
      const path = join(dir, segment);
      const { unsettled } = await readSegment(path, cursor.get(segment) ?? 0, (settle, opened) => {
        if (!opened)
          differences.add(`${settle.spend_id} in ${segment}: settled twice, or never opened`);
        if (settle.time >= since) each(usageRecord(settle), "settled");
      });
      // Asked before the rest is read: a segment that is closed by now has its last settle lines behind the cursor.
      const closed = unsettled.size > 0 && !existsSync(unclosedOf(path));
      const lost = closed
        ? [...(await readSegment(path)).unsettled.keys()].filter((id) => unsettled.has(id))
        : [];
      for (const id of lost) differences.add(`${id} in ${segment}: opened, never settled`);
      inFlight += unsettled.size - lost.length;
    }
    for await (const batch of store.records({ own: true }))
      batch.forEach((record) => record.ended_at >= since && each(record, "recorded"));
    return inFlight;
  }

  const sums = new BigUint64Array(16 ** 4); // a bucket is the last four digits of an id; of what was settled, less what is recorded
  const counts = { settled: 0, recorded: 0 };
  const costs = { settled: new Map<string, bigint>(), recorded: new Map<string, bigint>() };
  const in_flight = await read((record, side) => {
    sums[bucketOf(record)]! += side === "settled" ? fingerprint(record) : -fingerprint(record);
    counts[side] += 1;
    costs[side].set(
      record.currency,
      (costs[side].get(record.currency) ?? 0n) + parseMoney(record.cost),
    );
  });
  if (sums.some((sum) => sum !== 0n)) {
    /** How many more times a record was settled, just so, than it is in the usage records; where they are not the same in sum. */
    const surplus = new Map<string, number>();
    await read((record, side) => {
      const text = textOf(record);
      if (sums[bucketOf(record)] === 0n || (surplus.size >= MAX_COMPARED && !surplus.has(text)))
        return;
      surplus.set(text, (surplus.get(text) ?? 0) + (side === "settled" ? 1 : -1));
    });
    for (const [text, more] of surplus) {
      if (more !== 0)
        differences.add(
          `${text}: ${more > 0 ? `settled, and ${more} times too few` : `${-more} times too many`} in the usage records`,
        );
    }
    if (differences.size === 0) differences.add("the sums differ");
  }
  const cost = (side: Side) =>
    Object.fromEntries(
      [...costs[side]].sort().map(([currency, pico]) => [currency, formatMoney(pico)]),
    );
  return {
    ok: differences.size === 0,
    ...counts,
    in_flight,
    cost_settled: cost("settled"),
    cost_recorded: cost("recorded"),
    differences: [...differences],
  };
}
