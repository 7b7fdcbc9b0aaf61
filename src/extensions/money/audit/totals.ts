// Counts, spans and costs of what a proof has read.
import { formatMoney } from "../../../core/ledger/price.ts";
import { parseMoney, type UsageRecord } from "../records/index.ts";
import type { DayCounts, ProofTotals } from "../proof/index.ts";

/** A number of records, and when the first and the last ended. Null: there is none. */
export interface RecordSpan {
  readonly records: number;
  /** ISO 8601 in UTC. */
  readonly from: string | null;
  /** ISO 8601 in UTC. */
  readonly to: string | null;
}

/** Adds records up. */
export interface SpanSum {
  add(record: UsageRecord): void;
  /** Adds what another one has. */
  addAll(other: SpanSum): void;
  span(): RecordSpan;
  /** In pico-units, by currency. */
  readonly costs: Map<string, bigint>;
}

export function createSpanSum(): SpanSum {
  const costs = new Map<string, bigint>();
  let sum: RecordSpan = { records: 0, from: null, to: null };
  function addSpan({ records, from, to }: RecordSpan): void {
    if (records === 0) return;
    sum = {
      records: sum.records + records,
      from: sum.from === null || from! < sum.from ? from : sum.from,
      to: sum.to === null || to! > sum.to ? to : sum.to,
    };
  }
  const addCost = (currency: string, pico: bigint): unknown =>
    costs.set(currency, (costs.get(currency) ?? 0n) + pico);
  return {
    costs,
    span: () => sum,
    add({ ended_at, currency, cost }) {
      addSpan({ records: 1, from: ended_at, to: ended_at });
      addCost(currency, parseMoney(cost));
    },
    addAll(other) {
      addSpan(other.span());
      for (const [currency, pico] of other.costs) addCost(currency, pico);
    },
  };
}

/** Exact decimals by currency. */
export const costsOf = ({ costs }: SpanSum): Readonly<Record<string, string>> =>
  Object.fromEntries([...costs].sort().map(([name, pico]) => [name, formatMoney(pico)]));

/** What one day has. */
export interface DayTotals {
  readonly day: string;
  readonly counts: DayCounts;
  /** Whether days.jsonl has exactly these records. */
  readonly isProved: boolean;
}

/** All that a proof has read. */
export interface CollectedTotals extends ProofTotals {
  /** Requests that the records should have. */
  readonly settledOnes: SpanSum;
  /** Records whose lines should be there. */
  readonly recordedOnes: SpanSum;
  /** Records that are as their lines say. */
  readonly equal: SpanSum;
  /** Records whose lines are gone, and that the line of their closed day proves. */
  readonly retired: SpanSum;
  /** Those that nothing proves. */
  readonly notProved: SpanSum;
  readonly days: readonly DayTotals[];
}

export function collectTotals(): CollectedTotals {
  const [settledOnes, recordedOnes, equal] = [createSpanSum(), createSpanSum(), createSpanSum()];
  const [retired, notProved] = [createSpanSum(), createSpanSum()];
  const left = new Map<string, SpanSum>();
  const days: DayTotals[] = [];
  return {
    settledOnes,
    recordedOnes,
    equal,
    retired,
    notProved,
    days,
    settled: settledOnes.add,
    recorded(record, kind) {
      if (kind === "equal" || kind === "unequal") recordedOnes.add(record);
      if (kind === "equal") equal.add(record);
      if (kind === "lost") notProved.add(record);
      if (kind !== "left") return;
      const ofDay = left.get(record.day) ?? createSpanSum();
      left.set(record.day, ofDay);
      ofDay.add(record);
    },
    dayDone(day, counts, isProved) {
      const gone = left.get(day);
      if (gone) (isProved ? retired : notProved).addAll(gone);
      days.push({ day, counts, isProved });
    },
  };
}
