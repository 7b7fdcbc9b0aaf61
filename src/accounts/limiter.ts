// How often: an exact sliding window. In any 60 seconds at most `rpm` requests are admitted, without a burst at a window's
// edge; a refused one costs nothing. Each window is a ring of admission times, as large as the most that it has held.

export const WINDOW_MS = 60_000;

/** One limit that a request falls under: the account's, or the key's. */
export interface Limit {
  /** `rpm` is requests per minute; null is unlimited. */
  readonly name: string; readonly rpm: number | null;
}

export interface Decision {
  readonly admitted: boolean;
  /** Of the limit that is nearest to its end: its size, what is left of it, and when it next gets room. Null: unlimited. */
  readonly limit: number | null; readonly remaining: number; readonly resetMs: number;
}

export type Limiter = ReturnType<typeof createLimiter>;
/** `now` must never go back: a monotonic clock in milliseconds. */
export function createLimiter(now: () => number = () => performance.now()) {
  const windows = new Map<string, ReturnType<typeof createWindow>>();

  function windowAt(time: number, name: string) {
    const window = windows.get(name) ?? createWindow();
    windows.set(name, window);
    window.forget(time);
    return window;
  }

  return {
    /** Admits a request under all of its limits, or under none. */
    admit(limits: readonly Limit[]): Decision {
      const time = now();
      const states = limits.flatMap(({ name, rpm }) => (rpm === null ? [] : [{ rpm, window: windowAt(time, name) }]));
      const admitted = states.every(({ rpm, window }) => window.count() < rpm);
      if (admitted) for (const { window } of states) window.add(time);
      let tightest: Decision = { admitted, limit: null, remaining: Infinity, resetMs: 0 };
      for (const { rpm, window } of states) {
        const remaining = Math.max(0, rpm - window.count());
        // A limit that was lowered by a new configuration is full until enough of its admissions are forgotten.
        const resetMs = window.expires(Math.max(0, window.count() - rpm)) - time;
        const tighter = remaining < tightest.remaining || (remaining === tightest.remaining && resetMs > tightest.resetMs);
        if (tighter) tightest = { admitted, limit: rpm, remaining, resetMs };
      }
      return tightest;
    },
    /** How many requests of the last 60 seconds stand in a window. */
    used(name: string): number {
      return windows.has(name) ? windowAt(now(), name).count() : 0;
    },
  };
}

/** The admissions of one limit. */
function createWindow() {
  let times = new Float64Array(8);
  let head = 0;
  let size = 0;
  let latest = 0;
  return {
    count: () => size,
    add(time: number): void {
      if (size === times.length) {
        const larger = new Float64Array(size * 2);
        larger.set(times.subarray(head));
        larger.set(times.subarray(0, head), size - head);
        times = larger;
        head = 0;
      }
      times[(head + size) % times.length] = time;
      size += 1;
    },
    /** Drops what is 60 seconds old at `time`. */
    forget(time: number): void {
      latest = time;
      while (size > 0 && times[head]! + WINDOW_MS <= time) {
        head = (head + 1) % times.length;
        size -= 1;
      }
    },
    /** When the n-th oldest admission is forgotten; a full window from now on if there is none (a limit of 0). */
    expires: (n: number): number => (n < size ? times[(head + n) % times.length]! : latest) + WINDOW_MS,
  };
}
