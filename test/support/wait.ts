// Waiting for events, each wait with a deadline that names what it waited for.

import { setImmediate as turn, setTimeout as pause } from "node:timers/promises";
import { within as withDeadline } from "../../scripts/conformance/expect.ts";

/**
 * Nothing that comes at all takes so long, on a slow machine that is busy with other work. What a
 * gateway is to do "at once" is told from what it does at a deadline by deadlines far beyond this.
 */
export const PATIENCE_MS = 60_000;

/** The promise's value, or an error that says what did not happen. */
export const within = <T>(promise: Promise<T>, what: string, ms = PATIENCE_MS): Promise<T> =>
  withDeadline(promise, what, ms);

/** Turns of the event loop in which waitFor looks again at once. */
const EAGER_TURNS = 20;

/**
 * Looks until `find` finds something: every turn of the event loop at first, then every 2 ms, or
 * waiting would keep a core busy.
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

/** Asks until the answer is what is waited for; each look is a question to another process. */
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

/** As much of the time between two looks counts as quiet: this process may have stood still. */
const QUIET_STEP_MS = 10;

/**
 * Waits until a value has not changed for `quietMs`: for things that stop, of which there is no
 * event.
 */
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

/** The error of this class that the work must throw. */
export function thrownBy<E extends Error>(
  kind: new (...given: any[]) => E,
  work: () => unknown,
): E {
  try {
    work();
  } catch (error) {
    if (error instanceof kind) return error;
    throw error;
  }
  throw new Error("nothing was thrown");
}
