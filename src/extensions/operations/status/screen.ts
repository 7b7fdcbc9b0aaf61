// A terminal's whole screen, for commands that show a live view.
import type { Readable, Writable } from "node:stream";
import type { ReadStream, WriteStream } from "node:tty";

export interface OpenScreen {
  /** Replaces the content. Cuts lines beyond the terminal's size; redraws when that changes. */
  show(lines: readonly string[]): void;
  /** Restores the previous screen and stops reading keys. */
  close(): void;
}

// Switch to the alternate screen, hide the cursor and cut long lines; undo that in reverse. Some
// characters take two columns: if their lines wrapped, the first lines would scroll away.
const ENTER = "\u001b[?1049h\u001b[?25l\u001b[?7l";
const LEAVE = "\u001b[?7h\u001b[?25h\u001b[?1049l";
const HOME = "\u001b[H";
const CLEAR_LINE = "\u001b[K";
const CLEAR_BELOW = "\u001b[J";

/**
 * Takes the screen over until it is closed. `key` is called with the character of each key; control
 * and C together are "\u0003". If `stdin` is not a terminal, no keys are read.
 */
export function openScreen(
  stdout: Writable,
  stdin: Readable | undefined,
  key: (character: string) => void,
): OpenScreen {
  const output = stdout as Partial<WriteStream> & Writable;
  const input = stdin as (Partial<ReadStream> & Readable) | undefined;
  const isHeard = input?.isTTY === true;
  let shown: readonly string[] = [];

  function draw(): void {
    // 80 by 24, if the terminal does not state its size.
    const { columns, rows } = { columns: output.columns || 80, rows: output.rows || 24 };
    const lines = shown.slice(0, rows).map((line) => line.slice(0, columns) + CLEAR_LINE);
    output.write(`${HOME}${lines.join("\r\n")}${CLEAR_BELOW}`);
  }
  function heard(bytes: Buffer | string): void {
    for (const character of String(bytes)) key(character);
  }

  output.on("resize", draw);
  output.write(ENTER);
  if (isHeard) {
    input.setRawMode?.(true);
    input.on("data", heard).resume();
  }
  return {
    show(lines) {
      shown = lines;
      draw();
    },
    close() {
      output.write(LEAVE);
      output.removeListener("resize", draw);
      if (!isHeard) return;
      input.setRawMode?.(false);
      input.removeListener("data", heard).pause();
    },
  };
}
