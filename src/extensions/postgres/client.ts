// What is used of the optional peer package `pg`.

export interface QueryResult {
  readonly rows: readonly Record<string, unknown>[];
  /** Of an INSERT, UPDATE or DELETE: how many rows it was. */
  readonly rowCount: number | null;
}
/** A query with a deadline of its own, in milliseconds. */
export interface LongQuery {
  readonly text: string;
  readonly values?: readonly unknown[];
  readonly query_timeout: number;
}
export interface Queries {
  query(text: string | LongQuery, values?: readonly unknown[]): Promise<QueryResult>;
}
/** `release(true)` ends the connection, and what it was in the midst of. */
export interface Client extends Queries {
  on(event: "error", listener: () => void): void;
  release(end: true): void;
}
export interface Pool extends Queries {
  on(event: "error" | "connect", told: (client: Client) => void): void;
  connect(): Promise<Client>;
  end(): Promise<void>;
}
