// Connections to PostgreSQL, through the optional package `pg`.
import { loadPeer } from "../../stores/index.ts";
import type { Client, PgPackage, Pool, Rows } from "./client.ts";
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
  run(text: string, ...values: readonly unknown[]): Promise<Rows>;
  /** A connection of its own for a transaction. Whoever asks ends it. */
  connect(): Promise<Client>;
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
    async run(text, ...values) {
      const { rows } = await (await ready()).query(text, values);
      return rows;
    },
    connect: async () => (await ready()).connect(),
    close: () => pool.end(),
  };
}
