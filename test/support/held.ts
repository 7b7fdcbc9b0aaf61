// The memory that is held by what can still be reached, for tests that bound it. Garbage that waits
// to be collected is nobody's fault, and differs from one version of Node to the next.

import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

setFlagsFromString("--expose-gc");

/** Collects all garbage, now. */
export const collectGarbage = runInNewContext("gc") as () => void;

/** The bytes of all that is reachable on the heap of JavaScript. */
export function heldNow(): number {
  collectGarbage();
  return process.memoryUsage().heapUsed;
}
