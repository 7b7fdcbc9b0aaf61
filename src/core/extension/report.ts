// The report of one process that serves: data that can be sent to another process.

/** How many lines of each log were dropped, because its reader was too slow. */
export type DroppedLines = Readonly<Record<"access" | "diagnostics", number>>;

export interface Report {
  /** The process stops, and refuses new requests. */
  readonly draining: boolean;
  /** Requests that have been received and not answered. */
  readonly inFlight: number;
  /** Of the logs of this process, since it began. */
  readonly droppedLines: DroppedLines;
  /** What extensions report, by their names. */
  readonly extensions: Readonly<Record<string, unknown>>;
}
