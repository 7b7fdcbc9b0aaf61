// Limits of tokens per minute: in any 60 seconds at most the limit is admitted. A request takes its
// estimate when it is admitted; when it has ended, its real figure takes the place of the estimate,
// at the moment of its admission.
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
  /** The limit that has least left. Undefined: none of them bounds tokens. */
  state(limits: readonly TokenLimit[]): TokenState | undefined;
}

/** The admissions under one limit. */
interface TokenWindow {
  /** Oldest first. */
  readonly admissions: Admission[];
  /** The tokens of all of them. */
  sum: number;
}

/** That of the limit of tokens that has least left. Undefined: there is none. */
export const leastLeft = (states: readonly TokenState[]): TokenState | undefined =>
  states.toSorted((a, b) => a.remaining - b.remaining)[0];

/** `clock` is monotonic, in milliseconds. */
export function createTokenWindows(clock: () => number): TokenWindows {
  const windows = new Map<string, TokenWindow>();

  /** For how many milliseconds an admission counts. Not above 0: it does not any more. */
  const countsFor = ({ time }: Admission): number => time + WINDOW_MS - clock();

  /** With only what counts. */
  function windowOf({ name }: TokenLimit): TokenWindow {
    const window = windows.get(name) ?? { admissions: [], sum: 0 };
    windows.set(name, window);
    const { admissions } = window;
    let past = 0;
    for (; past < admissions.length && countsFor(admissions[past]!) <= 0; past += 1)
      window.sum -= admissions[past]!.tokens;
    admissions.splice(0, past);
    return window;
  }

  /** Milliseconds until a limit has room for the tokens; 0: it has. */
  function waitFor(limit: TokenLimit, tokens: number): number {
    const { admissions, sum } = windowOf(limit);
    let left = sum + tokens;
    if (left <= limit.limit) return 0;
    for (const admission of admissions) {
      left -= admission.tokens;
      if (left <= limit.limit) return countsFor(admission);
    }
    return WINDOW_MS; // more than the limit alone: it never has room
  }

  return {
    roomIn: (limits, tokens) => Math.max(0, ...limits.map((limit) => waitFor(limit, tokens))),
    admit(limits, tokens) {
      const admission = { time: clock(), tokens };
      for (const window of limits.map(windowOf)) {
        window.admissions.push(admission);
        window.sum += tokens;
      }
      return admission;
    },
    correct(limits, admission, tokens) {
      const counting = limits.map(windowOf);
      // Looked at after the windows: time goes on, and it may just have been dropped of one.
      if (countsFor(admission) <= 0) return;
      for (const window of counting) window.sum += tokens - admission.tokens;
      admission.tokens = tokens;
    },
    state: (limits) =>
      leastLeft(
        limits.map((limit) => {
          const { admissions, sum } = windowOf(limit);
          const [oldest] = admissions;
          return {
            limit: limit.limit,
            remaining: Math.max(0, limit.limit - sum),
            resetMs: oldest ? countsFor(oldest) : 0,
          };
        }),
      ),
  };
}
