// Sums of usage records by month, exact enough to prove that two sides have the same records.
import { formatMoney } from "../../../core/ledger/price.ts";
import { parseMoney } from "../../usage-records/index.ts";
import type { UsageRecord } from "../../usage-records/index.ts";
import { fingerprint } from "./usage-record.ts";

/** What usage records that ended in one month add up to. */
export interface RecordSum {
  /** Number of records. */
  readonly records: number;
  /** The sum of their fingerprints, modulo 2^64. */
  readonly fingerprints: bigint;
  /** By currency, in pico-units. */
  readonly costs: ReadonlyMap<string, bigint>;
  /** When the first of them ended. Null if there are none. */
  readonly from: string | null;
  /** When the last of them ended. Null if there are none. */
  readonly to: string | null;
}

/** By month, `YYYY-MM` in UTC. */
export type MonthSums = ReadonlyMap<string, RecordSum>;

/** The sum of no records. */
export const NO_RECORDS: RecordSum = {
  records: 0,
  fingerprints: 0n,
  costs: new Map(),
  from: null,
  to: null,
};

/** Adds two sums. */
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

/** Currencies in which nothing is left are left out. */
function addCosts(a: RecordSum, b: RecordSum): ReadonlyMap<string, bigint> {
  const costs = new Map(a.costs);
  for (const [currency, pico] of b.costs) costs.set(currency, (costs.get(currency) ?? 0n) + pico);
  return new Map([...costs].filter(([, pico]) => pico !== 0n).sort());
}

/** Whether two sums are of the same records. */
export const isSameSum = (a: RecordSum, b: RecordSum): boolean =>
  a.records === b.records && a.fingerprints === b.fingerprints && costText(a) === costText(b);

/** Exact decimals with their currencies, for people. */
export const costText = ({ costs }: RecordSum): string =>
  [...costs]
    .filter(([, pico]) => pico !== 0n)
    .sort()
    .map(([currency, pico]) => `${formatMoney(pico)} ${currency}`)
    .join(", ") || "0";

/** Adds up records, one after the other. */
export interface MonthSummer {
  /** Counts it in the month in which it ended. */
  add(record: UsageRecord): void;
  /** Takes back a record that was added. The span from the first to the last stays as it is. */
  remove(record: UsageRecord): void;
  /** The sums so far. */
  months(): MonthSums;
}

/** A sum that grows. */
type GrowingSum = { -readonly [name in keyof RecordSum]: RecordSum[name] } & {
  readonly costs: Map<string, bigint>;
};

/** Sums of no records yet. */
export function createMonthSummer(): MonthSummer {
  const months = new Map<string, GrowingSum>();

  function count(record: UsageRecord, sign: 1 | -1): GrowingSum {
    const { ended_at, currency, cost } = record;
    const month = ended_at.slice(0, 7);
    const sum = months.get(month) ?? { ...NO_RECORDS, costs: new Map<string, bigint>() };
    months.set(month, sum);
    const factor = BigInt(sign);
    sum.records += sign;
    sum.fingerprints = BigInt.asUintN(64, sum.fingerprints + factor * fingerprint(record));
    sum.costs.set(currency, (sum.costs.get(currency) ?? 0n) + factor * parseMoney(cost));
    return sum;
  }

  return {
    add(record) {
      const { ended_at } = record;
      const sum = count(record, 1);
      if (sum.from === null || ended_at < sum.from) sum.from = ended_at;
      if (sum.to === null || ended_at > sum.to) sum.to = ended_at;
    },
    remove(record) {
      count(record, -1);
    },
    months: () => months,
  };
}
