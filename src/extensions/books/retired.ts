// What segments of the spend log came to that were deleted after `spend.keep_days`: sums by month, kept in spend/retired.json, so
// that an audit can still prove the usage records that were copied from them.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { readRegularFile, whyUnreadable } from "../../core/config/regular-file.ts";
import { fail } from "../../core/schema/checker.ts";
import { asCount, asObject, asString } from "../../core/schema/untrusted-json.ts";
import { failUnreadable, parseJsonFile, replaceFile, textIn } from "./files.ts";
import { AMOUNT, formatMoney, parseMoney } from "../../core/ledger/price.ts";
import { fingerprint, usageRecord, type UsageRecord } from "./records.ts";
import { readSegment } from "./segments.ts";

const MAX_BYTES = 256 * 1024 * 1024; // some 800,000 segments

/** What usage records that ended in one month come to. */
export interface RecordSum {
  readonly records: number;
  /** Of their fingerprints, modulo 2^64. */
  readonly fingerprints: bigint;
  /** In pico-units, by currency. */
  readonly costs: ReadonlyMap<string, bigint>;
  /** When the first and the last of them ended; null if there are none. */
  readonly from: string | null;
  readonly to: string | null;
}
/** By month, `YYYY-MM` in UTC. */
export type MonthSums = ReadonlyMap<string, RecordSum>;

export const NO_RECORDS: RecordSum = {
  records: 0,
  fingerprints: 0n,
  costs: new Map(),
  from: null,
  to: null,
};

/** A segment that was deleted, or is about to be. */
interface RetiredSegment {
  /** Its file name. */
  readonly segment: string;
  /** Bytes. */
  readonly size: number;
  readonly months: MonthSums;
}
/** By the identities of the segments (segments.ts). */
type RetiredSegments = ReadonlyMap<string, RetiredSegment>;

const fileIn = (dir: string): string => join(dir, "retired.json");

/** The costs of both; currencies that come to nothing are left out. */
function addCosts(a: RecordSum, b: RecordSum): ReadonlyMap<string, bigint> {
  const costs = new Map(a.costs);
  for (const [currency, pico] of b.costs) costs.set(currency, (costs.get(currency) ?? 0n) + pico);
  return new Map([...costs].filter(([, pico]) => pico !== 0n).sort());
}

export function addSums(a: RecordSum, b: RecordSum): RecordSum {
  const times = [a.from, a.to, b.from, b.to].filter((time) => time !== null).sort();
  return {
    records: a.records + b.records,
    fingerprints: BigInt.asUintN(64, a.fingerprints + b.fingerprints),
    costs: addCosts(a, b),
    from: times[0] ?? null,
    to: times.at(-1) ?? null,
  };
}

export const isSameSum = (a: RecordSum, b: RecordSum): boolean =>
  a.records === b.records && a.fingerprints === b.fingerprints && costText(a) === costText(b);

/** Exact decimals with their currencies, for people. */
export const costText = ({ costs }: RecordSum): string =>
  [...costs]
    .filter(([, pico]) => pico !== 0n)
    .sort()
    .map(([currency, pico]) => `${formatMoney(pico)} ${currency}`)
    .join(", ") || "0";

/** Sums up usage records by the month in which they ended. */
export function createMonthSums() {
  type Growing = { -readonly [name in keyof RecordSum]: RecordSum[name] } & {
    readonly costs: Map<string, bigint>;
  };
  const months = new Map<string, Growing>();

  function count({ ended_at, currency, cost }: UsageRecord, sign: 1 | -1, print: bigint): Growing {
    const month = ended_at.slice(0, 7);
    const sum = months.get(month) ?? { ...NO_RECORDS, costs: new Map<string, bigint>() };
    months.set(month, sum);
    const factor = BigInt(sign);
    sum.records += sign;
    sum.fingerprints = BigInt.asUintN(64, sum.fingerprints + factor * print);
    sum.costs.set(currency, (sum.costs.get(currency) ?? 0n) + factor * parseMoney(cost));
    return sum;
  }

  return {
    add(record: UsageRecord): void {
      const { ended_at } = record;
      const sum = count(record, 1, fingerprint(record));
      if (sum.from === null || ended_at < sum.from) sum.from = ended_at;
      if (sum.to === null || ended_at > sum.to) sum.to = ended_at;
    },
    /** Takes a record back that has been added; the span stays as it is. */
    remove(record: UsageRecord): void {
      count(record, -1, fingerprint(record));
    },
    months: (): MonthSums => months,
  };
}

/** What all the segments come to that are gone; those that are `present` have their lines. Throws a ValidationError if that cannot be read. */
export function retiredMonths(dir: string, present: ReadonlySet<string>): MonthSums {
  const found = new Map<string, RecordSum>();
  for (const [identity, { months }] of readRetired(dir)) {
    if (present.has(identity)) continue;
    for (const [month, sum] of months)
      found.set(month, addSums(found.get(month) ?? NO_RECORDS, sum));
  }
  return found;
}

/** Keeps what these segments come to, on the disk, before they are deleted. A process may die before it deletes them: the next one does
 * the same once more. Of copies of one segment the longest counts. Throws, with nothing changed, if the file can be neither read
 * nor written. The caller holds the books. */
export async function retire(
  dir: string,
  segments: readonly {
    readonly name: string;
    readonly identity: string;
    readonly size: number;
  }[],
): Promise<void> {
  if (segments.length === 0) return;
  const retired = new Map(readRetired(dir));
  for (const { name, identity, size } of segments) {
    if ((retired.get(identity)?.size ?? 0) > size) continue;
    const sums = createMonthSums();
    await readSegment(join(dir, name), size, {
      settled: (settle) => sums.add(usageRecord(settle)),
    });
    retired.set(identity, { segment: name, size, months: sums.months() });
  }
  await replaceFile(fileIn(dir), textOfRetired(retired));
}

/** One segment a line. */
function textOfRetired(retired: RetiredSegments): string {
  const lines = [...retired].map(([identity, { segment, size, months }]) => {
    const sums = [...months].map(([month, { records, fingerprints, costs, from, to }]) => {
      const cost = Object.fromEntries([...costs].map(([name, pico]) => [name, formatMoney(pico)]));
      return [month, { records, fingerprints: String(fingerprints), cost, from, to }] as const;
    });
    const entry = { segment, size, months: Object.fromEntries(sums) };
    return `${JSON.stringify(identity)}:${JSON.stringify(entry)}`;
  });
  return `{\n${lines.join(",\n")}\n}\n`;
}

function readRetired(dir: string): RetiredSegments {
  const path = fileIn(dir);
  if (!existsSync(path)) return new Map();
  let bytes: Buffer;
  try {
    ({ bytes } = readRegularFile(path, MAX_BYTES));
  } catch (error) {
    return whyUnreadable(error) === "ENOENT" ? new Map() : failUnreadable(path, error);
  }
  const text = parseJsonFile(path, textIn(bytes));
  if (typeof text !== "object" || text === null || Array.isArray(text))
    return fail("invalid_value", `${path} does not hold the sums of retired segments`);
  const entries = Object.entries(text).map(([identity, value]) => {
    const { segment, size, months } = asObject(value);
    const sums = Object.entries(asObject(months)).map(
      ([month, sum]) => [month, sumIn(sum) ?? failEntry(path, identity)] as const,
    );
    const bytesOf = asCount(size) ?? failEntry(path, identity);
    const name = asString(segment) ?? failEntry(path, identity);
    return [identity, { segment: name, size: bytesOf, months: new Map(sums) }] as const;
  });
  return new Map(entries);
}

const failEntry = (path: string, identity: string): never =>
  fail("invalid_value", `${path} has no readable sums of the segment ${JSON.stringify(identity)}`);

function sumIn(value: unknown): RecordSum | undefined {
  const { records, fingerprints, cost, from, to } = asObject(value);
  const costs = Object.entries(asObject(cost)).map(([name, text]) => [name, String(text)] as const);
  const count = asCount(records);
  const isReadable =
    /^\d{1,20}$/.test(asString(fingerprints) ?? "") &&
    costs.every(([, text]) => AMOUNT.test(text)) &&
    typeof from === "string" &&
    typeof to === "string";
  if (!isReadable || count === undefined) return undefined;
  return {
    records: count,
    fingerprints: BigInt(String(fingerprints)),
    costs: new Map(costs.map(([name, text]) => [name, parseMoney(text)])),
    from,
    to,
  };
}
