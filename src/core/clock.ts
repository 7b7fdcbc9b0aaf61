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

/** A timer of Node. */
class SystemTimer implements Timer {
  readonly #timer: NodeJS.Timeout;
  /** Refreshing a timer of Node that has fired would set it again. */
  #isSet = true;

  constructor(ms: number, listener: () => void) {
    // Node counts whole milliseconds, so its timers may fire almost one too early.
    this.#timer = setTimeout(() => {
      this.#isSet = false;
      listener();
    }, Math.ceil(ms) + 1);
  }

  refresh(): void {
    if (this.#isSet) this.#timer.refresh();
  }

  cancel(): void {
    clearTimeout(this.#timer);
  }
}

/** The clocks and timers of the machine. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after: (ms, listener) => new SystemTimer(ms, listener),
};
