// Limits of tokens per minute: in any 60 seconds at most the limit is admitted. A request takes its
// estimate when it is admitted; when it has ended, its real figure takes the place of the estimate,
// at the moment of its admission.
import type { ServerResponse } from "node:http";
import { WINDOW_MS } from "../../../core/accounts/limiter.ts";

/** What bounds the tokens of an account or of a key. */
export interface TokenLimit {
  /** As accountLimitName() or keyLimitName() has it. */
  readonly name: string;
  /** Tokens per minute. */
  readonly limit: number;
}

/** How much of a limit of tokens per minute is left. */
export interface TokenState {
  /** Tokens per minute. */
  readonly limit: number;
  /** Tokens that are left of it at this moment. Never negative. */
  readonly remaining: number;
  /** Milliseconds until it next gets room. */
  readonly resetMs: number;
}

/** A request that was admitted. */
export interface Admission {
  /** By the monotonic clock, in milliseconds. */
  readonly time: number;
  /** By estimate, or as they were. */
  tokens: number;
}

export interface TokenWindows {
  /** Milliseconds until all of these limits have room for the tokens; 0: they have. */
  roomIn(limits: readonly TokenLimit[], tokens: number): number;
  /** Counts a request under all of these limits. */
  admit(limits: readonly TokenLimit[], tokens: number): Admission;
  /** Replaces the estimate of a request that was admitted under these limits. */
  correct(limits: readonly TokenLimit[], admission: Admission, tokens: number): void;
  /** Forgets a request that was admitted under these limits: it was not made. */
  withdraw(limits: readonly TokenLimit[], admission: Admission): void;
  /** The limit that has least left. Undefined: none of them bounds tokens. */
  state(limits: readonly TokenLimit[]): TokenState | undefined;
}

/** The admissions under one limit. */
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

/** As whole seconds, at least one. */
export const secondsIn = (ms: number): number => Math.max(1, Math.ceil(ms / 1000));

/**
 * Tells a client what is left of its limit, in the headers of a response that has not begun.
 * wire.md "Rate limit headers".
 */
export function setTokenHeaders(res: ServerResponse, { limit, remaining, resetMs }: TokenState) {
  res.setHeader("x-ratelimit-limit-tokens", limit);
  res.setHeader("x-ratelimit-remaining-tokens", remaining);
  res.setHeader("x-ratelimit-reset-tokens", `${secondsIn(resetMs)}s`);
}

/** `clock` is monotonic, in milliseconds. */
export function createTokenWindows(clock: () => number): TokenWindows {
  const windows = new Map<string, TokenWindow>();
  let sweepAt = 0;

  /** For how many milliseconds an admission counts. Not above 0: it does not any more. */
  const countsFor = (admission: Admission | undefined): number =>
    admission ? admission.time + WINDOW_MS - clock() : 0;

  /** With only what counts. */
  const windowsOf = (limits: readonly TokenLimit[]) =>
    limits.map(({ name, limit }) => {
      const window = windows.get(name) ?? { admissions: [], first: 0, sum: 0 };
      windows.set(name, window);
      prune(window);
      return { limit, window };
    });

  function prune(window: TokenWindow): void {
    const { admissions } = window;
    while (window.first < admissions.length && countsFor(admissions[window.first]) <= 0) {
      window.sum -= admissions[window.first]!.tokens;
      window.first += 1;
    }
    // The list is copied only when more than half of it is old: constant time on average.
    if (window.first * 2 <= admissions.length) return;
    window.admissions = admissions.slice(window.first);
    window.first = 0;
  }

  /** Once a minute, windows in which nothing counts are dropped. */
  function sweep(): void {
    if (clock() < sweepAt) return;
    for (const [name, { admissions }] of windows)
      if (countsFor(admissions.at(-1)) <= 0) windows.delete(name);
    sweepAt = clock() + WINDOW_MS;
  }

  /** Milliseconds until at most `most` tokens count; 0: that is so. */
  function waitFor({ admissions, first, sum }: TokenWindow, most: number): number {
    let left = sum;
    if (left <= most) return 0;
    for (let at = first; at < admissions.length; at += 1) {
      left -= admissions[at]!.tokens;
      if (left <= most) return countsFor(admissions[at]);
    }
    return WINDOW_MS; // more than the limit alone: it never has room
  }

  return {
    roomIn: (limits, tokens) =>
      Math.max(0, ...windowsOf(limits).map(({ limit, window }) => waitFor(window, limit - tokens))),
    admit(limits, tokens) {
      sweep();
      const admission = { time: clock(), tokens };
      for (const { window } of windowsOf(limits)) {
        window.admissions.push(admission);
        window.sum += tokens;
      }
      return admission;
    },
    correct(limits, admission, tokens) {
      const counting = windowsOf(limits);
      // Looked at after the windows: time goes on, and it may just have been dropped of one.
      if (countsFor(admission) <= 0) return;
      for (const { window } of counting) window.sum += tokens - admission.tokens;
      admission.tokens = tokens;
    },
    withdraw(limits, admission) {
      for (const { window } of windowsOf(limits)) {
        const at = window.admissions.lastIndexOf(admission); // most are withdrawn at once
        if (at < window.first) continue; // it does not count any more
        window.admissions.splice(at, 1);
        window.sum -= admission.tokens;
      }
    },
    state: (limits) =>
      leastLeft(
        windowsOf(limits).map(({ limit, window: { admissions, first, sum } }) => ({
          limit,
          remaining: Math.max(0, limit - sum),
          resetMs: countsFor(admissions[first]),
        })),
      ),
  };
}
