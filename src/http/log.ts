// The access log (one JSON line a response) and the operator's diagnostics. Lines of one turn of the event loop leave in one write.

export type Diagnose = (event: Readonly<Record<string, unknown>>) => void;
export type WriteLines = (lines: string) => void;

export function createLineLog(write: WriteLines) {
  const waiting: string[] = [];
  /** Writes what is waiting, at once. */
  const flush = (): void => void (waiting.length > 0 && write(waiting.splice(0).join("")));
  return {
    write(record: object): void {
      if (waiting.length === 0) setImmediate(flush);
      waiting.push(`${JSON.stringify(record)}\n`);
    },
    flush,
  };
}

/** An error for the diagnostics log, with its stack and causes: never for a client. */
export const describe = (error: unknown): string =>
  error instanceof Error
    ? `${error.stack ?? error.message}${error.cause === undefined ? "" : `\ncaused by ${describe(error.cause)}`}`
    : String(error);

/** Tells of an error of our own, met while answering. */
export const failing =
  (diagnose: Diagnose) =>
  ({ requestId }: { readonly requestId: string }, error: unknown): void =>
    diagnose({
      event: "internal_error",
      level: "error",
      request_id: requestId,
      detail: describe(error),
    });
