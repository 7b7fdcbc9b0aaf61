// The tables of the usage store. Several gateways may write into one database, so cursors and
// places are kept by source: the gateway instance id of a data_dir.
import { DIMENSIONS, SUMMED_COUNTS, USAGE_COLUMNS } from "../records/index.ts";

/** The advisory lock of the migration: a number that other programs are unlikely to use. */
const MIGRATION_LOCK = 7_230_021;

/** The types of the columns that are neither required texts nor token counts. */
const TYPES: Readonly<Record<string, string>> = {
  usage_id: "text PRIMARY KEY",
  provider: "text",
  // Without a scale, the number keeps its digits: 0.10 stays 0.10.
  cost: "numeric NOT NULL",
  started_at: "timestamptz NOT NULL",
  ended_at: "timestamptz NOT NULL",
  day: "date NOT NULL",
  // Not jsonb, which reorders members: the line of a closed day has a hash of the record's text.
  details: "json NOT NULL",
  // Segments are sorted by the bytes of their names, whatever the locale of the database.
  log_segment: 'text COLLATE "C" NOT NULL',
  log_line: "int NOT NULL",
};

const typeOf = (column: string): string =>
  TYPES[column] ?? (column.endsWith("_tokens") ? "bigint NOT NULL" : "text NOT NULL");

/** All columns of `usage_records`, in their order. */
const COLUMNS = [...USAGE_COLUMNS, "day", "details", "log_segment", "log_line", "log_sha256"];

/** The same, in SQL. Other columns, which the operator has added, get their defaults. */
export const COLUMN_LIST = COLUMNS.join(", ");

const definitions = COLUMNS.map((name) => `${name} ${typeOf(name)}`);

/** How many characters all usage_ids of a source begin with: `sp_` and 8 digits of its id. */
const START_CHARS = 11;

/** The key of `usage_sums`. Its `usage_id` is only the beginning of its records' usage_ids. */
export const SUM_KEY = [...DIMENSIONS, "usage_id"].join(", ");

/** The other columns of `usage_sums`. */
export const ADDED_UP = ["requests", ...SUMMED_COUNTS, "cost"];

/** The rows of `usage_sums` for some records. `from`: the table, and a WHERE clause if need be. */
export const sumRowsOf = (from: string): string =>
  `SELECT day, account, key_id, model, coalesce(provider, '') AS provider, currency,
    left(usage_id, ${START_CHARS}) AS usage_id, count(*) AS requests,
    ${ADDED_UP.slice(1)
      .map((name) => `sum(${name}) AS ${name}`)
      .join(", ")}
  FROM ${from} GROUP BY 1, 2, 3, 4, 5, 6, 7`;

/**
 * Makes the missing tables. Several gateways may do this at the same time, so it takes a lock. If
 * all tables exist, the role needs no right to create any. `usage_sources` shows whether a gateway
 * instance id is in use in two places. `usage_sums` has the sums of each day's records. Earlier
 * versions have `usage_days` in its place: where that table is, they may have added records without
 * sums, so these are made anew. The lock waits for records that are being added, which the default
 * isolation of a database may hide.
 */
export const MIGRATE = `SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
  SELECT pg_advisory_xact_lock(${MIGRATION_LOCK});
  DO $$ BEGIN
    IF to_regclass('usage_records') IS NULL THEN
      IF to_regclass('usage_cursors') IS NOT NULL THEN
        RAISE EXCEPTION 'the table usage_records is gone: restore it, or drop usage_cursors too '
          'and run ''books rebuild''';
      END IF;
      CREATE TABLE usage_records (${definitions.join(", ")});
      CREATE INDEX usage_records_request
        ON usage_records (gateway_request_id, account, ended_at, usage_id COLLATE "C");
      CREATE INDEX usage_records_account ON usage_records (account, day);
      CREATE INDEX usage_records_day ON usage_records (day, log_segment, log_line);
      DROP TABLE IF EXISTS usage_sums;
    END IF;
    IF to_regclass('usage_cursors') IS NULL THEN
      CREATE TABLE usage_cursors (
        source text PRIMARY KEY, place text NOT NULL, moved_at timestamptz NOT NULL,
        cursor jsonb NOT NULL);
    END IF;
    IF to_regclass('usage_sources') IS NULL THEN
      CREATE TABLE usage_sources (
        source text, place text, data_dir text NOT NULL, began_at timestamptz NOT NULL,
        seen_at timestamptz NOT NULL, PRIMARY KEY (source, place));
    END IF;
    IF to_regclass('usage_sums') IS NULL OR to_regclass('usage_days') IS NOT NULL THEN
      DROP TABLE IF EXISTS usage_days, usage_sums;
      LOCK TABLE usage_records IN SHARE MODE;
      CREATE TABLE usage_sums (
        day date, account text, key_id text, model text, provider text, currency text,
        usage_id text, ${ADDED_UP.map((name) => `${name} numeric NOT NULL`).join(", ")},
        PRIMARY KEY (${SUM_KEY}));
      INSERT INTO usage_sums ${sumRowsOf("usage_records")};
    END IF;
  END $$`;

/** The SET clause of ON CONFLICT that overwrites every column. */
export const SET_ALL = `SET ${COLUMNS.map((name) => `${name} = excluded.${name}`).join(", ")}`;

const utcText = (column: string): string =>
  `to_char(${column} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;

/** The SQL of the columns whose default JSON differs from a record's. */
const TEXTS: Readonly<Record<string, string>> = {
  cost: "cost::text",
  started_at: utcText("started_at"),
  ended_at: utcText("ended_at"),
};

const members = [...USAGE_COLUMNS, "day"].map((name) => `'${name}', ${TEXTS[name] ?? name}`);

/** A record as JSON, with its members in the order of usageRecord(). */
export const RECORD = `json_build_object(${members.join(", ")})`;

/** As RECORD, with `details` and `log`. */
export const WHOLE_RECORD = `json_build_object(${members.join(", ")}, 'details', details,
  'log', json_build_object('segment', log_segment, 'line', log_line, 'sha256', log_sha256))`;
