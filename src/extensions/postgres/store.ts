// The usage store in PostgreSQL, through the optional package `pg`.
import { resolve } from "node:path";
import { loadPeer } from "../stores/index.ts";
import type { Mark, UsageRecord, UsageStore, UsageStoreOptions } from "../usage-records/index.ts";
import type { PgPackage, Pool, QueryResult } from "./client.ts";
import { COMMIT, commitValues } from "./commit.ts";
import { clonedFault, NOTE_PLACE } from "./places.ts";
import { rebuildTable } from "./rebuild.ts";
import { FIND, filterValues, openCursor, parseSum, sumsBy } from "./select.ts";
import { MIGRATE } from "./tables.ts";

/**
 * A database that hangs must not hold the sync for ever. Reading ten million records takes long,
 * but each query is short.
 */
const LIMITS = {
  connectionTimeoutMillis: 5_000,
  query_timeout: 60_000,
  max: 8,
  allowExitOnIdle: true,
};

const MARKS = `SELECT segment, identity, position, tail, recovered
    FROM usage_marks WHERE source = $1
  UNION ALL SELECT segment, NULL, position, '', false FROM usage_cursor WHERE source = $1`;

const HOLDS = "SELECT usage_id FROM usage_records WHERE usage_id = ANY ($1)";

/**
 * Creates the store. It connects when it is first used. Throws a ValidationError if `pg` is not
 * installed.
 */
export function createPostgresStore(options: UsageStoreOptions): UsageStore {
  const { dataDir, gatewayInstanceId, place } = options;
  const { ready, close } = createPool(options.address);
  const run = async (text: string, values: readonly unknown[]): Promise<QueryResult> =>
    (await ready()).query(text, values);

  return {
    async marks() {
      const { rows } = await run(MARKS, [gatewayInstanceId()]);
      return rows.map((row) => ({ ...row, position: Number(row["position"]) }) as Mark);
    },
    async inspect() {
      const values = [gatewayInstanceId(), place(), resolve(dataDir)];
      const { rows } = await run(NOTE_PLACE, values);
      return rows.slice(0, 1).map((row) => clonedFault(String(row["data_dir"])));
    },
    async holds(records) {
      const { rows } = await run(HOLDS, [records.map(({ usage_id }) => usage_id)]);
      return new Set(rows.map(({ usage_id }) => String(usage_id)));
    },
    async commit(change) {
      await run(COMMIT, commitValues(gatewayInstanceId(), change));
    },
    async rebuild(readSettled, marks) {
      const client = await (await ready()).connect();
      try {
        return await rebuildTable(client, { source: gatewayInstanceId(), readSettled, marks });
      } finally {
        client.release(true);
      }
    },
    // PostgreSQL keeps its indexes itself.
    maintain: async () => [],
    async find({ requestId, account, limit }) {
      const { rows } = await run(FIND, [requestId, account ?? null, limit]);
      return rows.map(({ record }) => record as UsageRecord).reverse();
    },
    async sums(filter, by) {
      const { rows } = await run(sumsBy(by), filterValues(filter, gatewayInstanceId));
      return rows.map(parseSum<(typeof by)[number]>);
    },
    async *records(filter) {
      const client = await (await ready()).connect();
      try {
        await client.query("BEGIN READ ONLY");
        const values = filterValues(filter, gatewayInstanceId);
        await client.query(openCursor(filter.skip ?? 0), values);
        for (;;) {
          const { rows } = await client.query("FETCH 2000 FROM usage");
          if (rows.length === 0) return;
          yield rows.map(({ record }) => record as UsageRecord);
        }
      } finally {
        client.release(true);
      }
    },
    close,
  };
}

/** A pool of connections that makes sure of the tables before it is first used. */
function createPool(address: string): {
  readonly ready: () => Promise<Pool>;
  readonly close: () => Promise<void>;
} {
  const { Pool } = loadPeer<PgPackage>("pg", "usage.store");
  const pool = new Pool({ connectionString: address, application_name: "chat-gateway", ...LIMITS });
  // A connection that breaks fails the queries on it. Without these listeners it would end the
  // process as well.
  pool.on("error", () => undefined);
  pool.on("connect", (client) => client.on("error", () => undefined));
  let isMigrated = false;
  return {
    /**
     * Several statements in one query are one transaction. A connection on which a query failed is
     * ended.
     */
    async ready() {
      if (!isMigrated) await pool.query(MIGRATE);
      isMigrated = true;
      return pool;
    },
    close: () => pool.end(),
  };
}
