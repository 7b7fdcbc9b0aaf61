// Reading usage records from PostgreSQL: single ones, and sums.
import { parseMoney } from "../usage-records/index.ts";
import type { Dimension, SumBy, UsageFilter } from "../usage-records/index.ts";

const isoTime = (column: string): string =>
  `to_char(${column} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;

/** A record as the file store has it: money as text, times in ISO 8601. */
const RECORD = `(to_jsonb(usage_records) - 'details') || jsonb_build_object('cost', cost::text,
  'cache_write_tokens', coalesce(cache_write_tokens, 0),
  'started_at', ${isoTime("started_at")}, 'ended_at', ${isoTime("ended_at")}) AS record`;

/**
 * The latest records of a request id, with their details. The index is used first, because a
 * planner that looks for the latest would read all records backwards. $3: the most records.
 */
export const FIND = `WITH found AS MATERIALIZED (
    SELECT * FROM usage_records
    WHERE gateway_request_id = $1 AND ($2::text IS NULL OR account = $2))
  SELECT ${RECORD.replaceAll("usage_records", "found").replace(" - 'details'", "")}
  FROM found ORDER BY ended_at DESC, usage_id DESC LIMIT $3`;

/** Whether a record matches a filter. filterValues() has the values. */
const MATCHES = [
  "($1::text IS NULL OR account = $1)",
  "($2::text IS NULL OR gateway_request_id = $2)",
  "($3::text IS NULL OR model = $3)",
  `($4::date IS NULL OR ended_at >= $4::date::timestamp AT TIME ZONE 'UTC'
    AND ended_at < ($4::date + $5::interval) AT TIME ZONE 'UTC')`,
  "($6::text IS NULL OR usage_id LIKE $6)",
  "($7::text IS NULL OR key_id = $7)",
  "($8::text IS NULL OR coalesce(provider, '') = $8)",
  "($9::date IS NULL OR ended_at >= $9::date::timestamp AT TIME ZONE 'UTC')",
  "($10::date IS NULL OR ended_at < ($10::date + interval '1 day') AT TIME ZONE 'UTC')",
].join(" AND ");

/**
 * The values of both queries. `source` is the gateway instance id, which is asked for only if the
 * filter needs it.
 */
export function filterValues(filter: UsageFilter, source: () => string): unknown[] {
  const { account, requestId, model, month, day, ownOnly, keyId, provider, from, to } = filter;
  return [
    account ?? null,
    requestId ?? null,
    model ?? null,
    day ?? (month ? `${month}-01` : null),
    day ? "1 day" : "1 month",
    ownOnly ? usageIdPattern(source()) : null,
    keyId ?? null,
    provider ?? null,
    from ?? null,
    to ?? null,
  ];
}

/** The usage_ids of a source's records, as a pattern for LIKE. */
export const usageIdPattern = (source: string): string => `sp_${source.slice(0, 8)}%`;

/** Opens the cursor `usage` over the matching records, in the order in which they ended. */
export const openCursor = (skip: number): string =>
  `DECLARE usage NO SCROLL CURSOR FOR SELECT ${RECORD} FROM usage_records WHERE ${MATCHES}
   ORDER BY ended_at, usage_id OFFSET ${skip}`;

const DIMENSIONS: Readonly<Record<Dimension, string>> = {
  day: "to_char(ended_at AT TIME ZONE 'UTC', 'YYYY-MM-DD')",
  account: "account",
  key_id: "key_id",
  provider: "coalesce(provider, '')",
  model: "model",
  currency: "currency",
};

const FIGURES = [
  "count(*) AS requests",
  "sum(prompt_cache_hit_tokens) AS prompt_cache_hit_tokens",
  "sum(prompt_cache_miss_tokens) AS prompt_cache_miss_tokens",
  "coalesce(sum(cache_write_tokens), 0) AS cache_write_tokens",
  "sum(completion_tokens) AS completion_tokens",
  "sum(reasoning_tokens) AS reasoning_tokens",
  "sum(cost)::text AS cost",
].join(", ");

/**
 * Adds up the matching records by each combination of the dimensions. parseSum() reads the rows.
 */
export function sumsBy(by: readonly Dimension[]): string {
  const columns = by.map((name) => `${DIMENSIONS[name]} AS ${name}`).join(", ");
  const positions = by.map((_, index) => index + 1).join(", ");
  return `SELECT to_json(sums) AS sum FROM (
    SELECT ${columns}, ${FIGURES} FROM usage_records WHERE ${MATCHES} GROUP BY ${positions}
  ) AS sums`;
}

/** Reads a row of sumsBy(). */
export function parseSum<D extends Dimension>(row: Readonly<Record<string, unknown>>): SumBy<D> {
  const sum = row["sum"] as SumBy<D> & { readonly cost: unknown };
  return { ...sum, cost: parseMoney(String(sum.cost)) };
}
