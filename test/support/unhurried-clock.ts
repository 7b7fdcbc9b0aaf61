// The clocks for a gateway that runs in one process with its clients and providers. A
// process that the system holds up for a while finds its timers due before it has read what came
// meanwhile, and so takes a provider for silent that has answered. Here a timer is counted down in
// steps, between which everything else has its turn: a pause of any length counts as one step.

import { systemClock, type Clock } from "../../src/core/clock.ts";
import { now } from "./today.ts";

const STEPS = 20;
const STEP_MS = 5;

export const unhurriedClock: Clock = {
  now,
  monotonic: systemClock.monotonic,
  after(ms, listener) {
    const stepMs = Math.max(STEP_MS, ms / STEPS);
    const steps = Math.max(1, Math.ceil(ms / stepMs));
    let left = steps;
    const step = (): void => {
      left -= 1;
      if (left === 0) listener();
      else timer = setTimeout(step, stepMs);
    };
    let timer = setTimeout(step, Math.min(ms, stepMs));
    return {
      refresh() {
        if (left === 0) return;
        left = steps;
        timer.refresh();
      },
      cancel: () => clearTimeout(timer),
    };
  },
};

/** Timers of which those of exactly `ms` milliseconds are over when the test says so. */
export function timersOnCall(ms: number): Pick<Clock, "after"> & { fire(): void } {
  const waiting = new Set<() => void>();
  return {
    after(given, listener) {
      if (given !== ms) return unhurriedClock.after(given, listener);
      waiting.add(listener);
      return { refresh: () => undefined, cancel: () => waiting.delete(listener) };
    },
    fire() {
      for (const listener of waiting) listener();
      waiting.clear();
    },
  };
}
