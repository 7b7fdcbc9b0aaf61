// The tables of the usage store. Several gateways may write into one database, so marks and places
// are kept by source: the gateway instance id of a data_dir.
import type { USAGE_COLUMNS } from "../usage-records/index.ts";

/** Any number that no other program in the same database uses for an advisory lock. */
const MIGRATION_LOCK = 7_230_021;

/** The columns of `usage_records`, in the order of the file store's. */
const COLUMNS: Readonly<Record<(typeof USAGE_COLUMNS)[number], string>> = {
  usage_id: "text PRIMARY KEY",
  gateway_request_id: "text NOT NULL",
  account: "text NOT NULL",
  key_id: "text NOT NULL",
  model: "text NOT NULL",
  provider: "text",
  status: "text NOT NULL",
  prompt_tokens: "bigint NOT NULL",
  completion_tokens: "bigint NOT NULL",
  total_tokens: "bigint NOT NULL",
  prompt_cache_hit_tokens: "bigint NOT NULL",
  prompt_cache_miss_tokens: "bigint NOT NULL",
  reasoning_tokens: "bigint NOT NULL",
  cost: "numeric NOT NULL",
  currency: "text NOT NULL",
  started_at: "timestamptz NOT NULL",
  ended_at: "timestamptz NOT NULL",
  // Not NOT NULL: a gateway of an earlier version that writes into the same table leaves it out.
  cache_write_tokens: "bigint DEFAULT 0",
};

/** What a receipt says beside the columns. Nothing is compared or added up by it. */
const DETAILS = "details jsonb";

/**
 * Adds a column to a table that an earlier version made. ALTER TABLE is left out where the column
 * is there: it would wait until nobody reads the table.
 */
function columnAdded(definition: string): string {
  const [name] = definition.split(" ");
  return `DO $$ BEGIN
    IF NOT EXISTS (SELECT FROM pg_attribute
      WHERE attrelid = 'usage_records'::regclass AND attname = '${name}' AND NOT attisdropped) THEN
      ALTER TABLE usage_records ADD COLUMN ${definition};
    END IF;
  END $$`;
}

const definitions = Object.entries(COLUMNS).map(([name, type]) => `${name} ${type}`);

/**
 * Every process runs all of these when it starts. A change, such as a new column, is added at the
 * end. `usage_cursor` is what earlier versions had in the place of `usage_marks`. `usage_sources`
 * shows whether a gateway instance id is in use in two places.
 */
const STATEMENTS = [
  `CREATE TABLE IF NOT EXISTS usage_records (${[...definitions, DETAILS].join(", ")})`,
  "CREATE INDEX IF NOT EXISTS usage_records_request ON usage_records (gateway_request_id)",
  "CREATE INDEX IF NOT EXISTS usage_records_account ON usage_records (account, ended_at)",
  "CREATE INDEX IF NOT EXISTS usage_records_ended ON usage_records (ended_at, usage_id)",
  `CREATE TABLE IF NOT EXISTS usage_cursor (
    source text, segment text, position bigint NOT NULL, PRIMARY KEY (source, segment))`,
  `CREATE TABLE IF NOT EXISTS usage_marks (
    source text, identity text, position bigint, tail text, segment text NOT NULL,
    recovered boolean NOT NULL, PRIMARY KEY (source, identity, position, tail))`,
  `CREATE TABLE IF NOT EXISTS usage_sources (
    source text, place text, data_dir text NOT NULL, began_at timestamptz NOT NULL,
    seen_at timestamptz NOT NULL, PRIMARY KEY (source, place))`,
  columnAdded(`cache_write_tokens ${COLUMNS.cache_write_tokens}`),
  columnAdded(DETAILS),
];

/**
 * Makes sure that the tables are there. Several gateways may do it at the same time, so it takes a
 * lock.
 */
export const MIGRATE = `SELECT pg_advisory_xact_lock(${MIGRATION_LOCK}); ${STATEMENTS.join("; ")}`;

/** The columns of a table, separated by commas. */
export const columnsOf = (table: string): string =>
  Object.keys(COLUMNS)
    .map((name) => `${table}.${name}`)
    .join(", ");

/** The same as values to compare: a count that an earlier version has left out is 0. */
export const valuesOf = (table: string): string =>
  Object.keys(COLUMNS)
    .map((name) =>
      name === "cache_write_tokens" ? `coalesce(${table}.${name}, 0)` : `${table}.${name}`,
    )
    .join(", ");

/** `SET` of an UPDATE that takes over every column of another table. */
export const setAllFrom = (table: string): string =>
  `SET (${Object.keys(COLUMNS).join(", ")}, details) = (${columnsOf(table)}, ${table}.details)`;
