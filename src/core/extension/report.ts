// The report of one process that serves: data that can be sent to another process.

export interface Report {
  /** The process stops, and refuses new requests. */
  readonly draining: boolean;
  /** Requests that have been received and not answered. */
  readonly inFlight: number;
  /** What extensions report, by their names. */
  readonly extensions: Readonly<Record<string, unknown>>;
}
