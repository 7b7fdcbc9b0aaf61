// The clock and timers of the program. They are injected, so that a test need not wait for real
// time to pass.

/** A timer that has been set. */
export interface Timer {
  /** Restarts the timer. Returns false, and does nothing, once it has fired. */
  refresh(): boolean;
  /** Stops the timer: it will not fire. */
  cancel(): void;
}

export interface Clock {
  /** The wall clock, in milliseconds since 1970. It may be set back. */
  now(): number;
  /** Milliseconds since an arbitrary moment in the past. It never goes back. */
  monotonic(): number;
  /**
   * Calls `listener` once, after at least `ms` milliseconds of `monotonic`. The timer keeps the
   * process alive until it fires or is cancelled.
   */
  after(ms: number, listener: () => void): Timer;
}

/** A Node timer. */
class SystemTimer implements Timer {
  readonly #timer: NodeJS.Timeout;
  /** Checked before a refresh: Node would set a timer again that has fired. */
  #isSet = true;

  constructor(ms: number, listener: () => void) {
    // Node counts whole milliseconds, so its timers may fire almost one millisecond early.
    this.#timer = setTimeout(() => {
      this.#isSet = false;
      listener();
    }, Math.ceil(ms) + 1);
  }

  refresh(): boolean {
    if (this.#isSet) this.#timer.refresh();
    return this.#isSet;
  }

  cancel(): void {
    clearTimeout(this.#timer);
  }
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after: (ms, listener) => new SystemTimer(ms, listener),
};
