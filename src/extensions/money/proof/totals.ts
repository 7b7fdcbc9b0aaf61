// Adds up the requests and records of a day by how they compare with each other.
import { formatMoney } from "../../../core/ledger/price.ts";
import { parseMoney, type UsageRecord } from "../records/index.ts";

/** The count, time span and cost of some records. */
export interface Total {
  /** How many there are. */
  records: number;
  /** When the first of them ended, ISO 8601 in UTC. Null: there is none. */
  from: string | null;
  /** When the last of them ended, ISO 8601 in UTC. Null: there is none. */
  to: string | null;
  /** In pico-units, by currency. */
  readonly costs: Map<string, bigint>;
}

const emptyTotal = (): Total => ({ records: 0, from: null, to: null, costs: new Map() });

/**
 * How a settled request compares with the usage record that it should have, or what a line of the
 * usage records is that belongs to no request.
 */
export type Verdict =
  /** The record is the one that the spend log implies. */
  | "same"
  /** The record differs from the one that the spend log implies. */
  | "changed"
  /** The request has no record, although its settle line was copied. */
  | "missing"
  /** The request has no record, and its settle line was not copied before the proof began. */
  | "pending"
  /** The spend log still has the line that the record names, but no request with this record. */
  | "inserted"
  /** The spend log no longer has the line that the record names: its segment is deleted or cut. */
  | "unlogged"
  /** The line is no usage record. */
  | "unreadable";

/** The totals of a day: of requests by the spend log, of lines without one as recorded. */
export interface Totals extends Readonly<Record<Verdict, Total>> {
  /** The `changed` requests once more, as the usage records have them. */
  readonly changedRecords: Total;
}

export const createTotals = (): Totals => ({
  same: emptyTotal(),
  changed: emptyTotal(),
  changedRecords: emptyTotal(),
  missing: emptyTotal(),
  pending: emptyTotal(),
  inserted: emptyTotal(),
  unlogged: emptyTotal(),
  unreadable: emptyTotal(),
});

/** The total of one record. `record` undefined: an unreadable line, which has no time or cost. */
export function totalOf(record: UsageRecord | undefined): Total {
  const time = record?.ended_at ?? null;
  const costs = new Map(record && [[record.currency, parseMoney(record.cost)]]);
  return { records: 1, from: time, to: time, costs };
}

/** Adds `part` to `total`. */
export function addTotal(total: Total, part: Total): void {
  total.records += part.records;
  const times = [total.from, total.to, part.from, part.to].filter((time) => time !== null).sort();
  total.from = times[0] ?? null;
  total.to = times.at(-1) ?? null;
  for (const [currency, cost] of part.costs)
    total.costs.set(currency, (total.costs.get(currency) ?? 0n) + cost);
}

/** Adds up these totals of some days. */
export function totalIn(
  days: readonly { readonly totals: Totals }[],
  ...names: readonly (keyof Totals)[]
): Total {
  const total = emptyTotal();
  for (const { totals } of days) for (const name of names) addTotal(total, totals[name]);
  return total;
}

/** The costs of a total, exact decimals by currency. */
export const costsOf = ({ costs }: Total): Readonly<Record<string, string>> =>
  Object.fromEntries([...costs].map(([currency, cost]) => [currency, formatMoney(cost)]).sort());
