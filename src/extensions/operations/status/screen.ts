// A terminal's whole screen, for commands that show a live view.
import type { Readable, Writable } from "node:stream";
import type { ReadStream, WriteStream } from "node:tty";

export interface OpenScreen {
  /** Replaces what is shown, also when the size changes. Lines beyond the size are cut. */
  show(lines: readonly string[]): void;
  /** Brings back what was on the screen before. Keys are not heard any more. */
  close(): void;
}

/** Another screen, its cursor hidden; and the one from before, with the cursor. */
const ENTER = "\u001b[?1049h\u001b[?25l";
const LEAVE = "\u001b[?25h\u001b[?1049l";
const HOME = "\u001b[H";
const CLEAR_LINE = "\u001b[K";
const CLEAR_BELOW = "\u001b[J";

/**
 * Takes the screen over until it is closed. `key` is called with the character of each key; control
 * and C together are "\u0003". Without an input no keys are heard.
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
    // The size that most terminals have at least, for one that does not state its own.
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
