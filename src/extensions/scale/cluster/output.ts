// The lines of a worker's output.
import type { Readable } from "node:stream";

/** Characters after which a line that has no end is passed on as it is. */
export const MAX_LINE = 1024 * 1024;

/**
 * Calls `write` with whole lines, of which the last has no line end. Only \n ends a line: JSON may
 * hold U+2028 and U+2029, at which node:readline ends a line too since Node 24.
 */
export function readLines(output: Readable, write: (lines: string) => void): void {
  let unfinished = "";

  function flush(): void {
    if (unfinished !== "") write(unfinished);
    unfinished = "";
  }

  output.setEncoding("utf8");
  output.on("data", (text: string) => {
    const end = text.lastIndexOf("\n");
    unfinished += text.slice(0, Math.max(end, 0));
    if (end !== -1) flush();
    unfinished += text.slice(end + 1);
    if (unfinished.length > MAX_LINE) flush();
  });
  output.on("end", flush);
}
