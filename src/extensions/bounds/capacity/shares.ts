// Default bounds, derived from the process's heap limit and its limit on open files.
import { readFileSync } from "node:fs";
import { getHeapStatistics } from "node:v8";

/**
 * A body of many small values takes about eight times its size while it is parsed, checked and
 * rewritten, and as much again in garbage that is not yet collected. With a sixteenth, four such
 * bodies could exhaust a heap of 256 MB on a busy machine.
 */
const HEAP_PARTS = 24;

/** Reserved open files that are not connections: of the books, the listeners and Node itself. */
const OTHER_FILES = 128;

/** The bytes of bodies and replies for which the heap has room. */
export const heapShare = (): number => Math.floor(getHeapStatistics().heap_size_limit / HEAP_PARTS);

/**
 * How many client connections the limit on open files allows. Each may need a second file, for a
 * connection to a provider. Infinity if the limit is unknown.
 */
export function connectionShare(): number {
  const [, files] = /^Max open files +(\d+)/m.exec(limitsText()) ?? [];
  if (files === undefined) return Infinity;
  return Math.max(1, Math.floor((Number(files) - OTHER_FILES) / 2));
}

/** The limits of this process, as Linux lists them. Empty on other systems. */
function limitsText(): string {
  try {
    return readFileSync("/proc/self/limits", "utf8");
  } catch {
    return "";
  }
}
