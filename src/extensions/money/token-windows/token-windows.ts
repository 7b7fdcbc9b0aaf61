// Limits tokens per minute: in any 60 seconds the admitted requests have at most `limit` tokens. A
// request counts with its estimate from its admission on. When it ends, its real tokens replace the
// estimate, still at the time of its admission.
import type { ServerResponse } from "node:http";
import { WINDOW_MS } from "../../../core/accounts/limiter.ts";

/** A limit of tokens per minute, of an account or a key. */
export interface TokenLimit {
  /** The result of accountLimitName() or keyLimitName(), or another unique name. */
  readonly name: string;
  /** Tokens per minute. */
  readonly limit: number;
}

/** How much of a limit of tokens per minute is left. */
export interface TokenState {
  /** Tokens per minute. */
  readonly limit: number;
  /** Tokens that are left at this moment. Never negative. */
  readonly remaining: number;
  /** Milliseconds until its oldest admission expires. 0: there is none. */
  readonly resetMs: number;
}

/** An admitted request. */
export interface Admission {
  /** The time of its admission by the monotonic clock, in milliseconds. */
  readonly time: number;
  /** The estimate or, after correct(), the real tokens. */
  tokens: number;
}

export interface TokenWindows {
  /** Milliseconds until all of these limits have room for the tokens. 0: they have room now. */
  msUntilRoom(limits: readonly TokenLimit[], tokens: number): number;
  /** Counts a request under all of these limits. */
  admit(limits: readonly TokenLimit[], tokens: number): Admission;
  /** Replaces the estimate of a request that was admitted under these limits. */
  correct(limits: readonly TokenLimit[], admission: Admission, tokens: number): void;
  /** Removes a request that was admitted under these limits but not made. */
  withdraw(limits: readonly TokenLimit[], admission: Admission): void;
  /** The state of the limit that has the least left. Undefined: `limits` is empty. */
  state(limits: readonly TokenLimit[]): TokenState | undefined;
}

/** The admissions under one limit. */
interface TokenWindow {
  /** Oldest first. Those before the index `first` have expired. */
  admissions: Admission[];
  first: number;
  /** The tokens of those that have not expired. */
  sum: number;
}

/** The state with the least left. Undefined: there is none. */
export const leastLeft = (states: readonly TokenState[]): TokenState | undefined =>
  states.toSorted((a, b) => a.remaining - b.remaining)[0];

/** Milliseconds as whole seconds, rounded up, at least one. */
export const secondsIn = (ms: number): number => Math.max(1, Math.ceil(ms / 1000));

/**
 * Sets the headers that state what is left of a limit, on a response that has not begun.
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

  /** Milliseconds until an admission expires. 0 or less: it has expired, or there is none. */
  const msUntilExpiry = (admission: Admission | undefined): number =>
    admission ? admission.time + WINDOW_MS - clock() : 0;

  /** The windows of these limits, without expired admissions. */
  const windowsOf = (limits: readonly TokenLimit[]) =>
    limits.map(({ name, limit }) => {
      const window = windows.get(name) ?? { admissions: [], first: 0, sum: 0 };
      windows.set(name, window);
      prune(window);
      return { limit, window };
    });

  function prune(window: TokenWindow): void {
    const { admissions } = window;
    while (window.first < admissions.length && msUntilExpiry(admissions[window.first]) <= 0) {
      window.sum -= admissions[window.first]!.tokens;
      window.first += 1;
    }
    // The list is copied only when more than half of it has expired: constant time on average.
    if (window.first * 2 <= admissions.length) return;
    window.admissions = admissions.slice(window.first);
    window.first = 0;
  }

  /** Once a minute, drops the windows whose admissions have all expired. */
  function sweep(): void {
    if (clock() < sweepAt) return;
    for (const [name, { admissions }] of windows)
      if (msUntilExpiry(admissions.at(-1)) <= 0) windows.delete(name);
    sweepAt = clock() + WINDOW_MS;
  }

  /** Milliseconds until at most `max` tokens count. 0: that is so now. */
  function waitFor({ admissions, first, sum }: TokenWindow, max: number): number {
    let left = sum;
    if (left <= max) return 0;
    for (let at = first; at < admissions.length; at += 1) {
      left -= admissions[at]!.tokens;
      if (left <= max) return msUntilExpiry(admissions[at]);
    }
    return WINDOW_MS; // the request alone exceeds the limit: there is never room
  }

  return {
    msUntilRoom: (limits, tokens) =>
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
      // Compare after windowsOf(), which may just have dropped the admission as expired.
      if (msUntilExpiry(admission) <= 0) return;
      for (const { window } of counting) window.sum += tokens - admission.tokens;
      admission.tokens = tokens;
    },
    withdraw(limits, admission) {
      for (const { window } of windowsOf(limits)) {
        const at = window.admissions.lastIndexOf(admission); // it is usually among the last
        if (at < window.first) continue; // it has expired
        window.admissions.splice(at, 1);
        window.sum -= admission.tokens;
      }
    },
    state: (limits) =>
      leastLeft(
        windowsOf(limits).map(({ limit, window: { admissions, first, sum } }) => ({
          limit,
          remaining: Math.max(0, limit - sum),
          resetMs: msUntilExpiry(admissions[first]),
        })),
      ),
  };
}
