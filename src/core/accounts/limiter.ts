// How often, and how many at once: an exact sliding window. In any 60 seconds at most `rpm` requests are admitted, without a burst at a
// window's edge; a refused one costs nothing. A window is a list of admission times, at most twice as long as what counts of it; it is
// forgotten when nothing in it counts. This one is of one process; others: redis-limiter.ts, workers.ts.

export const WINDOW_MS = 60_000;

/** One limit that a request falls under: the account's, or the key's. `rpm` is requests per minute; null is unlimited. */
export interface Limit {
  readonly name: string;
  readonly rpm: number | null;
}
/** What is asked for a request: an admission under all limits, and one of the account's places in flight (null: it has any number). */
export interface AdmissionRequest {
  readonly account: string;
  readonly limits: readonly Limit[];
  readonly maxInFlight: number | null;
}

/** Of the limit that is nearest to its end: its size, what is left of it, and when it next gets room. Null: unlimited. `because` tells what
 * refused it where that was no limit of requests a minute: the account has no place left, or the store of the limits cannot be asked. */
export interface AdmissionDecision {
  readonly admitted: boolean;
  readonly limit: number | null;
  readonly remaining: number;
  readonly resetMs: number;
  readonly rejectedBy?: "in_flight" | "store";
}

/** `admit` admits a request under all of its limits and gives it a place, or neither; `release` takes back the place of one that was
 * admitted; `used`: how many requests of the last 60 seconds stand in a window. */
export interface Limiter {
  admit(ask: AdmissionRequest): AdmissionDecision | Promise<AdmissionDecision>;
  release(ask: AdmissionRequest): void;
  used(name: string): number;
}

/** `count` is what stands in a window by now; `resetMs`: when it next gets room. */
export function decide(
  admitted: boolean,
  windows: readonly { readonly rpm: number; readonly count: number; readonly resetMs: number }[],
): AdmissionDecision {
  const decisions = windows.map(
    ({ rpm, count, resetMs }): AdmissionDecision => ({
      admitted,
      limit: rpm,
      remaining: Math.max(0, rpm - count),
      resetMs,
    }),
  );
  const [tightest] = decisions.sort((a, b) => a.remaining - b.remaining || b.resetMs - a.resetMs);
  return tightest ?? { admitted, limit: null, remaining: Infinity, resetMs: 0 };
}

/** `now` must never go back: a monotonic clock in milliseconds. */
export function createLimiter(now: () => number = () => performance.now()) {
  /** The times of admissions, oldest first; those before `from` are forgotten. */
  const windows = new Map<string, { times: number[]; from: number }>();
  /** Those that are taken, of accounts that have a bound. */
  const places = new Map<string, number>();
  let sweepAt = 0;
  function windowAt(time: number, name: string) {
    const window = windows.get(name) ?? { times: [], from: 0 };
    while (window.from < window.times.length && window.times[window.from]! + WINDOW_MS <= time)
      window.from += 1;
    if (window.from * 2 > window.times.length)
      Object.assign(window, { times: window.times.slice(window.from), from: 0 });
    return window;
  }
  const countOf = ({ times, from }: ReturnType<typeof windowAt>): number => times.length - from;

  return {
    admit({ account, limits, maxInFlight }: AdmissionRequest): AdmissionDecision {
      const taken = places.get(account) ?? 0;
      if (maxInFlight !== null && taken >= maxInFlight)
        return { ...decide(false, []), rejectedBy: "in_flight" };
      const time = now();
      if (time >= sweepAt) {
        for (const [name, { times }] of windows)
          if (!(times.at(-1)! + WINDOW_MS > time)) windows.delete(name); // nothing in it counts any more
        sweepAt = time + WINDOW_MS;
      }
      const states = limits.flatMap(({ name, rpm }) =>
        rpm === null ? [] : [{ name, rpm, window: windowAt(time, name) }],
      );
      const admitted = states.every(({ rpm, window }) => countOf(window) < rpm);
      if (admitted) {
        if (maxInFlight !== null) places.set(account, taken + 1);
        for (const { name, window } of states) {
          window.times.push(time);
          windows.set(name, window);
        }
      }
      return decide(
        admitted,
        states.map(({ rpm, window }) => {
          const count = countOf(window);
          // A limit that was lowered by a new configuration is full until enough of its admissions are forgotten; one of 0 is for ever.
          const first = window.times[window.from + Math.max(0, count - rpm)] ?? time;
          return { rpm, count, resetMs: first + WINDOW_MS - time };
        }),
      );
    },
    release({ account, maxInFlight }: AdmissionRequest): void {
      if (maxInFlight !== null) places.set(account, Math.max(0, (places.get(account) ?? 0) - 1));
    },
    used: (name: string): number => countOf(windowAt(now(), name)),
  };
}
