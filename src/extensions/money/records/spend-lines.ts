// The lines of the spend log: one when a request begins, one when it has ended. Other programs read
// them, so the names and meanings of fields must not change. books.md "The spend log".
import type { AttemptRecord, Settlement } from "../../../core/ledger/ledger.ts";
import type { UsageSource } from "../../../core/ledger/meter.ts";
import type { Price } from "../../../core/ledger/price.ts";
import { asCount, asObject, asString, parseJson } from "../../../core/schema/untrusted-json.ts";
import { AMOUNT } from "./amounts.ts";
import { isoTime, isTime } from "./iso-time.ts";

/** The fields that both lines of a request have. */
export interface RequestLine {
  /** `sp_` and 32 hex digits. It is unique, whatever request id the client sent. */
  readonly spend_id: string;
  /**
   * When the request began or ended, in ISO 8601 and UTC. The end is never before the beginning,
   * even if the wall clock was set back meanwhile.
   */
  readonly time: string;
  /** The request id that the client sent or was given. Several requests may have the same. */
  readonly gateway_request_id: string;
  /** The account of the key. */
  readonly account: string;
  /** As Caller.keyId. */
  readonly key_id: string;
  /** The model or alias that the client named. */
  readonly model_requested: string;
}

/** The beginning of a request, written before a provider is called. */
export interface OpenLine extends RequestLine {
  /** Distinguishes it from a settle line. */
  readonly type: "open";
  /** Whether the client asked for a stream. */
  readonly stream: boolean;
  /** What is held for the request until it is settled. Absent: it falls under no budget. */
  readonly hold?: string | undefined;
}

/** The token counts that every line has, in their order. The last three are parts of the others. */
export const COUNTS = [
  "prompt_tokens",
  "completion_tokens",
  "total_tokens",
  "prompt_cache_hit_tokens",
  "prompt_cache_miss_tokens",
  "reasoning_tokens",
] as const;

/** The token counts of a request, as core/openai/usage.ts has them. */
export interface TokenCounts extends Readonly<Record<(typeof COUNTS)[number], number>> {
  /** The part of prompt_cache_miss_tokens that the provider wrote to its cache. Absent: 0. */
  readonly cache_write_tokens?: number | undefined;
  /** The part of cache_write_tokens that the provider keeps for an hour. Absent: 0. */
  readonly cache_write_1h_tokens?: number | undefined;
}

/** The end of a request. Its open line comes before it in the same segment. */
export interface SettleLine extends RequestLine {
  /** Distinguishes it from an open line. */
  readonly type: "settle";
  /** The canonical name of the model that served. Null if no provider began to answer. */
  readonly model_served: string | null;
  /** The provider of the model that served. Null where model_served is. */
  readonly provider: string | null;
  /** As Settlement.status. "interrupted": a later process wrote the line. */
  readonly status: Settlement["status"];
  /** The status of the answer to the client; 499 if the client left; null if nobody knows. */
  readonly http_status: number | null;
  /** Null: the request completed, or its client left, or its process died. */
  readonly error_code: string | null;
  /** Null until the provider has finished its reply. */
  readonly finish_reason: string | null;
  /** In the order in which they were made. Empty: none is known. */
  readonly attempts: readonly AttemptRecord[];
  /** What was billed. All 0 where usage_source is "none". */
  readonly usage: TokenCounts;
  /** Whether the token counts are the provider's own, or estimated. */
  readonly usage_source: UsageSource;
  /** A decimal number, exact, in `currency`. */
  readonly cost: string;
  /** Three capital letters, such as USD. */
  readonly currency: string;
  /**
   * Milliseconds from the check of the request to the first text, thinking or tool call. Null if
   * none came.
   */
  readonly first_token_ms: number | null;
  /** Milliseconds from the beginning to the end. */
  readonly duration_ms: number;
  /** The prices of the model that served, when the request began. Null: it has none. */
  readonly prices: Price | null;
  /** As Settlement.notes. Absent: there are none. */
  readonly notes?: readonly string[] | undefined;
}

/** A line of the spend log. */
export type SpendLine = OpenLine | SettleLine;

/** The token counts that a line leaves out where they are 0. */
const RARE_COUNTS = ["cache_write_tokens", "cache_write_1h_tokens"];

/** A parsed line whose fields are not checked yet: other programs may have written it. */
type Unchecked = Readonly<Record<string, unknown>>;

const hasTexts = (line: Unchecked, names: readonly string[]): boolean =>
  names.every((name) => typeof line[name] === "string");

/**
 * Whether a line can be billed: the fields `texts` are strings, `cost` and `currency` are valid,
 * and `counts` has all token counts.
 */
export const isBillable = (line: Unchecked, texts: readonly string[], counts: Unchecked): boolean =>
  hasTexts(line, texts) &&
  AMOUNT.test(asString(line["cost"]) ?? "") &&
  typeof line["currency"] === "string" &&
  COUNTS.every((name) => asCount(counts[name]) !== undefined) &&
  RARE_COUNTS.every((name) => counts[name] === undefined || asCount(counts[name]) !== undefined);

const TEXTS = ["spend_id", "gateway_request_id", "account", "key_id", "model_requested"];

/**
 * Reads a line. Undefined if it is not a line of the spend log, or if a field that its usage record
 * needs is missing or malformed.
 */
export function parseSpendLine(line: string): SpendLine | undefined {
  const record = asObject(parseJson(line));
  const { type } = record;
  const isReadable =
    hasTexts(record, TEXTS) &&
    isTime(record["time"]) &&
    (type === "open" || (type === "settle" && isSettled(record)));
  return isReadable ? (record as unknown as SpendLine) : undefined;
}

const isTextOrNull = (value: unknown): boolean => value === null || typeof value === "string";

function isSettled(line: Unchecked): boolean {
  const duration = asCount(line["duration_ms"]);
  return (
    isBillable(line, ["status"], asObject(line["usage"])) &&
    duration !== undefined &&
    // The request began in 1970 or later.
    duration <= Date.parse(String(line["time"])) &&
    isTextOrNull(line["model_served"]) &&
    isTextOrNull(line["provider"])
  );
}

/** The settle line of a request, which never ends before it began, even by a clock set back. */
export function settleLineOf(open: OpenLine, settlement: Settlement): SettleLine {
  const { usage } = settlement;
  const startedAt = Date.parse(open.time);
  const endedAt = Math.max(settlement.endedAt, startedAt);
  return {
    type: "settle",
    spend_id: open.spend_id,
    time: isoTime(endedAt),
    gateway_request_id: open.gateway_request_id,
    account: open.account,
    key_id: open.key_id,
    model_requested: open.model_requested,
    model_served: settlement.modelServed,
    provider: settlement.provider,
    status: settlement.status,
    http_status: settlement.httpStatus,
    error_code: settlement.errorCode,
    finish_reason: settlement.finishReason,
    attempts: settlement.attempts,
    usage: {
      prompt_tokens: usage.prompt_tokens,
      completion_tokens: usage.completion_tokens,
      total_tokens: usage.total_tokens,
      prompt_cache_hit_tokens: usage.prompt_cache_hit_tokens,
      prompt_cache_miss_tokens: usage.prompt_cache_miss_tokens,
      reasoning_tokens: usage.completion_tokens_details.reasoning_tokens,
      cache_write_tokens: usage.prompt_tokens_details.cache_write_tokens,
      cache_write_1h_tokens: usage.prompt_tokens_details.cache_write_1h_tokens,
    },
    usage_source: settlement.usageSource,
    cost: settlement.cost,
    currency: settlement.currency,
    first_token_ms: settlement.firstTokenMs,
    duration_ms: endedAt - startedAt,
    notes: settlement.notes,
    prices: settlement.price ?? null,
  };
}
