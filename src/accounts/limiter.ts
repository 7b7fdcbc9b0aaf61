// How often: an exact sliding window. In any 60 seconds at most `rpm` requests are admitted, without a burst at a window's
// edge; a refused one costs nothing. A window is a list of admission times, at most twice as long as what counts of it.

export const WINDOW_MS = 60_000;

/** One limit that a request falls under: the account's, or the key's. `rpm` is requests per minute; null is unlimited. */
export interface Limit { readonly name: string; readonly rpm: number | null }

/** Of the limit that is nearest to its end: its size, what is left of it, and when it next gets room. Null: unlimited. */
export interface Decision { readonly admitted: boolean; readonly limit: number | null; readonly remaining: number; readonly resetMs: number }

export type Limiter = ReturnType<typeof createLimiter>;
/** `now` must never go back: a monotonic clock in milliseconds. */
export function createLimiter(now: () => number = () => performance.now()) {
  /** The times of admissions, oldest first; those before `from` are forgotten. */
  const windows = new Map<string, { times: number[]; from: number }>();

  function windowAt(time: number, name: string) {
    const window = windows.get(name) ?? { times: [], from: 0 };
    windows.set(name, window);
    while (window.from < window.times.length && window.times[window.from]! + WINDOW_MS <= time) window.from += 1;
    if (window.from * 2 > window.times.length) Object.assign(window, { times: window.times.slice(window.from), from: 0 });
    return window;
  }
  const countOf = ({ times, from }: ReturnType<typeof windowAt>): number => times.length - from;

  return {
    /** Admits a request under all of its limits, or under none. */
    admit(limits: readonly Limit[]): Decision {
      const time = now();
      const states = limits.flatMap(({ name, rpm }) => (rpm === null ? [] : [{ rpm, window: windowAt(time, name) }]));
      const admitted = states.every(({ rpm, window }) => countOf(window) < rpm);
      if (admitted) for (const { window } of states) window.times.push(time);
      const decisions = states.map(({ rpm, window }): Decision => {
        // A limit that was lowered by a new configuration is full until enough of its admissions are forgotten; one of 0 is for ever.
        const first = window.times[window.from + Math.max(0, countOf(window) - rpm)] ?? time;
        return { admitted, limit: rpm, remaining: Math.max(0, rpm - countOf(window)), resetMs: first + WINDOW_MS - time };
      });
      const [tightest] = decisions.sort((a, b) => a.remaining - b.remaining || b.resetMs - a.resetMs);
      return tightest ?? { admitted, limit: null, remaining: Infinity, resetMs: 0 };
    },
    /** How many requests of the last 60 seconds stand in a window. */
    used: (name: string): number => (windows.has(name) ? countOf(windowAt(now(), name)) : 0),
  };
}
