// The access log (one JSON line a response) and the operator's diagnostics. Lines of one turn of the event loop leave in one write. A
// reader that stalls costs a bounded amount of memory: what comes beyond is dropped, counted, and told when the reader goes on.
import type { Writable } from "node:stream";
import { describe, type Diagnose } from "../diagnose.ts";

/** Characters that a log keeps for a reader that is behind. */
export const MAX_BACKLOG = 8 * 1024 * 1024;

/** Takes one or more whole lines, at once. */
export type WriteLines = (lines: string) => void;
/** Takes lines for a reader that may be slow. */
export interface LineSink {
  readonly write: WriteLines;
  /** How many characters were written and have not been taken. */
  readonly backlog: () => number;
  /** Calls `listener` once, when all of the backlog has been taken. */
  readonly onceDrained: (listener: () => void) => void;
}

export const sinkOf = (stream: Writable): LineSink => ({
  write: (lines) => {
    stream.write(lines);
  },
  backlog: () => stream.writableLength,
  onceDrained: (listener) => {
    stream.once("drain", listener);
  },
});
const sinkOfFunction = (write: WriteLines): LineSink => ({
  write,
  backlog: () => 0,
  onceDrained: () => undefined,
});

/** What is said of lines that the reader was too slow for. */
export interface DropEvents {
  /** One line is dropped. */
  readonly dropped: () => void;
  /** The reader is no longer behind; so many lines were dropped since it was. */
  readonly recovered: (lines: number) => void;
}

export interface LineLog {
  readonly write: (record: object) => void;
  /** A line that is text already, without its line end. */
  readonly writeText: (line: string) => void;
  /** Writes what is waiting, at once. */
  readonly flush: () => void;
}

export function createLineLog(to: WriteLines | LineSink, events: DropEvents): LineLog {
  const sink = typeof to === "function" ? sinkOfFunction(to) : to;
  const waiting: string[] = [];
  let waitingChars = 0;
  let droppedLines = 0;

  function flush(): void {
    if (waiting.length === 0) return;
    const lines = waiting.splice(0).join("");
    waitingChars = 0;
    sink.write(lines);
  }
  function recover(): void {
    const lines = droppedLines;
    droppedLines = 0;
    events.recovered(lines);
  }
  function writeText(line: string): void {
    const isBehind = sink.backlog() + waitingChars + line.length > MAX_BACKLOG;
    // Once a line was dropped, all are until the backlog is gone: one gap in the log instead of many.
    if (droppedLines > 0 || (isBehind && sink.backlog() > 0)) {
      if (droppedLines === 0) sink.onceDrained(recover);
      droppedLines += 1;
      events.dropped();
      return;
    }
    if (waiting.length === 0) setImmediate(flush);
    waiting.push(`${line}\n`);
    waitingChars += line.length + 1;
  }
  return { write: (record) => writeText(JSON.stringify(record)), writeText, flush };
}

/** Counts the lines that the logs drop, and says so in the diagnostics when a reader goes on. */
export function dropEvents(
  log: "access" | "diagnostics",
  count: (log: string) => void,
  diagnose: Diagnose,
): DropEvents {
  return {
    dropped: () => count(log),
    recovered: (lines) => diagnose({ event: "log_lines_dropped", level: "warn", log, lines }),
  };
}

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
