// Adds up what a proof finds of the records of a day, by what was found.
import { formatMoney } from "../../../core/ledger/price.ts";
import { parseMoney, type UsageRecord } from "../records/index.ts";

/** What some records add up to. */
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

const VERDICTS = [
  "unchanged",
  "changed",
  "altered",
  "added",
  "awaited",
  "removed",
  "unreadable",
  "left",
] as const;

/**
 * `unchanged`: records that are as the spend log has them. `changed`: settled requests whose
 * records say something else; `altered`: these records. `added`: settled requests without a record.
 * `awaited`: the same, but they were not copied when the proof began. `removed`: records that no
 * settled request has; `unreadable`: lines that are no records. `left`: records whose lines are
 * gone with their segment.
 */
export type Verdict = (typeof VERDICTS)[number];

/** How the records of a day compare with the spend log. */
export type Totals = Readonly<Record<Verdict, Total>>;

export const createTotals = (): Totals =>
  Object.fromEntries(VERDICTS.map((verdict) => [verdict, emptyTotal()])) as Record<Verdict, Total>;

/** The total of one record, or of a line that is none. */
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

/** The total of what was found so on some days. */
export function totalIn(
  days: readonly { readonly totals: Totals }[],
  ...verdicts: readonly Verdict[]
): Total {
  const total = emptyTotal();
  for (const { totals } of days) for (const verdict of verdicts) addTotal(total, totals[verdict]);
  return total;
}

/** The costs of a total, exact decimals by currency. */
export const costsOf = ({ costs }: Total): Readonly<Record<string, string>> =>
  Object.fromEntries([...costs].map(([currency, cost]) => [currency, formatMoney(cost)]).sort());
