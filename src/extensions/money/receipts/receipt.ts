// What a client is told of a request: no provider, and no host.
import { formatMoney, type Price } from "../../../core/ledger/price.ts";
import type { AttemptDetails, UsageRecord } from "../records/index.ts";
import type { ClosedDay } from "../days/index.ts";

/** An attempt, as a receipt has it. */
export interface ReceiptAttempt {
  /** The canonical name of the model. */
  readonly model: string;
  /** "ok", "cancelled" (the client left), or the code of the error. */
  readonly outcome: string;
  /** Whole milliseconds of this attempt, without the wait before it. */
  readonly duration_ms: number;
  /** Its share, if several models served the request. Absent: none was recorded. */
  readonly usage?: unknown;
  /** Those of its model. Absent: it has none, or an earlier version made the record. */
  readonly prices?: ReceiptPrices;
  /** As `usage`. An exact decimal number: what these tokens cost at these prices. */
  readonly cost?: unknown;
}

/** Prices per million tokens, as exact decimals. Null: a cache miss's (of a write: as above). */
export interface ReceiptPrices {
  /** Of prompt tokens from the provider's cache. */
  readonly input_cache_hit: string | null;
  /** Of all other prompt tokens. */
  readonly input_cache_miss: string;
  /** Of prompt tokens that the provider wrote to its cache. */
  readonly input_cache_write: string | null;
  /** Absent: it is that of the other cache writes. */
  readonly input_cache_write_1h?: string;
  /** Of completion tokens, reasoning included. */
  readonly output: string;
}

/** The tokens by class. */
export interface ReceiptUsage {
  /** Includes the tokens from the provider's cache. */
  readonly prompt_tokens: number;
  /** Reasoning tokens included. */
  readonly completion_tokens: number;
  /** prompt_tokens + completion_tokens. */
  readonly total_tokens: number;
  /** Part of prompt_tokens: those from the provider's cache. */
  readonly prompt_cache_hit_tokens: number;
  /** Part of prompt_tokens: the rest of them. */
  readonly prompt_cache_miss_tokens: number;
  /** Part of prompt_cache_miss_tokens. */
  readonly cache_write_tokens: number;
  /** Part of cache_write_tokens: what the provider keeps for an hour. Absent: 0. */
  readonly cache_write_1h_tokens?: number;
  /** Part of completion_tokens, shown to the client or not. */
  readonly reasoning_tokens: number;
}

/** One request that was settled. A null is something that does not exist or was not recorded. */
export interface Receipt {
  /** The X-Request-Id of the answer. Several requests may have the same. */
  readonly request_id: string;
  /** `sp_` and 32 hexadecimal digits. No other request has the same. */
  readonly spend_id: string;
  /** The model or alias that the client named. */
  readonly model_requested: string | null;
  /** The canonical name of the model that served. */
  readonly model: string | null;
  /** As Settlement.status. */
  readonly status: UsageRecord["status"];
  /** The `error.code` of the answer. Null also where the client left. */
  readonly error_code: string | null;
  /** As in the reply. Null also where the provider did not finish it. */
  readonly finish_reason: string | null;
  /** ISO 8601 in UTC. */
  readonly started_at: string;
  /** Milliseconds from `started_at` to the first text, reasoning or tool call. */
  readonly first_token_ms: number | null;
  /** ISO 8601 in UTC. */
  readonly ended_at: string;
  /** In the order in which they were made. Empty also where none were recorded. */
  readonly attempts: readonly ReceiptAttempt[];
  /** What was billed. All 0 where nothing was. */
  readonly usage: ReceiptUsage;
  /** "provider", "estimated" or "none", as UsageSource. */
  readonly usage_source: string | null;
  /** In force when the request began. Null: the model has none, or nobody served. */
  readonly prices: ReceiptPrices | null;
  /** An exact decimal number, in `currency`. */
  readonly cost: string;
  /** Three capital letters, such as USD. */
  readonly currency: string;
  /**
   * What was done for the request that its client should know of: that an alias stayed with the
   * model of the last turn, or which tools were left out. Absent: nothing.
   */
  readonly notes?: readonly string[];
  /** The line of days.jsonl that proves it. Null: the day on which it is booked is open. */
  readonly seal: Pick<ClosedDay, "day" | "number"> | null;
}

/** The receipt of a record. Without `details` it has no attempts and no prices. */
export function receiptOf(record: UsageRecord, seal: Receipt["seal"]): Receipt {
  const { details } = record;
  return {
    request_id: record.gateway_request_id,
    spend_id: record.usage_id,
    model_requested: details?.model_requested ?? null,
    // A record that nobody served has the name that the client asked for.
    model: record.provider === null ? null : record.model,
    status: record.status,
    error_code: details?.error_code ?? null,
    finish_reason: details?.finish_reason ?? null,
    started_at: record.started_at,
    first_token_ms: details?.first_token_ms ?? null,
    ended_at: record.ended_at,
    attempts: (details?.attempts ?? []).map(attemptOf),
    usage: usageOf(record),
    usage_source: details?.usage_source ?? null,
    prices: details?.prices ? pricesOf(details.prices) : null,
    cost: record.cost,
    currency: record.currency,
    ...(details?.notes && { notes: details.notes }),
    seal,
  };
}

const attemptOf = ([model, outcome, duration_ms, charge]: AttemptDetails): ReceiptAttempt => ({
  model,
  outcome: outcome === "completed" ? "ok" : outcome,
  duration_ms,
  ...(charge?.usage !== undefined && { usage: charge.usage }),
  ...(charge?.prices && { prices: pricesOf(charge.prices) }),
  ...(charge?.cost !== undefined && { cost: charge.cost }),
});

const usageOf = ({ details, ...record }: UsageRecord): ReceiptUsage => ({
  prompt_tokens: record.prompt_tokens,
  completion_tokens: record.completion_tokens,
  total_tokens: record.total_tokens,
  prompt_cache_hit_tokens: record.prompt_cache_hit_tokens,
  prompt_cache_miss_tokens: record.prompt_cache_miss_tokens,
  cache_write_tokens: record.cache_write_tokens,
  ...(details?.cache_write_1h_tokens !== undefined && {
    cache_write_1h_tokens: details.cache_write_1h_tokens,
  }),
  reasoning_tokens: record.reasoning_tokens,
});

const pricesOf = (prices: Price): ReceiptPrices => ({
  input_cache_hit: decimal(prices.input_cache_hit),
  input_cache_miss: decimal(prices.input_cache_miss) ?? "0",
  input_cache_write: decimal(prices.input_cache_write),
  ...(prices.input_cache_write_1h !== undefined && {
    input_cache_write_1h: decimal(prices.input_cache_write_1h) ?? "0",
  }),
  output: decimal(prices.output) ?? "0",
});

/** A price has at most six decimals, so that it is exact in millionths. */
const decimal = (price: number | undefined): string | null =>
  price === undefined ? null : formatMoney(BigInt(Math.round(price * 1e6)) * 1_000_000n);
