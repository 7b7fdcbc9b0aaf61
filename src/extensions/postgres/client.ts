// The part of the optional package `pg` that is used.

/** What a query resolves with. */
export interface QueryResult {
  readonly rows: readonly Record<string, unknown>[];
  /** Of an INSERT, UPDATE or DELETE: the number of rows. */
  readonly rowCount: number | null;
}

/** A query with a deadline of its own. */
export interface LongQuery {
  readonly text: string;
  readonly values?: readonly unknown[];
  /** Milliseconds. */
  readonly query_timeout: number;
}

/** Whatever queries can be sent through. */
export interface Queries {
  query(text: string | LongQuery, values?: readonly unknown[]): Promise<QueryResult>;
}

/** One connection. */
export interface Client extends Queries {
  on(event: "error", listener: () => void): void;
  /** Ends the connection, and whatever it was in the middle of. */
  release(end: true): void;
}

/** A pool of connections. */
export interface Pool extends Queries {
  on(event: "error" | "connect", listener: (client: Client) => void): void;
  connect(): Promise<Client>;
  end(): Promise<void>;
}

/** What the package exports. */
export interface PgPackage {
  readonly Pool: new (options: object) => Pool;
}
