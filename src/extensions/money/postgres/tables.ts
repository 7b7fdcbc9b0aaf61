// The tables of the usage store. Several gateways may write into one database, so cursors and
// places are kept by source: the gateway instance id of a data_dir.
import { USAGE_COLUMNS } from "../records/index.ts";

/** Any number that no other program in the same database uses for an advisory lock. */
const MIGRATION_LOCK = 7_230_021;

/** The columns that are no text and no number of tokens, or may be empty. */
const TYPES: Readonly<Record<string, string>> = {
  usage_id: "text PRIMARY KEY",
  provider: "text",
  // Without a scale the number keeps the digits that were written: 0.10 stays 0.10.
  cost: "numeric NOT NULL",
  started_at: "timestamptz NOT NULL",
  ended_at: "timestamptz NOT NULL",
  day: "date NOT NULL",
  // Not jsonb: that has an order of members of its own, and a record must come back as its day's
  // line has the hash of it.
  details: "json NOT NULL",
  // Segments are ordered by the bytes of their names, whatever the language of the database.
  log_segment: 'text COLLATE "C" NOT NULL',
  log_line: "int NOT NULL",
};

const typeOf = (column: string): string =>
  TYPES[column] ?? (column.endsWith("_tokens") ? "bigint NOT NULL" : "text NOT NULL");

/** All columns of `usage_records`, in their order. */
const COLUMNS = [...USAGE_COLUMNS, "day", "details", "log_segment", "log_line", "log_sha256"];

const definitions = COLUMNS.map((name) => `${name} ${typeOf(name)}`);

/**
 * Makes the tables if they are not there. Several gateways may do it at the same time, so it takes
 * a lock. Where they are, the role needs no right to create any. `usage_sources` shows whether a
 * gateway instance id is in use in two places; `usage_days`, how many records each day must have.
 */
export const MIGRATE = `SELECT pg_advisory_xact_lock(${MIGRATION_LOCK});
  DO $$ BEGIN
    IF to_regclass('usage_records') IS NULL THEN
      IF to_regclass('usage_cursors') IS NOT NULL THEN
        RAISE EXCEPTION 'the table usage_records is gone: restore it, or drop usage_cursors too '
          'and run ''books rebuild''';
      END IF;
      CREATE TABLE usage_records (${definitions.join(", ")});
      CREATE INDEX usage_records_request ON usage_records (gateway_request_id);
      CREATE INDEX usage_records_account ON usage_records (account, day);
      CREATE INDEX usage_records_day ON usage_records (day, log_segment, log_line);
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
    IF to_regclass('usage_days') IS NULL THEN
      CREATE TABLE usage_days (
        source text, day date, records bigint NOT NULL, PRIMARY KEY (source, day));
    END IF;
  END $$`;

/** `SET` of an UPDATE that takes over every column of a row that could not be inserted. */
export const SET_ALL = `SET ${COLUMNS.map((name) => `${name} = excluded.${name}`).join(", ")}`;

const utcText = (column: string): string =>
  `to_char(${column} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;

/** The columns whose JSON is not what a record has. */
const TEXTS: Readonly<Record<string, string>> = {
  cost: "cost::text",
  started_at: utcText("started_at"),
  ended_at: utcText("ended_at"),
};

const members = [...USAGE_COLUMNS, "day"].map((name) => `'${name}', ${TEXTS[name] ?? name}`);

/** A record as JSON, with its members in the order of usageRecord(). */
export const RECORD = `json_build_object(${members.join(", ")})`;

/** The same with `details` and `log`. */
export const WHOLE_RECORD = `json_build_object(${members.join(", ")}, 'details', details,
  'log', json_build_object('segment', log_segment, 'line', log_line, 'sha256', log_sha256))`;
