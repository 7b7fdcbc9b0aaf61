// The two logs: the access log, one JSON line a response, and diagnostics for the operator. Lines of one turn of the event
// loop leave in one write.

export type Diagnose = (event: Readonly<Record<string, unknown>>) => void;
export type WriteLines = (lines: string) => void;

/** What the access log says of a response; times in milliseconds. SPEC.md "Request ID", DESIGN.md "Files". */
export interface AccessRecord {
  readonly time: string;
  readonly request_id: string;
  /** Null where the request could not be parsed. */
  readonly method: string | null;
  readonly path: string | null;
  /** 499 if the client left before it had its whole answer. */
  readonly status: number;
  readonly duration_ms: number;
  readonly account: string | null;
  readonly key_id: string | null;
  /** The model that served, or was to serve. */
  readonly model: string | null;
  /** There only if the provider gave no usage and the gateway estimated it. */
  readonly usage_source?: string | undefined;
}

export interface LineLog {
  write(record: object): void;
  /** Writes what is waiting, at once. */
  flush(): void;
}

export function createLineLog(write: WriteLines): LineLog {
  let waiting = "";
  function flush(): void {
    const lines = waiting;
    waiting = "";
    if (lines !== "") write(lines);
  }
  return {
    write(record) {
      if (waiting === "") setImmediate(flush);
      waiting += `${JSON.stringify(record)}\n`;
    },
    flush,
  };
}

/** An error for the diagnostics log, with its stack and causes: never for a client. */
export function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return `${error.stack ?? error.message}${error.cause === undefined ? "" : `\ncaused by ${describe(error.cause)}`}`;
}
