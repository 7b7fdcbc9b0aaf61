// Waits for events. Each wait has a deadline. The error of a missed deadline names the event.

import { setImmediate as turn, setTimeout as pause } from "node:timers/promises";
import { within as withDeadline } from "../../scripts/conformance/expect.ts";

/**
 * The usual deadline: longer than anything takes on a slow and busy machine. Deadlines of a gateway
 * under test are far longer, so whatever happens within this time did not wait for those.
 */
export const PATIENCE_MS = 60_000;

/** Resolves with the promise's value. Rejects at the deadline. */
export const within = <T>(promise: Promise<T>, what: string, ms = PATIENCE_MS): Promise<T> =>
  withDeadline(promise, what, ms);

/** The number of turns of the event loop in which waitFor() checks again without a pause. */
const EAGER_TURNS = 20;

/**
 * Polls until `find` returns something: at first in every turn of the event loop, then every 2 ms,
 * because waiting would otherwise keep a core busy.
 */
export async function waitFor<T>(
  find: () => T | undefined | false,
  what: string,
  ms = PATIENCE_MS,
): Promise<T> {
  const end = performance.now() + ms;
  for (let looks = 1; ; looks += 1) {
    const found = find();
    if (found !== undefined && found !== false) return found;
    if (performance.now() > end) throw new Error(`waited ${ms} ms for ${what}`);
    await (looks < EAGER_TURNS ? turn() : pause(2));
  }
}

/** Polls every 10 ms until `look`, which asks another process, resolves with something. */
export async function until<T>(
  look: () => Promise<T | undefined | false>,
  what: string,
  ms = PATIENCE_MS,
): Promise<T> {
  for (const end = performance.now() + ms; ; await pause(10)) {
    const found = await look();
    if (found !== undefined && found !== false) return found;
    if (performance.now() > end) throw new Error(`waited ${ms} ms for ${what}`);
  }
}

/** The most milliseconds that count between two checks: this process may have been suspended. */
const QUIET_STEP_MS = 10;

/** Waits until a value has not changed for `quietMs`, if no event marks the end of its changes. */
export async function settled(value: () => number, what: string, quietMs: number): Promise<void> {
  let last = value();
  let lookedAt = performance.now();
  let quiet = 0;
  await waitFor(() => {
    const [now, at] = [value(), performance.now()];
    quiet = now === last ? quiet + Math.min(QUIET_STEP_MS, at - lookedAt) : 0;
    [last, lookedAt] = [now, at];
    return quiet > quietMs;
  }, what);
}

/** Returns the error of this class that `work` throws. Fails if it throws none. */
export function thrownBy<E extends Error>(kind: new (...given: any[]) => E, work: () => unknown) {
  try {
    work();
  } catch (error) {
    if (error instanceof kind) return error;
    throw error;
  }
  throw new Error("nothing was thrown");
}
