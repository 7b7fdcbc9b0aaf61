// Connections to PostgreSQL, through the optional package `pg`.
import { loadPeer } from "../../stores/index.ts";
import type { Client, PgPackage, Pool, QueryResult } from "./client.ts";
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

/** A database whose tables are made before it is first asked. */
export interface Database {
  /** Rejects with what the server says, or when it takes too long. */
  run(text: string, ...values: readonly unknown[]): Promise<QueryResult>;
  /** Does work on a connection of its own, which ends with it: so does a transaction. */
  alone<T>(work: (client: Client) => Promise<T>): Promise<T>;
  /** Yields what a query finds that declares the cursor `usage`, in batches. */
  batches(text: string, values: readonly unknown[]): AsyncIterable<QueryResult["rows"]>;
  /** Ends all connections. */
  close(): Promise<void>;
}

/** Connects when it is first used. Throws a ValidationError if `pg` is not installed. */
export function openDatabase(address: string): Database {
  const { Pool } = loadPeer<PgPackage>("pg", "usage.store");
  const pool = new Pool({ connectionString: address, application_name: "chat-gateway", ...LIMITS });
  // A connection that breaks fails the queries on it. Without these listeners it would end the
  // process as well.
  pool.on("error", () => undefined);
  pool.on("connect", (client) => client.on("error", () => undefined));
  let isMigrated = false;

  /** Several statements in one query are one transaction. */
  async function ready(): Promise<Pool> {
    if (!isMigrated) await pool.query(MIGRATE);
    isMigrated = true;
    return pool;
  }

  return {
    run: async (text, ...values) => (await ready()).query(text, values),
    async alone(work) {
      const client = await (await ready()).connect();
      return await work(client).finally(() => client.release(true));
    },
    async *batches(text, values) {
      const client = await (await ready()).connect();
      try {
        await client.query("BEGIN READ ONLY");
        await client.query(text, values);
        for (;;) {
          const { rows } = await client.query("FETCH 2000 FROM usage");
          if (rows.length === 0) return;
          yield rows;
        }
      } finally {
        client.release(true);
      }
    },
    close: () => pool.end(),
  };
}
