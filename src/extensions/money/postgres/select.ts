// Reading usage records from PostgreSQL: single ones, days, and sums.
import {
  parseMoney,
  SUMMED_COUNTS,
  type Dimension,
  type SumBy,
  type UsageFilter,
  type UsageRecord,
} from "../records/index.ts";
import type { Rows } from "./client.ts";
import type { Database } from "./pool.ts";
import { WHOLE_RECORD } from "./tables.ts";

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

/** Which rows a query is about. */
export interface Condition {
  /** What stands after WHERE. */
  readonly text: string;
  /** What `$1` and so on stand for. */
  readonly values: readonly unknown[];
}

/**
 * The rows that match a filter. `source` is the gateway instance id, which is asked for only if the
 * filter needs it.
 */
export function conditionOf(filter: UsageFilter, source: () => string): Condition {
  const tests = {
    "account = ?": filter.account,
    "model = ?": filter.model,
    "key_id = ?": filter.key_id,
    "coalesce(provider, '') = ?": filter.provider,
    "usage_id LIKE ?": filter.ownOnly ? usageIdPattern(source()) : undefined,
    "day >= ?::date AND day < ?::date + interval '1 month'": filter.month && `${filter.month}-01`,
    "day = ?": filter.day,
    "day >= ?": filter.from,
    "day <= ?": filter.to,
  };
  const given = Object.entries(tests).filter(([, value]) => value !== undefined);
  const texts = given.map(([test], index) => test.replaceAll("?", () => `$${index + 1}`));
  return { text: texts.join(" AND ") || "true", values: given.map(([, value]) => value) };
}

/** How to read records. */
export interface Reading {
  /** A record as an expression of SQL. */
  readonly record: string;
  /** Which records. */
  readonly where: Condition;
  /** How many matching records to pass over. */
  readonly skip: number;
}

/** Yields records in batches, day by day in the order of the log. */
export async function* readRecords(
  database: Database,
  { record, where, skip }: Reading,
): AsyncGenerator<readonly UsageRecord[]> {
  const client = await database.connect();
  try {
    await client.query("BEGIN READ ONLY");
    const cursor = `DECLARE usage NO SCROLL CURSOR FOR SELECT ${record} AS record
      FROM usage_records WHERE ${where.text}
      ORDER BY day, log_segment, log_line, usage_id OFFSET ${skip}`;
    await client.query(cursor, where.values);
    for (;;) {
      const { rows } = await client.query("FETCH 2000 FROM usage");
      if (rows.length === 0) return;
      yield recordsIn(rows);
    }
  } finally {
    client.release(true);
  }
}

/** The records in rows that have one each. */
export const recordsIn = (rows: Rows): UsageRecord[] =>
  rows.map((row) => row["record"] as UsageRecord);

/** The dimensions that are not the column as it is. */
const DIMENSION_TEXTS: Readonly<Partial<Record<Dimension, string>>> = {
  day: "to_char(day, 'YYYY-MM-DD')",
  provider: "coalesce(provider, '')",
};

/** Adds up rows by each combination of the dimensions. parseSum() reads what it finds. */
export function sumsBy(by: readonly Dimension[], where: Condition): string {
  const groups = by.map((name) => DIMENSION_TEXTS[name] ?? name);
  const columns = [
    ...by.map((name, index) => `${groups[index]} AS ${name}`),
    "count(*) AS requests",
    ...SUMMED_COUNTS.map((name) => `sum(${name}) AS ${name}`),
    "sum(cost)::text AS cost",
  ];
  return `SELECT to_json(sums) AS sum FROM (
    SELECT ${columns.join(", ")} FROM usage_records WHERE ${where.text}
    GROUP BY ${groups.join(", ") || "()"} HAVING count(*) > 0) AS sums`;
}

/** Reads a row of sumsBy(). */
export function parseSum<D extends Dimension>(row: Rows[number]): SumBy<D> {
  const sum = row["sum"] as SumBy<D> & { readonly cost: unknown };
  return { ...sum, cost: parseMoney(String(sum.cost)) };
}
