// A log of one JSON object a line. The lines of one turn of the event loop are written together. A
// reader that falls behind costs a bounded amount of memory: further lines are dropped and counted.
import type { Writable } from "node:stream";

/** Characters that are kept for a reader that is behind. */
export const MAX_BACKLOG = 8 * 1024 * 1024;

/** Takes one or more whole lines, at once. */
export type WriteLines = (lines: string) => void;

/** Takes lines for a reader that may be slow. */
export interface LineSink {
  /** Takes one or more whole lines. */
  readonly write: WriteLines;
  /** How many characters were written and not yet taken by the reader. */
  readonly backlog: () => number;
  /** Calls `listener` once, when the reader has taken all of the backlog. */
  readonly onceDrained: (listener: () => void) => void;
}

export const sinkOf = (stream: Writable): LineSink => ({
  write: (lines) => stream.write(lines),
  backlog: () => stream.writableLength,
  onceDrained: (listener) => stream.once("drain", listener),
});

const sinkOfFunction = (write: WriteLines): LineSink => ({
  write,
  backlog: () => 0,
  onceDrained: () => undefined,
});

/** Called for lines that the reader was too slow for. */
export interface DropEvents {
  /** One line was dropped. */
  readonly dropped: () => void;
  /** The reader is no longer behind. `lines` were dropped since it was. */
  readonly recovered: (lines: number) => void;
}

export interface LineLog {
  /** Writes an object as a line of JSON. */
  readonly write: (record: object) => void;
  /** Writes a line that is text already. It has no line end. */
  readonly writeText: (line: string) => void;
  /** Hands the lines of this turn to the sink now. */
  readonly flush: () => void;
}

export function createLineLog(target: WriteLines | LineSink, events: DropEvents): LineLog {
  const sink = typeof target === "function" ? sinkOfFunction(target) : target;
  /** The lines of this turn. */
  const waiting: string[] = [];
  let waitingChars = 0;
  let droppedLines = 0;

  function flush(): void {
    if (waiting.length === 0) return;
    const lines = waiting.splice(0).join("");
    waitingChars = 0;
    sink.write(lines);
  }

  /** After one dropped line, all are dropped until the backlog is gone: one gap, not many. */
  function mustDrop(line: string): boolean {
    if (droppedLines > 0) return true;
    const backlog = sink.backlog();
    return backlog > 0 && backlog + waitingChars + line.length > MAX_BACKLOG;
  }

  function drop(): void {
    if (droppedLines === 0) sink.onceDrained(recover);
    droppedLines += 1;
    events.dropped();
  }

  function recover(): void {
    const lines = droppedLines;
    droppedLines = 0;
    events.recovered(lines);
  }

  function writeText(line: string): void {
    if (mustDrop(line)) {
      drop();
      return;
    }
    if (waiting.length === 0) setImmediate(flush);
    waiting.push(`${line}\n`);
    waitingChars += line.length + 1;
  }

  return { write: (record) => writeText(JSON.stringify(record)), writeText, flush };
}
