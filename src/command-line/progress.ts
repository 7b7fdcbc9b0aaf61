// How far a long command is: one line on standard error, where that is a terminal. It is taken away
// when the command ends, and before anything else is printed.
import type { Writable } from "node:stream";
import type { WriteStream } from "node:tty";

/** Milliseconds for which nothing is shown: most commands are over by then. */
const SILENT_MS = 500;
/** Milliseconds between two changes of the line. */
const STEP_MS = 200;
const CLEAR_LINE = "\r\u001b[K";

/** One piece of work. */
export interface Progress {
  /** So many bytes more have been read. */
  add(bytes: number): void;
  /** The work has ended. */
  end(): void;
}

export interface ProgressLine {
  /** Begins a piece of work that reads about `total` bytes; 0: the number is unknown. */
  begin(label: string, total: number): Progress;
  /** Takes the line away until the next change. */
  clear(): void;
}

/** Undefined: `stderr` is no terminal. `now`: a monotonic clock in milliseconds. */
export function createProgressLine(
  stderr: Writable,
  now: () => number = () => performance.now(),
): ProgressLine | undefined {
  if ((stderr as Partial<WriteStream>).isTTY !== true) return undefined;
  let isShown = false;

  function clear(): void {
    if (isShown) stderr.write(CLEAR_LINE);
    isShown = false;
  }

  return {
    clear,
    begin(label, total) {
      const startedAt = now();
      let shownAt = startedAt + SILENT_MS - STEP_MS;
      let done = 0;
      return {
        add(bytes) {
          done += bytes;
          if (now() - shownAt < STEP_MS) return;
          shownAt = now();
          const text = progressText({ done, total, elapsedMs: now() - startedAt });
          stderr.write(`${CLEAR_LINE}${label}: ${text}`);
          isShown = true;
        },
        end: clear,
      };
    },
  };
}

interface State {
  /** Bytes that have been read. */
  readonly done: number;
  /** Bytes altogether; 0: unknown. */
  readonly total: number;
  readonly elapsedMs: number;
}

/**
 * "42 % of 1.3 GB, 12 s left". Work that reads more than was expected says how much it has read.
 */
export function progressText({ done, total, elapsedMs }: State): string {
  if (total === 0 || done > total) return `${sizeText(done)} read`;
  const percent = Math.floor((done / total) * 100);
  const leftMs = done === 0 ? Infinity : (elapsedMs * (total - done)) / done;
  const left = leftMs === Infinity ? "" : `, ${timeText(leftMs)} left`;
  return `${percent} % of ${sizeText(total)}${left}`;
}

function sizeText(bytes: number): string {
  if (bytes >= 1e9) return `${(bytes / 1e9).toFixed(1)} GB`;
  return bytes >= 1e6 ? `${Math.round(bytes / 1e6)} MB` : `${Math.ceil(bytes / 1e3)} kB`;
}

function timeText(ms: number): string {
  const seconds = Math.ceil(ms / 1000);
  return seconds < 120 ? `${seconds} s` : `${Math.ceil(seconds / 60)} min`;
}
