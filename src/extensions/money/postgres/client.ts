// The part of the optional package `pg` that is used.

/** What a query resolves with. */
export interface QueryResult {
  /** Each by the names of its columns. */
  readonly rows: readonly Record<string, unknown>[];
  /** Of an INSERT, UPDATE or DELETE: the number of rows. */
  readonly rowCount: number | null;
}

/** A query with a deadline of its own. */
export interface LongQuery {
  /** SQL, with `$1` in the place of the first value. */
  readonly text: string;
  /** Absent: the text has no place for any. */
  readonly values?: readonly unknown[];
  /** Milliseconds. */
  readonly query_timeout: number;
}

/** Whatever queries can be sent through. */
export interface Queries {
  /** Rejects with what the server says, or when the deadline is over. */
  query(text: string | LongQuery, values?: readonly unknown[]): Promise<QueryResult>;
}

/** One connection. */
export interface Client extends Queries {
  /** The connection has broken. Without a listener that would end the process. */
  on(event: "error", listener: () => void): void;
  /** Ends the connection, and whatever it was in the middle of. */
  release(end: true): void;
}

/** A pool of connections. */
export interface Pool extends Queries {
  /** An idle connection has broken, or a new one is there. Listen to errors as Client.on says. */
  on(event: "error" | "connect", listener: (client: Client) => void): void;
  /** Takes a connection out of the pool. Rejects if there is none in time. */
  connect(): Promise<Client>;
  /** Resolves when all connections have ended. Nothing may be asked after that. */
  end(): Promise<void>;
}

/** The package's exports: `Pool` takes its options, and connects at the first query. */
export interface PgPackage {
  readonly Pool: new (options: object) => Pool;
}
