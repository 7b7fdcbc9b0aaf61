// All limits of tokens per minute, under each of which a request is admitted, or under none.
import { WINDOW_MS } from "../../../core/accounts/limiter.ts";
import { createTokenWindow, type TokenWindow } from "./token-window.ts";

/** What bounds the tokens of an account or of a key. */
export interface TokenLimit {
  /** As accountLimitName() or keyLimitName() has it. */
  readonly name: string;
  /** Null: it bounds no tokens. */
  readonly tokensPerMinute: number | null;
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

export interface TokenLimits {
  /** Milliseconds until all of these limits have room for the tokens; 0: they have. */
  roomIn(limits: readonly TokenLimit[], tokens: number): number;
  /** Admits a request. `id` is greater than that of every one before. */
  admit(limits: readonly TokenLimit[], id: number, tokens: number): void;
  /** Replaces the estimate of a request that was admitted. */
  correct(limits: readonly TokenLimit[], id: number, tokens: number): void;
  /** The limit that has least left. Undefined: none of them bounds tokens. */
  state(limits: readonly TokenLimit[]): TokenState | undefined;
}

/** `now` is a monotonic clock, in milliseconds. */
export function createTokenLimits(now: () => number): TokenLimits {
  const windows = new Map<string, TokenWindow>();
  let sweepAt = 0;

  function windowOf(name: string): TokenWindow {
    const known = windows.get(name);
    if (known) return known;
    const window = createTokenWindow();
    windows.set(name, window);
    return window;
  }

  /** Once a minute, windows in which nothing counts are dropped. */
  function sweep(time: number): void {
    if (time < sweepAt) return;
    for (const [name, window] of windows) if (window.renewsIn(time) === 0) windows.delete(name);
    sweepAt = time + WINDOW_MS;
  }

  function* finite(limits: readonly TokenLimit[]) {
    for (const { name, tokensPerMinute } of limits)
      if (tokensPerMinute !== null) yield { limit: tokensPerMinute, window: windowOf(name) };
  }

  return {
    roomIn(limits, tokens) {
      const time = now();
      sweep(time);
      let longest = 0;
      for (const { limit, window } of finite(limits))
        longest = Math.max(longest, window.roomIn(tokens, limit, time));
      return longest;
    },
    admit(limits, id, tokens) {
      for (const { window } of finite(limits)) window.add(id, now(), tokens);
    },
    correct(limits, id, tokens) {
      for (const { window } of finite(limits)) window.correct(id, tokens);
    },
    state(limits) {
      const time = now();
      const states = Array.from(finite(limits), ({ limit, window }) => ({
        limit,
        remaining: Math.max(0, limit - window.total(time)),
        resetMs: window.renewsIn(time),
      }));
      return leastLeft(states);
    },
  };
}

/** That of the limit of tokens that has least left. Undefined: there is none. */
export const leastLeft = (states: readonly TokenState[]): TokenState | undefined =>
  states.toSorted((a, b) => a.remaining - b.remaining)[0];
