// The clocks for a gateway that runs in one process with its clients and providers. If the system
// suspends a process for a while, its timers are due before it has read the bytes that arrived
// meanwhile, so a provider that has answered would seem silent. Here a timer counts down in steps,
// between which everything else can run: a pause of any length counts as one step.

import { systemClock, type Clock, type Timer } from "../../src/core/clock.ts";
import "./today.ts"; // for its clock

const STEPS = 20;
const STEP_MS = 5;

/** A class, like the timer of the system's clock: a method called without its timer fails. */
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
  now: () => Date.now(),
  monotonic: systemClock.monotonic,
  after: (ms, listener) => new UnhurriedTimer(ms, listener),
};

/** Timers. Those of exactly `ms` milliseconds fire only when the test calls fire(). */
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
