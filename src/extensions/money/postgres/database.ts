// Connections to PostgreSQL, through the optional package `pg`. The interfaces before Database
// describe the part of the package that is used.
import { loadPeer } from "../../scale/stores/index.ts";
import { StoreError } from "../records/index.ts";
import { MIGRATE } from "./tables.ts";

/** One connection. */
export interface Client {
  /**
   * Finds rows; all queries name their only column `value`. Rejects with what the server says, or
   * when the deadline is over: that of the pool, or `query_timeout` in milliseconds.
   */
  query(
    query: string | { readonly text: string; readonly query_timeout: number },
    values?: readonly unknown[],
  ): Promise<{ readonly rows: readonly { readonly value: unknown }[] }>;
  /** The connection has broken. Without a listener that would end the process. */
  on(event: "error", listener: () => void): void;
  /** Ends the connection, and whatever it was in the middle of. */
  release(end: true): void;
}

/** A pool of connections. */
interface Pool extends Pick<Client, "query"> {
  /** An idle connection has broken, or a new one is there. Listen to errors as Client.on says. */
  on(event: "error" | "connect", listener: (client: Client) => void): void;
  /** Takes a connection out of the pool. Rejects if there is none in time. */
  connect(): Promise<Client>;
  /** Resolves when all connections have ended. Nothing may be asked after that. */
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

/** The codes of PostgreSQL for a table, and for the type of its rows, that is not there. */
const UNDEFINED = ["42P01", "42704"];

/** What the server or the way to it says. */
function failed(error: Error): never {
  throw new StoreError(`usage.store: ${error.message}`, { cause: error });
}

/** A database whose tables are made before it is first asked. */
export interface Database {
  /** What a query has found. Rejects with a StoreError, also when it takes too long. */
  run<T>(text: string, ...values: readonly unknown[]): Promise<readonly T[]>;
  /**
   * A connection of its own for a transaction. Whoever asks ends it. `reader`: it may be kept for
   * long, by somebody who reads slowly; the sync and receipts do not wait for such ones.
   */
  connect(reader?: "reader"): Promise<Pick<Client, "query" | "release">>;
  /** Ends all connections. */
  close(): Promise<void>;
}

/** Connects when it is first used. Throws a ValidationError if `pg` is not installed. */
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
        // The tables are gone: the next query makes them, or says what to do.
        if (UNDEFINED.includes(error.code ?? "")) isMigrated = false;
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
