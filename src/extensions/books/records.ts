// The lines of the books: a request's beginning and end in the spend log, and the usage record that billing reads; and the contract
// of the stores that keep these. DESIGN.md "Files under data_dir": other programs read these lines, so names and meanings stay.
import { createHash } from "node:crypto";
import { asCount, asObject, asString, parseJson } from "../../core/schema/untrusted-json.ts";
import type { Usage } from "../../core/openai/usage.ts";
import type { AttemptRecord, Settlement } from "../../core/ledger/ledger.ts";
import type { UsageSource } from "../../core/ledger/meter.ts";
import { AMOUNT } from "../../core/ledger/price.ts";
import tables from "../postgres/usage-tables.json" with { type: "json" };

/** `spend_id`, `sp_` and 32 hex digits, is ours, and unique, whatever request id the client sent. */
const ABOUT = [
  "spend_id",
  "time",
  "gateway_request_id",
  "account",
  "key_id",
  "model_requested",
] as const;
/** Written before a provider is called. */
export type OpenRecord = { readonly type: "open"; readonly stream: boolean } & {
  readonly [name in (typeof ABOUT)[number]]: string;
};

const COUNTS = [
  "prompt_tokens",
  "completion_tokens",
  "total_tokens",
  "prompt_cache_hit_tokens",
  "prompt_cache_miss_tokens",
  "reasoning_tokens",
];
/** The figures of a reply as the books have them. */
const countsOf = ({
  prompt_tokens,
  completion_tokens,
  total_tokens,
  prompt_cache_hit_tokens,
  prompt_cache_miss_tokens,
  completion_tokens_details,
}: Usage) => ({
  prompt_tokens,
  completion_tokens,
  total_tokens,
  prompt_cache_hit_tokens,
  prompt_cache_miss_tokens,
  reasoning_tokens: completion_tokens_details.reasoning_tokens,
});
/** A request's end, as a line of the spend log. DESIGN.md "Files under data_dir" has the meaning of each field. */
export interface SettleRecord {
  readonly type: "settle";
  readonly spend_id: string;
  /** When it ended; never before it began, even if the wall clock was set back meanwhile. */
  readonly time: string;
  readonly gateway_request_id: string;
  readonly account: string;
  readonly key_id: string;
  readonly model_requested: string;
  readonly model_served: string | null;
  readonly provider: string | null;
  /** "interrupted" is what the next process says of one that died. */
  readonly status: Settlement["status"];
  readonly http_status: number | null;
  readonly error_code: string | null;
  readonly finish_reason: string | null;
  readonly attempts: readonly AttemptRecord[];
  readonly usage: ReturnType<typeof countsOf>;
  readonly usage_source: UsageSource;
  /** A decimal number, exact. */
  readonly cost: string;
  readonly currency: string;
  readonly first_token_ms: number | null;
  readonly duration_ms: number;
}

/** The settle line of a request that was opened by `open` and ended at `now`. Each field is named: copies of objects take longer than all
 * else about it. */
export function settleRecord(open: OpenRecord, now: number, settlement: Settlement): SettleRecord {
  const startedAt = Date.parse(open.time);
  const endedAt = Math.max(now, startedAt);
  return {
    type: "settle",
    spend_id: open.spend_id,
    time: new Date(endedAt).toISOString(),
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
    usage: countsOf(settlement.usage),
    usage_source: settlement.usageSource,
    cost: settlement.cost,
    currency: settlement.currency,
    first_token_ms: settlement.firstTokenMs,
    duration_ms: endedAt - startedAt,
  };
}

export const USAGE_COLUMNS = Object.keys(tables.columns) as (keyof typeof tables.columns)[];
export type UsageRecord = Readonly<ReturnType<typeof usageRecord>>;
/** `usage_id` is the spend_id that it was copied from; `model` the one that served or, if none did, the name that was asked for; it belongs
 * to the bill of the month in which it ended (UTC). */
export function usageRecord(settle: SettleRecord) {
  const {
    spend_id,
    gateway_request_id,
    account,
    key_id,
    model_served,
    model_requested,
    provider,
    status,
    usage,
    cost,
    currency,
    time,
  } = settle;
  const started_at = new Date(Date.parse(time) - settle.duration_ms).toISOString();
  return {
    usage_id: spend_id,
    gateway_request_id,
    account,
    key_id,
    model: model_served ?? model_requested,
    provider,
    status,
    ...usage,
    cost,
    currency,
    started_at,
    ended_at: time,
  };
}

/** A line of the spend log; undefined if something else than this program wrote it, or something is amiss in what is billed. */
export function parseSpendLine(line: string): OpenRecord | SettleRecord | undefined {
  const record = asObject(parseJson(line));
  const begun =
    ABOUT.every((name) => typeof record[name] === "string") &&
    !Number.isNaN(Date.parse(String(record["time"])));
  const counted =
    COUNTS.every((name) => asCount(asObject(record["usage"])[name]) !== undefined) &&
    asCount(record["duration_ms"]) !== undefined;
  const settled =
    record["type"] === "settle" && counted && AMOUNT.test(asString(record["cost"]) ?? "");
  return begun && (record["type"] === "open" || settled)
    ? (record as unknown as OpenRecord | SettleRecord)
    : undefined;
}

/** What sums of records are told apart by. `day`: `YYYY-MM-DD`, of `ended_at`, in UTC. */
export type Dimension = "day" | "account" | "model" | "currency";
/** Each counts for a request; reasoning tokens are a part of the completion tokens. */
export const FIGURES = [
  "requests",
  "prompt_cache_hit_tokens",
  "prompt_cache_miss_tokens",
  "completion_tokens",
  "reasoning_tokens",
] as const;
/** Exact; `cost` in pico-units. */
export type Sum = { [figure in (typeof FIGURES)[number]]: number } & { cost: bigint };
export type SumBy<D extends Dimension> = Sum & { readonly [dimension in D]: string };
export const nothing = (): Sum => ({
  requests: 0,
  prompt_cache_hit_tokens: 0,
  prompt_cache_miss_tokens: 0,
  completion_tokens: 0,
  reasoning_tokens: 0,
  cost: 0n,
});
export function addTo(sum: Sum, part: Sum): void {
  for (const name of FIGURES) sum[name] += part[name];
  sum.cost += part.cost;
}

/** What in a record contradicts itself; undefined: nothing. */
export function contradictionIn(record: UsageRecord): string | undefined {
  if (record.total_tokens !== record.prompt_tokens + record.completion_tokens)
    return "total_tokens is not prompt_tokens + completion_tokens";
  const { prompt_cache_hit_tokens: hit, prompt_cache_miss_tokens: miss } = record;
  if (record.prompt_tokens !== hit + miss)
    return "prompt_tokens is not prompt_cache_hit_tokens + prompt_cache_miss_tokens";
  if (record.reasoning_tokens > record.completion_tokens)
    return "reasoning_tokens are more than completion_tokens";
  return record.started_at > record.ended_at ? "it ended before it started" : undefined;
}

const isTime = (value: unknown): boolean =>
  typeof value === "string" && /^\d{4}-\d\d-\d\dT/.test(value) && !Number.isNaN(Date.parse(value));

/** A line of the file store as a record; undefined if something that is billed or searched for is missing or malformed. */
export function parseUsageLine(line: string): UsageRecord | undefined {
  const record = asObject(parseJson(line));
  const texts = ["usage_id", "gateway_request_id", "account", "key_id", "model", "status"];
  const readable =
    texts.every((name) => typeof record[name] === "string") &&
    COUNTS.every((name) => asCount(record[name]) !== undefined) &&
    AMOUNT.test(asString(record["cost"]) ?? "") &&
    typeof record["currency"] === "string" &&
    isTime(record["started_at"]) &&
    isTime(record["ended_at"]);
  return readable ? (record as unknown as UsageRecord) : undefined;
}

const ID_AT = '{"usage_id":"'.length;
/** The id in a line of the file store, which begins with it; what is no such line gives any text. */
export const idIn = (line: string): string => line.slice(ID_AT, line.indexOf('"', ID_AT));

/** All columns of a record, in their order: two records are the same if these texts are. */
export const textOf = (record: UsageRecord): string =>
  JSON.stringify(USAGE_COLUMNS.map((column) => record[column] ?? null));

/** A sum of fingerprints is another if a record is missing, doubled or altered. */
export const fingerprint = (record: UsageRecord): bigint =>
  createHash("sha256").update(textOf(record)).digest().readBigUInt64LE();

export const BUCKETS = 16 ** 4;
/** Records in buckets by the last four digits of their ids, which are random. */
export const bucketOf = ({ usage_id }: UsageRecord): number =>
  Number.parseInt(usage_id.slice(-4), 16) || 0;
