// Limits of tokens per minute: in any 60 seconds at most the limit is admitted. A request takes its
// estimate when it is admitted; when it has ended, its real figure takes the place of the estimate,
// at the moment of its admission.
import { WINDOW_MS } from "../../../core/accounts/limiter.ts";
import type { SpendLimit } from "./purses.ts";

/** How much of a limit of tokens per minute is left. */
export interface TokenState {
  /** Tokens per minute. */
  readonly limit: number;
  /** Tokens that are left of it at this moment. Never negative. */
  readonly remaining: number;
  /** Milliseconds until it next gets room. */
  readonly resetMs: number;
}

export interface TokenWindows {
  /** Milliseconds until all of these limits have room for the tokens; 0: they have. */
  roomIn(limits: readonly SpendLimit[], tokens: number): number;
  /** Admits a request. Its token names it. */
  admit(limits: readonly SpendLimit[], token: string, tokens: number): void;
  /** Replaces the estimate of a request that was admitted. To be called once for each. */
  correct(limits: readonly SpendLimit[], token: string, tokens: number): void;
  /** The limit that has least left. Undefined: none of them bounds tokens. */
  state(limits: readonly SpendLimit[]): TokenState | undefined;
}

interface Admission {
  /** By the monotonic clock, in milliseconds. */
  readonly time: number;
  tokens: number;
}

/** The admissions that count under one limit. */
interface TokenWindow {
  /** Oldest first. Those before the index `first` do not count any more. */
  admissions: Admission[];
  first: number;
  /** The tokens of those that count. */
  sum: number;
}

/** That of the limit of tokens that has least left. Undefined: there is none. */
export const leastLeft = (states: readonly TokenState[]): TokenState | undefined =>
  states.toSorted((a, b) => a.remaining - b.remaining)[0];

/** Milliseconds until an admission does not count any more. Not above 0: it does not. */
const countsFor = ({ time }: Admission, now: number): number => time + WINDOW_MS - now;

function prune(window: TokenWindow, now: number): void {
  const { admissions } = window;
  for (let oldest = admissions[window.first]; oldest; oldest = admissions[window.first]) {
    if (countsFor(oldest, now) > 0) break;
    window.sum -= oldest.tokens;
    window.first += 1;
  }
  // The list is copied only when more than half of it is old: constant time on average.
  if (window.first * 2 <= admissions.length) return;
  window.admissions = admissions.slice(window.first);
  window.first = 0;
}

/** `clock` is monotonic, in milliseconds. */
export function createTokenWindows(clock: () => number): TokenWindows {
  const windows = new Map<string, TokenWindow>();
  /** Of requests that run, by their tokens. */
  const running = new Map<string, Admission>();
  let sweepAt = 0;

  /** Once a minute, windows in which nothing counts are dropped. */
  function sweep(now: number): void {
    if (now < sweepAt) return;
    for (const [name, window] of windows) {
      prune(window, now);
      if (window.admissions.length === 0) windows.delete(name);
    }
    sweepAt = now + WINDOW_MS;
  }

  /** Of the limits that bound tokens, as they are now. */
  function* windowsOf(limits: readonly SpendLimit[], now: number) {
    for (const { name, tokensPerMinute: limit } of limits) {
      if (limit === null) continue;
      const window = windows.get(name) ?? { admissions: [], first: 0, sum: 0 };
      windows.set(name, window);
      prune(window, now);
      yield { limit, window };
    }
  }

  return {
    roomIn(limits, tokens) {
      const now = clock();
      let longest = 0;
      for (const { limit, window } of windowsOf(limits, now))
        longest = Math.max(longest, roomIn(window, limit - tokens, now));
      return longest;
    },
    admit(limits, token, tokens) {
      const admission = { time: clock(), tokens };
      sweep(admission.time);
      running.set(token, admission);
      for (const { window } of windowsOf(limits, admission.time)) {
        window.admissions.push(admission);
        window.sum += tokens;
      }
    },
    correct(limits, token, tokens) {
      const now = clock();
      const admission = running.get(token);
      running.delete(token);
      if (!admission || countsFor(admission, now) <= 0) return;
      for (const { window } of windowsOf(limits, now)) window.sum += tokens - admission.tokens;
      admission.tokens = tokens;
    },
    state(limits) {
      const now = clock();
      const states = Array.from(windowsOf(limits, now), ({ limit, window }) => {
        const oldest = window.admissions[window.first];
        return {
          limit,
          remaining: Math.max(0, limit - window.sum),
          resetMs: oldest ? countsFor(oldest, now) : 0,
        };
      });
      return leastLeft(states);
    },
  };
}

/** Milliseconds until at most `most` tokens count; 0: that is so. */
function roomIn({ admissions, first, sum }: TokenWindow, most: number, now: number): number {
  let left = sum;
  if (left <= most) return 0;
  for (const admission of admissions.slice(first)) {
    left -= admission.tokens;
    if (left <= most) return countsFor(admission, now);
  }
  return WINDOW_MS; // more than the limit alone: it never has room
}
