// Usage records: each is the bill of one settled request. A record is a pure function of the
// request's two lines in the spend log, their place there, and the day on which it is booked.
import { sha256 } from "../../../core/hash.ts";
import type { Settlement } from "../../../core/ledger/ledger.ts";
import type { UsageSource } from "../../../core/ledger/meter.ts";
import type { Price } from "../../../core/ledger/price.ts";
import { asArray, asCount, asObject, parseJson } from "../../../core/schema/untrusted-json.ts";
import { isDay, isoTime, isTime } from "./iso-time.ts";
import { COUNTS, isBillable, type SettleLine, type TokenCounts } from "./spend-lines.ts";

/** The lines of the spend log that a record is made from. */
export interface LogPlace {
  /** The file name of the segment. */
  readonly segment: string;
  /** The number of the settle line in it. The first line has 1. */
  readonly line: number;
  /** SHA-256 of the open line and the settle line, each with its line end. 64 hex digits. */
  readonly sha256: string;
}

/**
 * One settled request, with its token counts. Other programs read these records, so the names, the
 * order and the meanings of the columns must not change.
 */
export interface UsageRecord extends Omit<TokenCounts, "cache_write_1h_tokens"> {
  /** The spend_id of the spend log: `sp_` and 32 hex digits. No two records have the same. */
  readonly usage_id: string;
  /** The request id that the client sent or was given. Several requests may have the same. */
  readonly gateway_request_id: string;
  /** The account of the key. The record is on its bill. */
  readonly account: string;
  /** As Caller.keyId. */
  readonly key_id: string;
  /** The model that served the request or, if none did, the model or alias that it named. */
  readonly model: string;
  /** Null if no provider began to answer. */
  readonly provider: string | null;
  /** As Settlement.status. */
  readonly status: Settlement["status"];
  /** A decimal number, exact, in `currency`. */
  readonly cost: string;
  /** Three capital letters, such as USD. */
  readonly currency: string;
  /** ISO 8601 in UTC, with milliseconds. */
  readonly started_at: string;
  /** ISO 8601 in UTC, with milliseconds. */
  readonly ended_at: string;
  /** As in TokenCounts, but always there. */
  readonly cache_write_tokens: number;
  /**
   * The day on which it is booked, `YYYY-MM-DD` in UTC: the day of ended_at or, if that was closed
   * already, the first open day. The record is on the bill of this day's month.
   */
  readonly day: string;
  /** Further fields for receipts. UsageStore.records() leaves them out. */
  readonly details?: RequestDetails | undefined;
  /** The lines of the spend log that it is made from. Absent where `details` is absent. */
  readonly log?: LogPlace | undefined;
}

/** The fields of a receipt that are not columns of the usage record. */
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
  /** Absent: the model that served has no prices, or no model served. */
  readonly prices?: Price | undefined;
  /** As Settlement.notes. Absent: there are none. */
  readonly notes?: readonly string[] | undefined;
}

/** One attempt. `charge` is absent unless several models served the request. */
export type AttemptDetails = readonly [
  model: string,
  outcome: string,
  durationMs: number,
  charge?: AttemptCharge,
];

/** The share of one attempt in the tokens and the cost of its request. */
export interface AttemptCharge {
  /** Its tokens, unchecked, as the spend log has them. */
  readonly usage?: unknown;
  /** Its cost, unchecked, as the spend log has it: an exact decimal number. */
  readonly cost?: unknown;
  /** The prices by which it was billed. Absent: its model has none. */
  readonly prices?: Price;
}

/** The columns of a record that bills show, in the order in which CSV and tables have them. */
export const USAGE_COLUMNS = [
  "usage_id",
  "gateway_request_id",
  "account",
  "key_id",
  "model",
  "provider",
  "status",
  ...COUNTS,
  "cost",
  "currency",
  "started_at",
  "ended_at",
  "cache_write_tokens",
] as const satisfies readonly (keyof UsageRecord)[];

/** The usage record of a settled request that is booked on a day. */
export function usageRecord(settle: SettleLine, day: string, log: LogPlace): UsageRecord {
  const { usage } = settle;
  // Each member is named: gathering them by the list of columns takes several times as long.
  return {
    usage_id: settle.spend_id,
    gateway_request_id: settle.gateway_request_id,
    account: settle.account,
    key_id: settle.key_id,
    model: settle.model_served ?? settle.model_requested,
    provider: settle.provider,
    status: settle.status,
    prompt_tokens: usage.prompt_tokens,
    completion_tokens: usage.completion_tokens,
    total_tokens: usage.total_tokens,
    prompt_cache_hit_tokens: usage.prompt_cache_hit_tokens,
    prompt_cache_miss_tokens: usage.prompt_cache_miss_tokens,
    reasoning_tokens: usage.reasoning_tokens,
    cost: settle.cost,
    currency: settle.currency,
    started_at: isoTime(Date.parse(settle.time) - settle.duration_ms),
    ended_at: settle.time,
    cache_write_tokens: usage.cache_write_tokens ?? 0,
    day,
    // JSON leaves out undefined members, which saves space in millions of records.
    details: {
      model_requested: settle.model_requested,
      error_code: settle.error_code ?? undefined,
      finish_reason: settle.finish_reason ?? undefined,
      first_token_ms: settle.first_token_ms ?? undefined,
      usage_source: settle.usage_source,
      cache_write_1h_tokens: usage.cache_write_1h_tokens,
      attempts: asArray(settle.attempts).map(attemptDetails),
      prices: settle.prices || undefined,
      notes: settle.notes ? asArray(settle.notes).map(String) : undefined,
    },
    log,
  };
}

/** The hash of the two lines of a request. `open` is empty if there is no open line. */
export const hashOfLines = (open: string, settle: string): string =>
  sha256(open === "" ? `${settle}\n` : `${open}\n${settle}\n`);

/** The columns of a record, which other programs know. */
export function withoutDetails(record: UsageRecord): UsageRecord {
  const { details: _details, log: _log, ...columns } = record;
  return columns;
}

/** The settle line has a `share` for each attempt if several models served the request. */
function attemptDetails(attempt: unknown): AttemptDetails {
  const { model, outcome, duration_ms, share } = asObject(attempt);
  const base = [String(model), String(outcome), Number(duration_ms)] as const;
  if (share === undefined) return base;
  const { cost, prices, ...usage } = asObject(share);
  return [...base, { usage, cost, ...(prices !== undefined && { prices: prices as Price }) }];
}

/** The members that must be strings in every record. */
const TEXTS = ["usage_id", "gateway_request_id", "account", "key_id", "model", "status"];

/**
 * Reads a line of a record file. Undefined if a member that bills or searches need is missing or
 * malformed.
 */
export function parseUsageLine(line: string): UsageRecord | undefined {
  const record = asObject(parseJson(line));
  const log = asObject(record["log"]);
  const isReadable =
    isBillable(record, TEXTS, record) &&
    isTime(record["started_at"]) &&
    isTime(record["ended_at"]) &&
    isDay(record["day"]) &&
    typeof log["segment"] === "string" &&
    asCount(log["line"]) !== undefined;
  return isReadable ? (record as unknown as UsageRecord) : undefined;
}
