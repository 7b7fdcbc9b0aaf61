// The access log (one JSON line a response) and the operator's diagnostics. Lines of one turn of the event loop leave in one write, or in
// as many as a pipe takes whole: so those of several processes do not mix.

export type Diagnose = (event: Readonly<Record<string, unknown>>) => void;
export type WriteLines = (lines: string) => void;

/** What a pipe takes whole, in bytes; a longer line goes by itself. */
const PIPE_BYTES = 4_096;

export function createLineLog(write: WriteLines) {
  const waiting: string[] = [];
  /** Writes what is waiting, at once. */
  function flush(): void {
    let batch = "";
    let size = 0;
    for (const line of waiting.splice(0)) {
      const bytes = Buffer.byteLength(line);
      if (size + bytes > PIPE_BYTES) {
        if (size > 0) write(batch);
        [batch, size] = ["", 0];
      }
      batch += line;
      size += bytes;
    }
    if (size > 0) write(batch);
  }
  return {
    write(record: object): void {
      if (waiting.length === 0) setImmediate(flush);
      waiting.push(`${JSON.stringify(record)}\n`);
    },
    flush,
  };
}

/** An error for the diagnostics log, with its stack and causes: never for a client. */
export function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return `${error.stack ?? error.message}${error.cause === undefined ? "" : `\ncaused by ${describe(error.cause)}`}`;
}
