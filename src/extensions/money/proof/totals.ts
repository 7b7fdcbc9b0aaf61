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

const TOTALS = [
  "same",
  "changed",
  "missing",
  "pending",
  "inserted",
  "unlogged",
  "unreadable",
  "changedRecords",
] as const;

/**
 * How a settled request compares with the usage record that it should have:
 * - `same`: the record is the one that the spend log implies.
 * - `changed`: it has another content.
 * - `missing`: there is no record, although the settle line was copied.
 * - `pending`: there is no record, and the settle line was not copied when the proof began.
 *
 * What a line of the usage records is that no settled request implies:
 * - `inserted`: a record; the spend log has the line that it names, but not its request.
 * - `unlogged`: a record; its segment is deleted, or ends before the line that it names.
 * - `unreadable`: no record.
 */
export type Verdict = Exclude<keyof Totals, "changedRecords">;

/**
 * The totals of a day by verdict: of requests by the spend log, of other lines as recorded.
 * `changedRecords`: the `changed` requests once more, as the usage records have them.
 */
export type Totals = Readonly<Record<(typeof TOTALS)[number], Total>>;

export const createTotals = (): Totals =>
  Object.fromEntries(TOTALS.map((name) => [name, emptyTotal()])) as Record<keyof Totals, Total>;

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
