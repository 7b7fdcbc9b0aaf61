// Bounds the lookups of receipts: each account's in a minute, and those that one process does at
// once. A lookup reads files or asks a database, and nothing else limits how often it is asked for.
import type { Limiter } from "../../../core/accounts/limiter.ts";
import type { Clock } from "../../../core/clock.ts";
import type { Cancel } from "../../../core/http/cancel.ts";
import { ApiError } from "../../../core/openai/errors.ts";

/** Lookups of an account in a minute, in all processes of a gateway together. */
export const MOST_A_MINUTE = 600;
/** Lookups that a process does at once. Further ones wait. */
export const MOST_AT_ONCE = 4;
/** Lookups that wait. Further ones are refused. */
export const MOST_WAITING = 100;
/** Milliseconds after which a lookup that still waits is refused. */
export const MOST_WAIT_MS = 5_000;

export interface Lookups {
  /**
   * Counts a lookup of the account. It counts against no limit of chat requests. Throws the 429.
   */
  admit(account: string): Promise<void>;
  /**
   * Does `search` as soon as there is room. Rejects with the 503 if there is none in time, or with
   * the reason of `cancel` if that is aborted before.
   */
  run<T>(cancel: Cancel, search: () => Promise<T>): Promise<T>;
}

/** `limiter` has the windows of the accounts. */
export function createLookups(limiter: Limiter, clock: Clock): Lookups {
  const waiting = new Set<() => void>();
  let busy = 0;

  /** Resolves when one of the places is taken. */
  function enter(cancel: Cancel): Promise<void> {
    if (cancel.aborted) throw cancel.reason;
    if (busy < MOST_AT_ONCE) {
      busy += 1;
      return Promise.resolve();
    }
    if (waiting.size >= MOST_WAITING) throw tooMany();
    return new Promise((resolve, reject) => {
      function stopWaiting(settle: () => void): void {
        waiting.delete(begin);
        late.cancel();
        ignoreCancel();
        settle();
      }
      const begin = (): void => stopWaiting(resolve);
      const giveUp = (reason: unknown): void => stopWaiting(() => reject(reason));
      const late = clock.after(MOST_WAIT_MS, () => giveUp(tooMany()));
      const ignoreCancel = cancel.onAbort(() => giveUp(cancel.reason));
      waiting.add(begin);
    });
  }

  /** The one that has waited longest gets the place. */
  function leave(): void {
    const [next] = waiting;
    if (next) next();
    else busy -= 1;
  }

  return {
    async admit(account) {
      const limits = [{ name: `receipts ${account}`, rpm: MOST_A_MINUTE }];
      const { admitted, resetMs } = await limiter.admit({ account, limits, maxInFlight: null });
      if (!admitted) throw tooOften(Math.max(1, Math.ceil(resetMs / 1000)));
    },
    async run(cancel, search) {
      await enter(cancel);
      try {
        return await search();
      } finally {
        leave();
      }
    },
  };
}

const tooOften = (seconds: number): ApiError =>
  new ApiError(
    "rate_limit_exceeded",
    `An account may ask for the receipts of ${MOST_A_MINUTE} request ids a minute. ` +
      `Retry after ${seconds} seconds.`,
    { headers: { "Retry-After": String(seconds) } },
  );

const tooMany = (): ApiError =>
  new ApiError("server_overloaded", "Too many receipts are being looked up. Retry in a second.", {
    headers: { "Retry-After": "1" },
  });
