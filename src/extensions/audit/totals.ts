// Counts of usage records for an audit's summary.
import { formatMoney } from "../../core/ledger/price.ts";
import { parseMoney } from "../usage-records/index.ts";
import type { UsageRecord } from "../usage-records/index.ts";
import type { RecordSum } from "../books/index.ts";

/** When the first and the last of some records ended. Null where there are none. */
export interface Span {
  /** In ISO 8601. */
  readonly from: string | null;
  /** In ISO 8601. */
  readonly to: string | null;
}

/** Counts records and their costs. */
export interface Totals {
  /** Counts a record, its cost, and when it ended. */
  add(record: UsageRecord): void;
  /** Takes back a record that was added. The span stays as it is. */
  remove(record: UsageRecord): void;
  /** Takes back many records. */
  removeAll(sum: RecordSum): void;
  /** Those that were added, less those that were taken back. */
  count(): number;
  /** Of all that were ever added. */
  span(): Span;
  /** Exact decimals by currency. */
  costs(): Record<string, string>;
}

/** Totals of no records yet. */
export function createTotals(): Totals {
  const costs = new Map<string, bigint>();
  let count = 0;
  let from: string | null = null;
  let to: string | null = null;

  function addCost(currency: string, pico: bigint): void {
    costs.set(currency, (costs.get(currency) ?? 0n) + pico);
  }

  return {
    add({ ended_at, currency, cost }) {
      count += 1;
      if (from === null || ended_at < from) from = ended_at;
      if (to === null || ended_at > to) to = ended_at;
      addCost(currency, parseMoney(cost));
    },
    remove({ currency, cost }) {
      count -= 1;
      addCost(currency, -parseMoney(cost));
    },
    removeAll(sum) {
      count -= sum.records;
      for (const [currency, pico] of sum.costs) addCost(currency, -pico);
    },
    count: () => count,
    span: () => ({ from, to }),
    costs() {
      const billed = [...costs].filter(([, pico]) => pico !== 0n || count > 0).sort();
      return Object.fromEntries(billed.map(([currency, pico]) => [currency, formatMoney(pico)]));
    },
  };
}
