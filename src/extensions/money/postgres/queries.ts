// The SQL of the store. All queries name their only column `value`. A source is a data_dir,
// identified by its gateway instance id. Copies of a data_dir have the same source but different
// places.
import type { Dimension, UsageFilter, UsageRecord } from "../records/index.ts";
import { ADDED_UP, COLUMN_LIST, SET_ALL, SUM_KEY, sumRowsOf, WHOLE_RECORD } from "./tables.ts";

/**
 * Notes that this place ($2) of a source ($1) is active with its data_dir ($3). Returns the
 * data_dirs of other places that were active at the same time within the last hour. A data_dir that
 * was moved or restored elsewhere does not count: its places are active one after the other.
 */
export const NOTE_PLACE = `WITH mine AS (
    INSERT INTO usage_sources AS mine VALUES ($1, $2, $3, clock_timestamp(), clock_timestamp())
    ON CONFLICT (source, place) DO UPDATE SET data_dir = excluded.data_dir,
      seen_at = clock_timestamp(),
      began_at = CASE WHEN mine.seen_at < now() - interval '1 hour'
        THEN clock_timestamp() ELSE mine.began_at END
    RETURNING began_at),
  forgotten AS (
    DELETE FROM usage_sources
    WHERE source = $1 AND place <> $2 AND seen_at < now() - interval '7 days')
  SELECT data_dir AS value FROM usage_sources, mine
  WHERE source = $1 AND place <> $2 AND seen_at > mine.began_at
    AND seen_at > now() - interval '1 hour'
  ORDER BY seen_at DESC`;

/**
 * The cursor of a source ($1), and whether a place other than this one ($2) has moved it since this
 * place became active. Then it is the cursor of a copy of the spend log.
 */
export const CURSOR = `SELECT json_build_object('cursor', cursor,
    'is_of_copy', coalesce(cursors.place <> $2 AND moved_at > began_at, false)) AS value
  FROM usage_cursors AS cursors
  LEFT JOIN usage_sources AS mine ON mine.source = cursors.source AND mine.place = $2
  WHERE cursors.source = $1`;

/**
 * Sets the cursor. $1: the source; $2: the place; $3: the new cursor; $4: the previous one. Returns
 * no row, and changes nothing, if the stored cursor is another: the statement came too late.
 */
export const SET_CURSOR = `INSERT INTO usage_cursors (source, place, moved_at, cursor)
  VALUES ($1, $2, clock_timestamp(), $3)
  ON CONFLICT (source) DO UPDATE SET place = excluded.place, moved_at = excluded.moved_at,
    cursor = excluded.cursor
  WHERE usage_cursors.cursor = $4::jsonb
  RETURNING 1 AS value`;

/** The ON CONFLICT clause for rows of `usage_sums`. `toSum`: makes the new value of a column. */
const setSums = (toSum: (name: string) => string): string =>
  `ON CONFLICT (${SUM_KEY}) DO UPDATE SET
    ${ADDED_UP.map((name) => `${name} = ${toSum(name)}`).join(", ")}`;

/** As SET_CURSOR, and adds records, also to the sums of their days. $5: rowsOf() the records. */
export const ADD = `WITH moved AS (${SET_CURSOR}),
  added AS (SELECT rows.* FROM json_populate_recordset(NULL::usage_records, $5) AS rows
    WHERE EXISTS (SELECT FROM moved)),
  summed AS (INSERT INTO usage_sums ${sumRowsOf("added")}
    ${setSums((name) => `usage_sums.${name} + excluded.${name}`)}),
  kept AS (INSERT INTO usage_records (${COLUMN_LIST}) SELECT ${COLUMN_LIST} FROM added)
  SELECT value FROM moved`;

/**
 * Whether a record or sum is of a source, by usageIdStart(). Empty: of any. It is a form that no
 * index serves: by an index the planner might look at all records of the source to find those of
 * one day.
 */
function isOf(start: string): string {
  return `left(usage_id, length(${start})) = ${start}`;
}

/** The records or sums of a day. $1: the day; $2: usageIdStart(). */
const OF_DAY = `day = $1 AND ${isOf("$2")}`;

/** Makes the sums of a day anew from its records. Parameters as OF_DAY. */
export const SET_SUMS = `WITH found AS (${sumRowsOf(`usage_records WHERE ${OF_DAY}`)}),
  gone AS (DELETE FROM usage_sums WHERE ${OF_DAY} AND (${SUM_KEY}) IN
    (SELECT ${SUM_KEY} FROM usage_sums WHERE ${OF_DAY} EXCEPT SELECT ${SUM_KEY} FROM found))
  INSERT INTO usage_sums SELECT * FROM found ${setSums((name) => `excluded.${name}`)}`;

/** How many records the sums of a day have, and how many were found. Parameters as OF_DAY. */
export const COUNT_DAY = `SELECT json_build_object('stated', coalesce(sum(requests), 0),
    'found', (SELECT count(*) FROM usage_records WHERE ${OF_DAY})) AS value
  FROM usage_sums WHERE ${OF_DAY}`;

/** Deletes the records of a day. Parameters as OF_DAY. */
export const DELETE_DAY = `DELETE FROM usage_records WHERE ${OF_DAY}`;

/** Adds records, and overwrites those that were moved to another day. $1: rowsOf() the records. */
export const PUT = `INSERT INTO usage_records (${COLUMN_LIST})
  SELECT ${COLUMN_LIST} FROM json_populate_recordset(NULL::usage_records, $1)
  ON CONFLICT (usage_id) DO UPDATE ${SET_ALL}`;

/** Records as rows of the table, in JSON. */
export const rowsOf = (records: readonly UsageRecord[]): string =>
  JSON.stringify(
    records.map(({ log, ...columns }) => ({
      ...columns,
      log_segment: log?.segment,
      log_line: log?.line,
      log_sha256: log?.sha256,
    })),
  );

/** The beginning of all usage_ids of a source. */
export const usageIdStart = (source: string): string => `sp_${source.slice(0, 8)}`;

/**
 * The latest records of a request id ($1) and an account ($2, or null); $3: at most how many. If
 * there is an account, only these rows are read, by the index, however many have the id.
 */
export const FIND = `SELECT ${WHOLE_RECORD} AS value FROM usage_records
  WHERE gateway_request_id = $1 AND ($2::text IS NULL OR account = $2)
  ORDER BY ended_at DESC, usage_id COLLATE "C" DESC LIMIT $3`;

/**
 * The days with records of a source. $1: usageIdStart(), or empty for all sources. Steps from day
 * to day through the index, because each day may have millions of records. With EXISTS, or
 * without an order, the planner might read all records instead.
 */
export const DAYS = `WITH RECURSIVE known AS (
    SELECT min(day) AS day FROM usage_records
    UNION ALL
    SELECT (SELECT min(day) FROM usage_records WHERE day > known.day) FROM known
    WHERE known.day IS NOT NULL)
  SELECT to_char(day, 'YYYY-MM-DD') AS value FROM known
  WHERE (SELECT true FROM usage_records AS records
    WHERE records.day = known.day AND ${isOf("$1")} ORDER BY log_segment, log_line LIMIT 1)
  ORDER BY known.day`;

/** A WHERE clause. */
export interface Condition {
  /** The text after WHERE. */
  readonly text: string;
  /** The values of `$1` and so on. */
  readonly values: readonly unknown[];
}

/**
 * The condition of a filter. `source` returns the gateway instance id. It is called only if the
 * filter needs it.
 */
export function conditionOf(filter: UsageFilter, source: () => string): Condition {
  const tests = {
    "account = ?": filter.account,
    "model = ?": filter.model,
    "key_id = ?": filter.key_id,
    "coalesce(provider, '') = ?": filter.provider,
    [isOf("?")]: filter.ownOnly ? usageIdStart(source()) : undefined,
    "day >= ?::date AND day < ?::date + interval '1 month'": filter.month && `${filter.month}-01`,
    "day = ?": filter.day,
    "day >= ?": filter.from,
    "day <= ?": filter.to,
  };
  const used = Object.entries(tests).filter(([, value]) => value !== undefined);
  const texts = used.map(([test], index) => test.replaceAll("?", () => `$${index + 1}`));
  return { text: texts.join(" AND ") || "true", values: used.map(([, value]) => value) };
}

/** Opens the cursor `usage` over rows, day by day in the order of the log. */
export const openCursor = (record: string, where: string): string =>
  `DECLARE usage NO SCROLL CURSOR FOR SELECT ${record} AS value FROM usage_records
   WHERE ${where} ORDER BY day, log_segment, log_line, usage_id`;

/**
 * The query that adds up the kept sums by the dimensions, however many records they have. Costs are
 * texts.
 */
export function sumsBy(by: readonly Dimension[], where: string): string {
  const added = ADDED_UP.map((name) => `sum(${name})${name === "cost" ? "::text" : ""} AS ${name}`);
  return `SELECT to_json(sums) AS value FROM (
    SELECT ${[...by, ...added].join(", ")} FROM usage_sums WHERE ${where}
    GROUP BY ${by.join(", ") || "()"} HAVING count(*) > 0) AS sums`;
}
