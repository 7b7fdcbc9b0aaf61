// The bounds that follow from what this process may take of the machine.
import { readFileSync } from "node:fs";
import { getHeapStatistics } from "node:v8";

/**
 * A body of many small values takes some eight times its size while it is parsed, checked and
 * written again, and as much that is not collected yet. A sixteenth was too much on a busy machine,
 * where four such bodies could exhaust a heap of 256 MB.
 */
const HEAP_PARTS = 24;

/** Open files that are no connections: of the books, of the listeners, of Node itself. */
const OTHER_FILES = 128;

/** Bytes of bodies and replies that the heap has room for. */
export const heapShare = (): number => Math.floor(getHeapStatistics().heap_size_limit / HEAP_PARTS);

/**
 * The connections for which the files suffice that the process may open: each may need another one,
 * to a provider. Infinity where the system does not tell how many that are.
 */
export function connectionShare(): number {
  const [, files] = /^Max open files +(\d+)/m.exec(limitsText()) ?? [];
  if (files === undefined) return Infinity;
  return Math.max(1, Math.floor((Number(files) - OTHER_FILES) / 2));
}

/** The limits that Linux states for this process. Empty on other systems. */
function limitsText(): string {
  try {
    return readFileSync("/proc/self/limits", "utf8");
  } catch {
    return "";
  }
}
