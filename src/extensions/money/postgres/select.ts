// Reading usage records from PostgreSQL: single ones, days, and sums.
import { parseMoney, type Dimension, type ReadFilter, type SumBy } from "../records/index.ts";
import { RECORD, WHOLE_RECORD } from "./tables.ts";

/** The usage_ids of a source's records, as a pattern for LIKE. */
export const usageIdPattern = (source: string): string => `sp\\_${source.slice(0, 8)}%`;

/**
 * The latest records of a request id. The index is used first, because a planner that looks for the
 * latest might read all records backwards. $3: the most records.
 */
export const FIND = `WITH found AS MATERIALIZED (
    SELECT * FROM usage_records
    WHERE gateway_request_id = $1 AND ($2::text IS NULL OR account = $2))
  SELECT ${WHOLE_RECORD} AS record
  FROM found ORDER BY ended_at DESC, usage_id COLLATE "C" DESC LIMIT $3`;

/**
 * The days with records of a source: it goes from one day to the next by the index, for there may
 * be millions of records on each. $1: usageIdPattern().
 */
export const DAYS = `WITH RECURSIVE known AS (
    SELECT min(day) AS day FROM usage_records
    UNION ALL
    SELECT (SELECT min(day) FROM usage_records WHERE day > known.day) FROM known
    WHERE known.day IS NOT NULL)
  SELECT to_char(day, 'YYYY-MM-DD') AS day FROM known
  WHERE EXISTS (SELECT FROM usage_records AS records
    WHERE records.day = known.day AND usage_id LIKE $1)
  ORDER BY known.day`;

/** Opens the cursor `usage` over the records of a source on a day. $1: usageIdPattern(). */
export const OPEN_DAY = `DECLARE usage NO SCROLL CURSOR FOR SELECT ${WHOLE_RECORD} AS record
  FROM usage_records WHERE usage_id LIKE $1 AND day = $2 ORDER BY log_segment, log_line`;

/** Whether a record matches a filter. filterValues() has the values. */
const MATCHES = [
  "($1::text IS NULL OR account = $1)",
  "($2::text IS NULL OR gateway_request_id = $2)",
  "($3::text IS NULL OR model = $3)",
  "($4::text IS NULL OR key_id = $4)",
  "($5::text IS NULL OR coalesce(provider, '') = $5)",
  "($6::text IS NULL OR usage_id LIKE $6)",
  "($7::date IS NULL OR day >= $7 AND day < $7::date + interval '1 month')",
  "($8::date IS NULL OR day = $8)",
  "($9::date IS NULL OR day >= $9)",
  "($10::date IS NULL OR day <= $10)",
].join(" AND ");

/**
 * The values of both queries. `source` is the gateway instance id, which is asked for only if the
 * filter needs it.
 */
export function filterValues(filter: ReadFilter, source: () => string): unknown[] {
  const { account, requestId, model, keyId, provider, ownOnly, month, day, from, to } = filter;
  return [
    account ?? null,
    requestId ?? null,
    model ?? null,
    keyId ?? null,
    provider ?? null,
    ownOnly ? usageIdPattern(source()) : null,
    month ? `${month}-01` : null,
    day ?? null,
    from ?? null,
    to ?? null,
  ];
}

/** Opens the cursor `usage` over the matching records, day by day in the order of the log. */
export const openCursor = (skip: number): string =>
  `DECLARE usage NO SCROLL CURSOR FOR SELECT ${RECORD} AS record FROM usage_records
   WHERE ${MATCHES} ORDER BY day, log_segment, log_line, usage_id OFFSET ${skip}`;

const DIMENSIONS: Readonly<Record<Dimension, string>> = {
  day: "to_char(day, 'YYYY-MM-DD')",
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
  "sum(cache_write_tokens) AS cache_write_tokens",
  "sum(completion_tokens) AS completion_tokens",
  "sum(reasoning_tokens) AS reasoning_tokens",
  "sum(cost)::text AS cost",
];

/**
 * Adds up the matching records by each combination of the dimensions. parseSum() reads the rows.
 */
export function sumsBy(by: readonly Dimension[]): string {
  const columns = by.map((name) => `${DIMENSIONS[name]} AS ${name}`);
  const groups = by.map((name) => DIMENSIONS[name]).join(", ") || "()";
  return `SELECT to_json(sums) AS sum FROM (
    SELECT ${[...columns, ...FIGURES].join(", ")} FROM usage_records WHERE ${MATCHES}
    GROUP BY ${groups} HAVING count(*) > 0) AS sums`;
}

/** Reads a row of sumsBy(). */
export function parseSum<D extends Dimension>(row: Readonly<Record<string, unknown>>): SumBy<D> {
  const sum = row["sum"] as SumBy<D> & { readonly cost: unknown };
  return { ...sum, cost: parseMoney(String(sum.cost)) };
}
