// Usage records: made from settle lines, read from lines of the file store, and compared.
import { createHash } from "node:crypto";
import type { Price } from "../../../core/ledger/price.ts";
import {
  AMOUNT,
  USAGE_COLUMNS,
  type AttemptDetails,
  type RequestDetails,
  type UsageRecord,
} from "../../usage-records/index.ts";
import {
  asArray,
  asCount,
  asObject,
  asString,
  parseJson,
} from "../../../core/schema/untrusted-json.ts";
import {
  COUNTS,
  hasRareCounts,
  type SettleRecord,
  type TokenCounts,
} from "../spend-log/records.ts";

/** The usage record of a settled request. */
export function usageRecord(settle: SettleRecord): UsageRecord {
  const startedAt = Date.parse(settle.time) - settle.duration_ms;
  return {
    usage_id: settle.spend_id,
    gateway_request_id: settle.gateway_request_id,
    account: settle.account,
    key_id: settle.key_id,
    model: settle.model_served ?? settle.model_requested,
    provider: settle.provider,
    status: settle.status,
    ...countsIn(settle.usage),
    cost: settle.cost,
    currency: settle.currency,
    started_at: new Date(startedAt).toISOString(),
    ended_at: settle.time,
    cache_write_tokens: settle.usage.cache_write_tokens ?? 0,
    details: detailsOf(settle),
  };
}

/** Members without a value are left out: there are millions of records. */
function detailsOf(settle: SettleRecord): RequestDetails {
  const { error_code, finish_reason, first_token_ms, prices, notes } = settle;
  const { cache_write_1h_tokens } = settle.usage;
  return {
    model_requested: settle.model_requested,
    ...(error_code !== null && { error_code }),
    ...(finish_reason !== null && { finish_reason }),
    ...(first_token_ms !== null && { first_token_ms }),
    usage_source: settle.usage_source,
    ...(cache_write_1h_tokens !== undefined && { cache_write_1h_tokens }),
    attempts: asArray(settle.attempts).map(attemptDetails),
    ...(prices && { prices }),
    ...(notes && { notes: asArray(notes).map(String) }),
  };
}

/** An attempt has a share of the usage and the cost, if several served the request. */
function attemptDetails(attempt: unknown): AttemptDetails {
  const { model, outcome, duration_ms, share } = asObject(attempt);
  const base = [String(model), String(outcome), Number(duration_ms)] as const;
  if (share === undefined) return base;
  const { cost, prices, ...usage } = asObject(share);
  return [...base, { usage, cost, ...(prices !== undefined && { prices: prices as Price }) }];
}

/** The counts that every line of the spend log has. */
const countsIn = (usage: TokenCounts) => ({
  prompt_tokens: usage.prompt_tokens,
  completion_tokens: usage.completion_tokens,
  total_tokens: usage.total_tokens,
  prompt_cache_hit_tokens: usage.prompt_cache_hit_tokens,
  prompt_cache_miss_tokens: usage.prompt_cache_miss_tokens,
  reasoning_tokens: usage.reasoning_tokens,
});

/** Columns that every record must have as text. */
const TEXTS = ["usage_id", "gateway_request_id", "account", "key_id", "model", "status"] as const;

/**
 * Reads a line of the file store. Undefined if a column that is billed or searched for is missing
 * or malformed.
 */
export function parseUsageLine(line: string): UsageRecord | undefined {
  const record = asObject(parseJson(line));
  const isReadable =
    TEXTS.every((name) => typeof record[name] === "string") &&
    COUNTS.every((name) => asCount(record[name]) !== undefined) &&
    hasRareCounts(record) &&
    AMOUNT.test(asString(record["cost"]) ?? "") &&
    typeof record["currency"] === "string" &&
    isTime(record["started_at"]) &&
    isTime(record["ended_at"]);
  return isReadable ? withAllCounts(record) : undefined;
}

/** The record that a line holds. Lines of earlier versions do not count cache writes. */
export function withAllCounts(record: Record<string, unknown>): UsageRecord {
  record["cache_write_tokens"] ??= 0;
  return record as unknown as UsageRecord;
}

const isTime = (value: unknown): boolean =>
  typeof value === "string" && /^\d{4}-\d\d-\d\dT/.test(value) && !Number.isNaN(Date.parse(value));

const ID_AT = '{"usage_id":"'.length;

/**
 * The usage_id in a line of the file store, without parsing the line. Any text if the line is no
 * record.
 */
export const usageIdIn = (line: string): string => line.slice(ID_AT, line.indexOf('"', ID_AT));

/**
 * All columns of a record in their order. Two records are equal if and only if these texts are. A
 * record without cache writes has the text that earlier versions gave it: the sums that they kept
 * of deleted segments are of such texts.
 */
export function recordText(record: UsageRecord): string {
  const values = BASE_COLUMNS.map((column) => record[column] ?? null);
  if ((record.cache_write_tokens ?? 0) !== 0) values.push(record.cache_write_tokens);
  return JSON.stringify(values);
}

const BASE_COLUMNS = USAGE_COLUMNS.filter((column) => column !== "cache_write_tokens");

/** A 64-bit hash of a record. Sums of them differ if a record is missing, doubled or altered. */
export const fingerprint = (record: UsageRecord): bigint =>
  createHash("sha256").update(recordText(record)).digest().readBigUInt64LE();

/** How many buckets records are put into, to compare many of them in little memory. */
export const BUCKETS = 16 ** 4;

/** The bucket of a record: the last four digits of its usage_id, which are random. */
export const bucketOf = ({ usage_id }: UsageRecord): number =>
  Number.parseInt(usage_id.slice(-4), 16) || 0;
