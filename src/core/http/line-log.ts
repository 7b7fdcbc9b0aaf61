// A log with one JSON object per line. The lines of one turn of the event loop are written
// together.

/** Takes one or more whole lines, at once. */
export type WriteLines = (lines: string) => void;

export interface LineLog {
  /** Writes an object as a line of JSON. */
  readonly write: (record: object) => void;
  /** Writes a line of text. `line` has no line end. */
  readonly writeText: (line: string) => void;
  /** Writes the lines of this turn now. */
  readonly flush: () => void;
}

export function createLineLog(writeLines: WriteLines): LineLog {
  /** The lines of this turn. */
  let waiting = "";

  function flush(): void {
    const lines = waiting;
    waiting = "";
    if (lines !== "") writeLines(lines);
  }

  function writeText(line: string): void {
    if (waiting === "") setImmediate(flush);
    // JSON.stringify does not escape DEL and the C1 control characters. Terminals obey them, and
    // journalctl hides a line that has one.
    waiting += `${line}\n`.replace(/[\x7f-\x9f]/g, (c) => `\\u00${c.charCodeAt(0).toString(16)}`);
  }

  return { write: (record) => writeText(JSON.stringify(record)), writeText, flush };
}
