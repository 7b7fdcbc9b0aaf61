// Usage records in PostgreSQL, through the optional peer package `pg`: usage_records has the file store's columns, and moves in one
// transaction with usage_cursor. Several gateways may write into one database: each has a cursor of its own, by its data_dir's mark.
import { markOf } from "./files.ts";
import { loadPeer } from "./peer.ts";
import { parseMoney } from "./price.ts";
import type { Dimension, SumBy, UsageFilter, UsageRecord, UsageStore } from "./records.ts";
import tables from "./usage-tables.json" with { type: "json" };

/** What is used of `pg`. */
interface Queries {
  query(
    text: string,
    values?: readonly unknown[],
  ): Promise<{ readonly rows: readonly Record<string, unknown>[] }>;
}
/** `release(true)` ends the connection, and what it was in the midst of. */
interface Client extends Queries {
  on(event: "error", listener: () => void): void;
  release(end: true): void;
}
interface Pool extends Queries {
  on(event: "error" | "connect", told: (client: Client) => void): void;
  connect(): Promise<Client>;
  end(): Promise<void>;
}

/** A database that hangs must not hold the sync for ever; reading ten million records takes long, but each query is short. */
const LIMITS = {
  connectionTimeoutMillis: 5_000,
  query_timeout: 60_000,
  max: 8,
  allowExitOnIdle: true,
};
/** Several gateways may come at the same time. Any number that other programs in the same database do not use for an advisory lock of theirs. */
const MIGRATION_LOCK = 7_230_021;
const COLUMNS = Object.entries(tables.columns).map(([name, type]) => `${name} ${type}`);
/** What every process makes sure of when it comes. Changes, a new column too, are added at the end: they are carried out every time. */
const SCHEMA = [
  `CREATE TABLE IF NOT EXISTS usage_records (${COLUMNS.join(", ")})`,
  ...tables.statements,
].join("; ");
const time = (column: string) =>
  `to_char(${column} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;
/** As the file store has it: money as text, times in ISO 8601. */
const RECORD = `to_jsonb(usage_records) || jsonb_build_object('cost', cost::text, 'started_at', ${time("started_at")}, 'ended_at', ${time("ended_at")}) AS record`;
const FITS = tables.fits.join(" AND ");

export function createPostgresStore(url: string, dataDir: string): UsageStore {
  const { Pool } = loadPeer<{ Pool: new (options: object) => Pool }>("pg", "usage.store");
  const pool = new Pool({ connectionString: url, application_name: "chat-gateway", ...LIMITS });
  // A connection that breaks is told to whoever uses it; without these listeners it would end the process as well.
  pool.on("error", () => undefined);
  pool.on("connect", (client) => client.on("error", () => undefined));
  let migrated = false;

  /** The pool, with the tables there. A query is a transaction, also one of several statements, and a connection on which one failed is ended. */
  async function ready(): Promise<Pool> {
    if (!migrated) await pool.query(`SELECT pg_advisory_xact_lock(${MIGRATION_LOCK}); ${SCHEMA}`);
    migrated = true;
    return pool;
  }
  const valuesOf = ({ account, requestId, model, month, day, own }: UsageFilter) => [
    account ?? null,
    requestId ?? null,
    model ?? null,
    day ?? (month ? `${month}-01` : null),
    day ? "1 day" : "1 month",
    own ? `sp_${markOf(dataDir).slice(0, 8)}%` : null,
  ];
  const run = async (text: string, ...values: unknown[]) => (await ready()).query(text, values);

  return {
    async cursor() {
      const { rows } = await run(
        "SELECT segment, position FROM usage_cursor WHERE source = $1",
        markOf(dataDir),
      );
      return new Map(rows.map(({ segment, position }) => [String(segment), Number(position)]));
    },
    commit: (records, cursor, gone) =>
      run(
        `WITH copied AS (INSERT INTO usage_records SELECT * FROM jsonb_populate_recordset(NULL::usage_records, $1) ON CONFLICT (usage_id) DO NOTHING),
       dropped AS (DELETE FROM usage_cursor WHERE source = $2 AND segment = ANY ($4))
       INSERT INTO usage_cursor SELECT $2, key, value::bigint FROM jsonb_each_text($3)
       ON CONFLICT (source, segment) DO UPDATE SET position = excluded.position`,
        JSON.stringify(records),
        markOf(dataDir),
        JSON.stringify(Object.fromEntries(cursor)),
        gone,
      ),
    async sums<D extends Dimension>(filter: UsageFilter, by: readonly D[]) {
      const { rows } = await run(
        `SELECT to_json(sums) AS sum FROM (SELECT ${by.map((name) => `${tables.dimensions[name]} AS ${name}`).join()}, ${tables.sums}
         FROM usage_records WHERE ${FITS} GROUP BY ${by.map((_, at) => at + 1).join()}) AS sums`,
        ...valuesOf(filter),
      );
      return rows.map(({ sum }) => ({
        ...(sum as SumBy<D>),
        cost: parseMoney((sum as { cost: string }).cost),
      }));
    },
    async *records(filter) {
      const client = await (await ready()).connect();
      try {
        await client.query("BEGIN READ ONLY");
        await client.query(
          `DECLARE usage NO SCROLL CURSOR FOR SELECT ${RECORD} FROM usage_records WHERE ${FITS} ORDER BY ended_at, usage_id OFFSET ${filter.skip ?? 0}`,
          valuesOf(filter),
        );
        for (;;) {
          const { rows } = await client.query("FETCH 2000 FROM usage");
          if (rows.length === 0) return;
          yield rows.map(({ record }) => record as UsageRecord);
        }
      } finally {
        client.release(true);
      }
    },
    close: () => pool.end(),
  };
}
