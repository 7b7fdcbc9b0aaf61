// Connections to PostgreSQL, through the optional package `pg`. The interfaces Client and Pool
// describe the part of the package that is used.
import { loadPeer } from "../../scale/stores/index.ts";
import { StoreError } from "../records/index.ts";
import { MIGRATE } from "./tables.ts";

/** One connection. */
export interface Client {
  /**
   * Resolves with the rows found. All queries name their only column `value`. Rejects with the
   * server's error, or after `query_timeout` milliseconds; absent: that of the pool.
   */
  query(
    query: string | { readonly text: string; readonly query_timeout: number },
    values?: readonly unknown[],
  ): Promise<{ readonly rows: readonly { readonly value: unknown }[] }>;
  /** The connection has broken. Without a listener the error would end the process. */
  on(event: "error", listener: () => void): void;
  /** Ends the connection, with any transaction in progress. */
  release(end: true): void;
}

/** A pool of connections. */
interface Pool extends Pick<Client, "query"> {
  /** An idle connection has broken, or a new one has opened. "error" needs a listener as above. */
  on(event: "error" | "connect", listener: (client: Client) => void): void;
  /** Takes a connection out of the pool. Rejects if none is free in time. */
  connect(): Promise<Client>;
  /** Resolves when all connections have ended. The pool must not be used after that. */
  end(): Promise<void>;
}

/**
 * A database that hangs must not hold the sync for ever. Reading ten million records takes long,
 * but each query is short.
 */
const LIMITS = {
  connectionTimeoutMillis: 5_000,
  query_timeout: 60_000,
  max: 4,
  allowExitOnIdle: true,
};

/** PostgreSQL's error codes for a missing table, and for the missing type of its rows. */
const MISSING_TABLE = ["42P01", "42704"];

/** Rethrows an error of the server or the connection as a StoreError. */
function failed(error: Error): never {
  throw new StoreError(`usage.store: ${error.message}`, { cause: error });
}

/** A database whose tables are made before the first query. */
export interface Database {
  /** Resolves with the values a query found. Rejects with a StoreError, also on a timeout. */
  run<T>(text: string, ...values: readonly unknown[]): Promise<readonly T[]>;
  /**
   * Opens a connection for one transaction, which the caller must release. `reader`: the caller may
   * read slowly, so the connection is not taken from those of the sync and receipts.
   */
  connect(reader?: "reader"): Promise<Pick<Client, "query" | "release">>;
  /** Ends all connections. */
  close(): Promise<void>;
}

/** Opens a database. The first query connects. Throws a ValidationError if `pg` is missing. */
export function openDatabase(address: string): Database {
  const { Pool } = loadPeer<{ Pool: new (options: object) => Pool }>("pg", "usage.store");
  function openPool(): Pool {
    const named = { connectionString: address, application_name: "chat-gateway" };
    const pool = new Pool({ ...named, ...LIMITS });
    // A connection that breaks fails the queries on it. Without these listeners it would end the
    // process as well.
    pool.on("error", () => undefined);
    pool.on("connect", (client) => client.on("error", () => undefined));
    return pool;
  }
  const pool = openPool();
  const readers = openPool();
  let isMigrated = false;

  /** Several statements in one query are one transaction. */
  async function migrate(): Promise<void> {
    if (!isMigrated) await pool.query(MIGRATE);
    isMigrated = true;
  }

  return {
    async run<T>(text: string, ...values: readonly unknown[]) {
      const asked = migrate().then(() => pool.query(text, values));
      const { rows } = await asked.catch((error: Error & { readonly code?: string }) => {
        // The tables are gone. The next query makes them, or fails with what to do.
        if (MISSING_TABLE.includes(error.code ?? "")) isMigrated = false;
        return failed(error);
      });
      return rows.map(({ value }) => value as T);
    },
    async connect(reader) {
      const client = await migrate()
        .then(() => (reader ? readers : pool).connect())
        .catch(failed);
      return {
        query: (query, values) => client.query(query, values).catch(failed),
        release: (end) => client.release(end),
      };
    },
    async close() {
      await Promise.all([pool.end(), readers.end()]);
    },
  };
}
