// Usage records: made from settle lines, read from lines of the file store, and compared.
import { createHash } from "node:crypto";
import { AMOUNT } from "../../../core/ledger/price.ts";
import { USAGE_COLUMNS, type UsageRecord } from "../../usage-records/index.ts";
import { asCount, asObject, asString, parseJson } from "../../../core/schema/untrusted-json.ts";
import { COUNTS, type SettleRecord } from "../spend-log/records.ts";

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
    ...settle.usage,
    cost: settle.cost,
    currency: settle.currency,
    started_at: new Date(startedAt).toISOString(),
    ended_at: settle.time,
  };
}

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
    AMOUNT.test(asString(record["cost"]) ?? "") &&
    typeof record["currency"] === "string" &&
    isTime(record["started_at"]) &&
    isTime(record["ended_at"]);
  return isReadable ? (record as unknown as UsageRecord) : undefined;
}

const isTime = (value: unknown): boolean =>
  typeof value === "string" && /^\d{4}-\d\d-\d\dT/.test(value) && !Number.isNaN(Date.parse(value));

const ID_AT = '{"usage_id":"'.length;

/**
 * The usage_id in a line of the file store, without parsing the line. Any text if the line is no
 * record.
 */
export const usageIdIn = (line: string): string => line.slice(ID_AT, line.indexOf('"', ID_AT));

/** All columns of a record in their order. Two records are equal if and only if these texts are. */
export const recordText = (record: UsageRecord): string =>
  JSON.stringify(USAGE_COLUMNS.map((column) => record[column] ?? null));

/** A 64-bit hash of a record. Sums of them differ if a record is missing, doubled or altered. */
export const fingerprint = (record: UsageRecord): bigint =>
  createHash("sha256").update(recordText(record)).digest().readBigUInt64LE();

/** How many buckets records are put into, to compare many of them in little memory. */
export const BUCKETS = 16 ** 4;

/** The bucket of a record: the last four digits of its usage_id, which are random. */
export const bucketOf = ({ usage_id }: UsageRecord): number =>
  Number.parseInt(usage_id.slice(-4), 16) || 0;
