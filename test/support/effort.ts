// How much work something is and how much memory it holds, for tests that bound it: whatever else
// the machine does meanwhile, however fast it is, and whatever waits to be collected.

import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/** Some 60 KB of JSON, and how often it is parsed for a megabyte. */
const TEXT = JSON.stringify(Array.from({ length: 2_000 }, (_, at) => ({ at, text: "some text" })));
const PARSES = 16;
const ROUNDS = 5;

/** What this process has kept processors busy with, in milliseconds. */
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
 * Begins to measure. The function tells how much work this process has done since then, in
 * megabytes of JSON that it could have parsed. A slow machine parses 250 in a second.
 */
export function startEffort(): () => number {
  const before = busyMs();
  return () => {
    const spent = busyMs() - before;
    return spent / Math.min(...Array.from({ length: ROUNDS }, parse));
  };
}

setFlagsFromString("--expose-gc");

/** Collects all garbage, now. */
export const collectGarbage = runInNewContext("gc") as () => void;

/** The bytes of all that is reachable on the heap of JavaScript. */
export function heldNow(): number {
  collectGarbage();
  return process.memoryUsage().heapUsed;
}

/** Keeps the event loop busy. */
export function keepBusy(ms: number): void {
  const until = performance.now() + ms;
  while (performance.now() < until);
}
