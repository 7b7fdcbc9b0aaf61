// The lines of the books: a request's beginning and end in the spend log, and the usage record that billing reads; and the contract
// of the stores that keep these. DESIGN.md "Files under data_dir": other programs read these lines, so names and meanings stay.
import { createHash } from "node:crypto";
import { asCount, asObject, asString, parseJson } from "../../core/schema/untrusted-json.ts";
import type { Usage } from "../../core/openai/reply.ts";
import type { Model } from "../../core/routing/catalog.ts";
import { AMOUNT, costOf, formatMoney } from "../../core/ledger/price.ts";
import type { UsageSource } from "../../core/ledger/meter.ts";
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
/** `outcome`: "completed", "cancelled" (the client left), or the error code of what went wrong. */
export interface AttemptRecord {
  readonly model: string;
  readonly provider: string;
  readonly outcome: string;
  readonly duration_ms: number;
  /** HTTP status of the provider's answer; absent: it gave none, or did not fail. */
  readonly status?: number | undefined;
  /** Path of the URL that was asked; absent: nothing was asked, or it did not fail. */
  readonly path?: string | undefined;
  /** The provider's own words, redacted and cut, else this gateway's for what went wrong; absent: it did not fail. For the operator alone. */
  readonly detail?: string | undefined;
}
/** How a request ended, and what it came to. `model`, with the price in force when the request began, whatever was reloaded since; undefined:
 * no provider began to answer. */
export interface Outcome {
  readonly status: "completed" | "failed" | "cancelled" | "interrupted";
  readonly http_status: number | null;
  readonly error_code: string | null;
  readonly finish_reason: string | null;
  readonly attempts: readonly AttemptRecord[];
  readonly first_token_ms: number | null;
  readonly model: Model | undefined;
  readonly usage: Usage;
  readonly source: UsageSource;
}

export type SettleRecord = Readonly<ReturnType<typeof settleRecord>>;
/** Written before the last byte of the reply leaves; "interrupted" is what the next process says of one that died. Each field is named:
 * copies of objects take longer than all else about it. A clock that was set back lets nothing end before it began. `cost` is exact. */
export function settleRecord(open: OpenRecord, now: number, outcome: Outcome, currency: string) {
  const { spend_id, time, gateway_request_id, account, key_id, model_requested } = open;
  const {
    status,
    http_status,
    error_code,
    finish_reason,
    attempts,
    first_token_ms,
    model,
    usage,
    source: usage_source,
  } = outcome;
  const startedAt = Date.parse(time);
  const endedAt = Math.max(now, startedAt);
  return {
    type: "settle" as const,
    spend_id,
    time: new Date(endedAt).toISOString(),
    gateway_request_id,
    account,
    key_id,
    model_requested,
    model_served: model?.name ?? null,
    provider: model?.provider.name ?? null,
    status,
    http_status,
    error_code,
    finish_reason,
    attempts,
    usage: countsOf(usage),
    usage_source,
    cost: formatMoney(costOf(usage, model?.price)),
    currency,
    first_token_ms,
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
