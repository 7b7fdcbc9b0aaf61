// Splits a worker's output into lines.
import type { Readable } from "node:stream";

/** The most characters of a line. A longer line is passed on in pieces. */
export const MAX_LINE = 1024 * 1024;

/**
 * Calls `listener` with each line that is not empty. Only \n ends a line. JSON may contain U+2028
 * and U+2029, at which node:readline splits too since Node 24.
 */
export function readLines(output: Readable, listener: (line: string) => void): void {
  let unfinished = "";

  function pass(): void {
    const line = unfinished;
    unfinished = "";
    if (line !== "") listener(line);
  }

  output.setEncoding("utf8");
  output.on("data", (text: string) => {
    const [first = "", ...others] = text.split("\n");
    unfinished += first;
    for (const start of others) {
      pass();
      unfinished = start;
    }
    if (unfinished.length > MAX_LINE) pass();
  });
  output.on("end", pass);
}
