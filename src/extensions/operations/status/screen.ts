// A terminal's whole screen, for commands that show a live view.
import type { Readable, Writable } from "node:stream";
import type { ReadStream, WriteStream } from "node:tty";

/** In characters and lines. */
export interface ScreenSize {
  /** Characters of a line. */
  readonly columns: number;
  /** Lines. */
  readonly rows: number;
}

export interface Screen {
  /** At this moment. 80 by 24 if the terminal does not say. */
  size(): ScreenSize;
  /** Takes the screen over until it is closed. Its earlier content comes back then. */
  open(events: ScreenEvents): OpenScreen;
}

export interface ScreenEvents {
  /** A key was pressed: its character. Control and C together are "\u0003". */
  key(character: string): void;
  /** The screen has another size. */
  resized(): void;
}

export interface OpenScreen {
  /** Replaces what is shown. Lines beyond the screen's size are cut. */
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

/** The size that most terminals have at least, for one that does not state its own. */
const USUAL: ScreenSize = { columns: 80, rows: 24 };

/** Undefined: the output is no terminal. Without an input no keys are heard. */
export function createScreen(stdout: Writable, stdin?: () => Readable): Screen | undefined {
  const output = stdout as Partial<WriteStream> & Writable;
  if (output.isTTY !== true) return undefined;
  const size = (): ScreenSize => ({
    columns: output.columns || USUAL.columns,
    rows: output.rows || USUAL.rows,
  });
  return {
    size,
    open({ key, resized }) {
      const stopListening = listen(stdin?.() as Partial<ReadStream> & Readable, key);
      output.on("resize", resized);
      output.write(ENTER);
      return {
        show(lines) {
          const { columns, rows } = size();
          const shown = lines.slice(0, rows).map((line) => line.slice(0, columns) + CLEAR_LINE);
          output.write(`${HOME}${shown.join("\r\n")}${CLEAR_BELOW}`);
        },
        close() {
          output.write(LEAVE);
          output.removeListener("resize", resized);
          stopListening();
        },
      };
    },
  };
}

/** Calls `key` for each key until the function that it returns is called. */
function listen(
  input: (Partial<ReadStream> & Readable) | undefined,
  key: ScreenEvents["key"],
): () => void {
  if (input?.isTTY !== true) return () => undefined;
  const heard = (bytes: Buffer | string): void => {
    for (const character of String(bytes)) key(character);
  };
  input.setRawMode?.(true);
  input.on("data", heard);
  input.resume();
  return () => {
    input.setRawMode?.(false);
    input.removeListener("data", heard);
    input.pause();
  };
}
