// The keys of one provider: which one a request takes, and which ones rest.
import { createLimiter } from "../../../core/accounts/limiter.ts";
import type { Clock } from "../../../core/clock.ts";

/** A key of a provider as its row states it. */
export interface PoolKey {
  readonly key: string;
  /** Its part of the requests, among those of the keys that can be used. */
  readonly weight: number;
  /** Requests in any minute. Undefined: any number. */
  readonly rpm?: number | undefined;
  /** Tokens in any minute, as replies state them at their end. Undefined: any number. */
  readonly tpm?: number | undefined;
}

/** A key that a request may use. */
export interface TakenKey {
  readonly key: string;
  /** Its last four characters, which are all of it that anybody is told. */
  readonly end: string;
  /** Counts the tokens of a reply. */
  used(tokens: number): void;
  /** Leaves the key alone for so long. */
  rest(ms: number): void;
}

export interface KeyPool {
  /** A key that this request has not tried. A number: none can be used for so many milliseconds. */
  take(tried: ReadonlySet<string>): TakenKey | number;
  /** The ends of the keys, each with the milliseconds for which it rests. */
  status(): readonly { readonly key: string; readonly resting_ms: number }[];
}

const WINDOW_MS = 60_000;

/** `random`: from 0 to less than 1. */
export function createKeyPool(
  keys: readonly PoolKey[],
  clock: Clock,
  random: () => number = Math.random,
): KeyPool {
  const limiter = createLimiter(clock.monotonic);
  const states = keys.map((stated) => ({
    ...stated,
    end: stated.key.slice(-4),
    restsUntil: -Infinity,
    tokens: [] as { readonly at: number; readonly count: number }[],
  }));
  type State = (typeof states)[number];

  /** Milliseconds until a key may be used. 0: now. */
  function waitOf(state: State): number {
    const now = clock.monotonic();
    if (now < state.restsUntil) return state.restsUntil - now;
    if (state.tpm === undefined) return 0;
    state.tokens = state.tokens.filter(({ at }) => now - at < WINDOW_MS);
    const sum = state.tokens.reduce((total, { count }) => total + count, 0);
    return sum < state.tpm ? 0 : state.tokens[0]!.at + WINDOW_MS - now;
  }

  /** 0: the request is counted. Else the milliseconds until there is room for one. */
  function admit({ key, rpm }: State): number {
    if (rpm === undefined) return 0;
    const limits = [{ name: key, rpm }];
    const { admitted, resetMs } = limiter.admit({ account: key, limits, maxInFlight: null });
    return admitted ? 0 : resetMs;
  }

  function drawn(able: readonly State[]): State | undefined {
    let left = random() * able.reduce((sum, { weight }) => sum + weight, 0);
    return able.find(({ weight }) => {
      left -= weight;
      return left < 0;
    });
  }

  return {
    take(tried) {
      const open = states.filter(({ key }) => !tried.has(key));
      const waits = open.map(waitOf);
      let able = open.filter((_, index) => waits[index] === 0);
      for (let state = drawn(able); state; state = drawn(able)) {
        const chosen = state;
        const wait = admit(chosen);
        if (wait === 0)
          return {
            key: chosen.key,
            end: chosen.end,
            used: (count) => chosen.tokens.push({ at: clock.monotonic(), count }),
            rest(ms) {
              chosen.restsUntil = clock.monotonic() + ms;
            },
          };
        waits.push(wait);
        able = able.filter((other) => other !== chosen);
      }
      return Math.min(...waits.filter((wait) => wait > 0));
    },
    status: () => {
      const now = clock.monotonic();
      return states.map(({ end, restsUntil }) => ({
        key: end,
        resting_ms: Math.max(0, Math.round(restsUntil - now)),
      }));
    },
  };
}
