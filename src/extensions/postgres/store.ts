// Usage records in PostgreSQL, through the optional peer package `pg`: usage_records has the file store's columns, and moves in one
// transaction with usage_marks. Several gateways may write into one database: each has marks of its own, by its data_dir's gateway-id.
// usage_cursor is what earlier versions had in their place; usage_sources tells whether a gateway-id is in use in two places.
import { resolve } from "node:path";
import { gatewayInstanceId, placeOf } from "../books/files.ts";
import { loadPeer } from "../../core/config/peer.ts";
import type { Pool } from "./client.ts";
import { parseMoney } from "../../core/ledger/price.ts";
import type { Dimension, SumBy, UsageRecord } from "../books/records.ts";
import type { StoreFault, UsageChange, UsageFilter, UsageStore } from "../books/usage-store.ts";
import { rebuildTable } from "./rebuild.ts";
import type { Mark } from "../books/segments.ts";
import tables from "./usage-tables.json" with { type: "json" };

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

const NAMES = Object.keys(tables.columns);
/** Of two records of a request the one that does not say "interrupted" stays: its own process wrote it. */
const COMMIT = `WITH copied AS (
    INSERT INTO usage_records SELECT * FROM jsonb_populate_recordset(NULL::usage_records, $1)
    ON CONFLICT (usage_id) DO UPDATE SET (${NAMES.join(", ")}) = (${NAMES.map((name) => `excluded.${name}`).join(", ")})
    WHERE usage_records.status = 'interrupted' AND excluded.status <> 'interrupted'),
  dropped AS (
    DELETE FROM usage_marks USING jsonb_to_recordset($3) AS old(identity text, position bigint, tail text)
    WHERE source = $2 AND usage_marks.identity = old.identity AND usage_marks.position = old.position AND usage_marks.tail = old.tail),
  adopted AS (DELETE FROM usage_cursor WHERE source = $2 AND segment = ANY ($5))
  INSERT INTO usage_marks (source, identity, position, tail, segment, recovered)
  SELECT $2, identity, position, tail, segment, recovered
  FROM jsonb_to_recordset($4) AS new(identity text, position bigint, tail text, segment text, recovered boolean)
  ON CONFLICT (source, identity, position, tail) DO UPDATE SET segment = excluded.segment, recovered = excluded.recovered`;

/** Notes that this place is at work, and finds others that were at work with the same gateway-id at the same time, within the last
 * hour. A data_dir that was moved, or restored elsewhere, is at work in one place after the other. */
const SEEN = `WITH mine AS (
    INSERT INTO usage_sources AS mine VALUES ($1, $2, $3, clock_timestamp(), clock_timestamp())
    ON CONFLICT (source, place) DO UPDATE SET data_dir = excluded.data_dir, seen_at = clock_timestamp(),
      began_at = CASE WHEN mine.seen_at < now() - interval '1 hour' THEN clock_timestamp() ELSE mine.began_at END
    RETURNING began_at),
  forgotten AS (DELETE FROM usage_sources WHERE source = $1 AND place <> $2 AND seen_at < now() - interval '7 days')
  SELECT data_dir FROM usage_sources, mine
  WHERE source = $1 AND place <> $2 AND seen_at > mine.began_at AND seen_at > now() - interval '1 hour'
  ORDER BY seen_at DESC`;
const isSameMark = (a: Mark, b: Mark): boolean =>
  a.identity === b.identity && a.position === b.position && a.tail === b.tail;

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
    own ? `sp_${gatewayInstanceId(dataDir).slice(0, 8)}%` : null,
  ];
  const run = async (text: string, ...values: unknown[]) => (await ready()).query(text, values);

  return {
    async marks() {
      const { rows } = await run(
        `SELECT segment, identity, position, tail, recovered FROM usage_marks WHERE source = $1
         UNION ALL SELECT segment, NULL, position, '', false FROM usage_cursor WHERE source = $1`,
        gatewayInstanceId(dataDir),
      );
      return rows.map((row) => ({ ...row, position: Number(row["position"]) }) as Mark);
    },
    async inspect() {
      const { rows } = await run(
        SEEN,
        gatewayInstanceId(dataDir),
        placeOf(dataDir),
        resolve(dataDir),
      );
      return rows.slice(0, 1).map((row) => clonedFault(String(row["data_dir"])));
    },
    async holds(records) {
      const { rows } = await run(
        "SELECT usage_id FROM usage_records WHERE usage_id = ANY ($1)",
        records.map(({ usage_id }) => usage_id),
      );
      return new Set(rows.map(({ usage_id }) => String(usage_id)));
    },
    commit({ records, put, drop }: UsageChange) {
      const old = drop.filter((mark) => !put.some((each) => isSameMark(each, mark)));
      return run(
        COMMIT,
        JSON.stringify(records),
        gatewayInstanceId(dataDir),
        JSON.stringify(old.filter(({ identity }) => identity !== null)),
        JSON.stringify(put),
        old.filter(({ identity }) => identity === null).map(({ segment }) => segment),
      );
    },
    async rebuild(settled, marks) {
      const client = await (await ready()).connect();
      try {
        return await rebuildTable(client, { settled, marks, source: gatewayInstanceId(dataDir) });
      } finally {
        client.release(true);
      }
    },
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

const clonedFault = (dataDir: string): StoreFault => ({
  event: "gateway_cloned",
  detail: `another copy of this data_dir (it calls itself ${dataDir}) writes into the same database with the same gateway-id. Nothing is lost by it, but no audit can tell whose records are whose: stop the copy, and follow "Backup and restore" in the README before it runs again`,
  blocks: false,
});
