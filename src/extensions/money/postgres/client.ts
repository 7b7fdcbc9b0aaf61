// The part of the optional package `pg` that is used.

/** Rows, each by the names of its columns. */
export type Rows = readonly Readonly<Record<string, unknown>>[];

/** A query with a deadline of its own. */
export interface LongQuery {
  /** SQL, with `$1` in the place of the first value. */
  readonly text: string;
  /** As many as the text has places for. */
  readonly values: readonly unknown[];
  /** Milliseconds. */
  readonly query_timeout: number;
}

/** One connection. */
export interface Client {
  /** Rejects with what the server says, or when the deadline is over. */
  query(
    text: string | LongQuery,
    values?: readonly unknown[],
  ): Promise<{
    /** What a SELECT or FETCH has found. */
    readonly rows: Rows;
  }>;
  /** The connection has broken. Without a listener that would end the process. */
  on(event: "error", listener: () => void): void;
  /** Ends the connection, and whatever it was in the middle of. */
  release(end: true): void;
}

/** A pool of connections. */
export interface Pool extends Pick<Client, "query"> {
  /** An idle connection has broken, or a new one is there. Listen to errors as Client.on says. */
  on(event: "error" | "connect", listener: (client: Client) => void): void;
  /** Takes a connection out of the pool. Rejects if there is none in time. */
  connect(): Promise<Client>;
  /** Resolves when all connections have ended. Nothing may be asked after that. */
  end(): Promise<void>;
}

/** The package's exports. */
export interface PgPackage {
  /** Takes its options, and connects at the first query. */
  readonly Pool: new (
    options: object,
  ) => Pool;
}
