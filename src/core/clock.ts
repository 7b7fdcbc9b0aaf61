// Time, as the core asks for it where something is counted, bounded or delayed. It is injected, so
// that a test can let a minute pass in no time.

/** A timer that has been set. */
export interface Timer {
  /** Starts its time anew. Does nothing once the timer has fired or was cancelled. */
  refresh(): void;
  /** It will not fire any more. */
  cancel(): void;
}

export interface Clock {
  /** The wall clock, in milliseconds since 1970. It may be set back. */
  now(): number;
  /** Milliseconds since some moment in the past. It never goes back. */
  monotonic(): number;
  /**
   * Calls `listener` once, when at least `ms` milliseconds have passed by `monotonic`. A timer
   * keeps the process alive until it fires or is cancelled.
   */
  after(ms: number, listener: () => void): Timer;
}

/** The clocks and timers of the machine. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after(ms, listener) {
    // A timer of Node that has fired would be set again by refresh().
    let set = true;
    // Node counts whole milliseconds, so its timers may fire almost one too early.
    const timer = setTimeout(() => {
      set = false;
      listener();
    }, Math.ceil(ms) + 1);
    return {
      refresh() {
        if (set) timer.refresh();
      },
      cancel: () => clearTimeout(timer),
    };
  },
};
