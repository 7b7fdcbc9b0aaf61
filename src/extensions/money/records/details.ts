// What is kept of a request beside the columns of its usage record, for its receipt.
import type { UsageSource } from "../../../core/ledger/meter.ts";
import type { Price } from "../../../core/ledger/price.ts";

/**
 * What a receipt says of a request beside its usage record. No member has the name of a column: the
 * file store searches columns in the text of a line.
 */
export interface RequestDetails {
  /** The model or alias that the client named. */
  readonly model_requested: string;
  /** Absent: the request completed, or its client left. */
  readonly error_code?: string | undefined;
  /** Absent: the provider did not finish its reply. */
  readonly finish_reason?: string | undefined;
  /** Absent: no text came. */
  readonly first_token_ms?: number | undefined;
  /** Whether the record's tokens are the provider's own figures, or estimated. */
  readonly usage_source: UsageSource;
  /** Absent: 0. */
  readonly cache_write_1h_tokens?: number | undefined;
  /** In the order in which they were made. Empty: no provider was asked. */
  readonly attempts: readonly AttemptDetails[];
  /** Absent: the model that served has none, or nobody served. */
  readonly prices?: Price | undefined;
  /** As Settlement.notes. Absent: there are none. */
  readonly notes?: readonly string[] | undefined;
}

/** The model, the outcome, the duration in milliseconds, and what else was recorded of its cost. */
export type AttemptDetails = readonly [
  model: string,
  outcome: string,
  durationMs: number,
  charge?: AttemptCharge,
];

/** The share of an attempt in a request that several models served. */
export interface AttemptCharge {
  /** Its part of the tokens, as the spend log has it. */
  readonly usage?: unknown;
  /** Its part of the cost, as the spend log has it: an exact decimal number. */
  readonly cost?: unknown;
  /** By these it was billed. Absent: its model has none. */
  readonly prices?: Price;
}
