// The clocks for a gateway that runs in one process with its clients and providers. A
// process that the system holds up for a while finds its timers due before it has read what came
// meanwhile, and so takes a provider for silent that has answered. Here a timer is counted down in
// steps, between which everything else has its turn: a pause of any length counts as one step.

import { systemClock, type Clock, type Timer } from "../../src/core/clock.ts";
import { now } from "./today.ts";

const STEPS = 20;
const STEP_MS = 5;

/** A class, as that of the clock of the machine: a method that is taken off its timer fails. */
class UnhurriedTimer implements Timer {
  readonly #steps: number;
  readonly #stepMs: number;
  readonly #listener: () => void;
  #left: number;
  #timer: NodeJS.Timeout;

  constructor(ms: number, listener: () => void) {
    this.#stepMs = Math.max(STEP_MS, ms / STEPS);
    this.#steps = Math.max(1, Math.ceil(ms / this.#stepMs));
    this.#left = this.#steps;
    this.#listener = listener;
    this.#timer = setTimeout(() => this.#step(), Math.min(ms, this.#stepMs));
  }

  refresh(): boolean {
    if (this.#left === 0) return false;
    this.#left = this.#steps;
    this.#timer.refresh();
    return true;
  }

  cancel(): void {
    clearTimeout(this.#timer);
  }

  #step(): void {
    this.#left -= 1;
    if (this.#left === 0) this.#listener();
    else this.#timer = setTimeout(() => this.#step(), this.#stepMs);
  }
}

export const unhurriedClock: Clock = {
  now,
  monotonic: systemClock.monotonic,
  after: (ms, listener) => new UnhurriedTimer(ms, listener),
};

/** Timers of which those of exactly `ms` milliseconds are over when the test says so. */
export function timersOnCall(ms: number): Pick<Clock, "after"> & { fire(): void } {
  const waiting = new Set<() => void>();
  return {
    after(given, listener) {
      if (given !== ms) return unhurriedClock.after(given, listener);
      waiting.add(listener);
      return { refresh: () => waiting.has(listener), cancel: () => waiting.delete(listener) };
    },
    fire() {
      for (const listener of waiting) listener();
      waiting.clear();
    },
  };
}
