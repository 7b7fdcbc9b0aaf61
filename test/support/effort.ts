// Measures work and held memory, for tests that bound these. The figures do not depend on the speed
// of the machine, on what else it does meanwhile, or on garbage that is not yet collected.

import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/** Some 60 KB of JSON. */
const TEXT = JSON.stringify(Array.from({ length: 2_000 }, (_, at) => ({ at, text: "some text" })));
/** How often TEXT is parsed for a megabyte. */
const PARSES = 16;
const ROUNDS = 5;

/** The CPU time of this process, in milliseconds. */
export function busyMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}

function parse(): number {
  const before = busyMs();
  for (let times = 0; times < PARSES; times += 1) JSON.parse(TEXT);
  return busyMs() - before;
}

/**
 * Begins to measure. The returned function returns the work that this process has done since then,
 * in megabytes of JSON that it could have parsed. A slow machine parses 250 in a second.
 */
export function startEffort(): () => number {
  const before = busyMs();
  return () => {
    const spent = busyMs() - before;
    return spent / Math.min(...Array.from({ length: ROUNDS }, parse));
  };
}

setFlagsFromString("--expose-gc");

/** Collects all garbage at once. */
export const collectGarbage = runInNewContext("gc") as () => void;

/** The bytes of all reachable objects on the JavaScript heap. */
export function heldNow(): number {
  collectGarbage();
  return process.memoryUsage().heapUsed;
}

/** Blocks the event loop for `ms` milliseconds. */
export function keepBusy(ms: number): void {
  const until = performance.now() + ms;
  while (performance.now() < until);
}
