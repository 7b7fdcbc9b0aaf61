// What a proof has read, added up.
import { createSummer, type Summer, type UsageRecord } from "../records/index.ts";

/** A number of records, and when the first and the last of them ended. */
export interface RecordSpan {
  /** How many there are. */
  records: number;
  /** ISO 8601 in UTC. Null: there is none. */
  from: string | null;
  /** ISO 8601 in UTC. Null: there is none. */
  to: string | null;
}

export const emptySpan = (): RecordSpan => ({ records: 0, from: null, to: null });

export const spanOf = ({ ended_at }: UsageRecord): RecordSpan => ({
  records: 1,
  from: ended_at,
  to: ended_at,
});

/** Adds `part` to `span`. */
export function addToSpan(span: RecordSpan, { records, from, to }: RecordSpan): void {
  if (from === null || to === null) return;
  span.records += records;
  if (span.from === null || from < span.from) span.from = from;
  if (span.to === null || to > span.to) span.to = to;
}

/** All that a proof has read. */
export interface ProofTotals {
  /** Requests that the records should have. */
  readonly settled: Summer<"currency">;
  /** Records whose lines should be in the spend log. */
  readonly recorded: Summer<"currency">;
  /** Records that are as their lines say. */
  readonly equal: RecordSpan;
  /** Records whose lines are gone, and that the line of their closed day proves. */
  readonly retired: RecordSpan;
  /** Records whose lines are gone, and that nothing proves. */
  readonly notProved: RecordSpan;
}

export const createTotals = (): ProofTotals => ({
  settled: createSummer(["currency"]),
  recorded: createSummer(["currency"]),
  equal: emptySpan(),
  retired: emptySpan(),
  notProved: emptySpan(),
});
