// What one provider or one model can take: requests and tokens in a minute, and requests at once.
// Requests that have to wait are let in by turns of their accounts, so that an account with many
// requests does not hold up the others.
import { createLimiter } from "../../../core/accounts/limiter.ts";
import type { Clock, Timer } from "../../../core/clock.ts";

/** Bounds of a provider or a model. Absent: there is no such bound. */
export interface Bounds {
  /** Requests in any minute. */
  readonly rpm?: number | undefined;
  /** Tokens in any minute, counted when replies end. */
  readonly tpm?: number | undefined;
  /** Requests at once. */
  readonly max_in_flight?: number | undefined;
  /** The requests at once follow from what the provider bears, up to max_in_flight. */
  readonly adaptive: boolean;
}

export interface Gate {
  /** Lets a request in, and counts it. A number: there is no room for so many milliseconds. */
  tryEnter(): true | number;
  /** Resolves with true when a request of this account is let in, with false after `ms`. */
  wait(account: string, ms: number): Promise<boolean>;
  /** A request has left. `overloaded`: the provider refused it because it has too many. */
  leave(tokens: number, overloaded: boolean): void;
  /** Requests at once that are allowed now. Infinity: any number. */
  limit(): number;
}

const WINDOW_MS = 60_000;
/** Where an adaptive limit begins, and what an overload leaves of it. */
const FIRST_LIMIT = 10;
const DECREASE = 0.9;
const NAME = "requests";

interface Waiter {
  readonly settle: (isIn: boolean) => void;
  readonly timer: Timer;
}

export function createGate(bounds: Bounds, clock: Clock): Gate {
  const { rpm, tpm, max_in_flight: most = Infinity, adaptive } = bounds;
  const limiter = createLimiter(clock.monotonic);
  /** By account, in the order of their turns. */
  const queues = new Map<string, Waiter[]>();
  let tokens: { readonly at: number; readonly count: number }[] = [];
  let inFlight = 0;
  let adapted = adaptive ? Math.min(FIRST_LIMIT, most) : most;
  let wakeUp: Timer | undefined;

  /** Milliseconds until the tokens of the last minute leave room. */
  function tokenWait(): number {
    if (tpm === undefined) return 0;
    const now = clock.monotonic();
    tokens = tokens.filter(({ at }) => now - at < WINDOW_MS);
    const sum = tokens.reduce((total, { count }) => total + count, 0);
    return sum < tpm ? 0 : tokens[0]!.at + WINDOW_MS - now;
  }

  function tryEnter(): true | number {
    if (inFlight >= Math.floor(adapted)) return Infinity;
    const wait = tokenWait();
    if (wait > 0) return wait;
    if (rpm !== undefined) {
      const request = { account: NAME, limits: [{ name: NAME, rpm }], maxInFlight: null };
      const { admitted, resetMs } = limiter.admit(request);
      if (!admitted) return resetMs;
    }
    inFlight += 1;
    return true;
  }

  /** Lets in those who wait, as far as there is room, one of each account after the other. */
  function wake(): void {
    wakeUp?.cancel();
    for (const [account] of queues) {
      const entered = tryEnter();
      if (entered !== true) {
        if (entered !== Infinity) wakeUp = clock.after(entered, wake);
        return;
      }
      const queue = queues.get(account)!;
      const next = queue.shift()!;
      queues.delete(account);
      if (queue.length > 0) queues.set(account, queue); // its next turn comes after the others
      next.timer.cancel();
      next.settle(true);
    }
  }

  return {
    // Nobody overtakes those who wait.
    tryEnter: () => (queues.size > 0 ? Infinity : tryEnter()),
    wait: (account, ms) =>
      new Promise((resolve) => {
        const timer = clock.after(ms, () => {
          const queue = (queues.get(account) ?? []).filter((other) => other !== waiter);
          if (queue.length > 0) queues.set(account, queue);
          else queues.delete(account);
          if (queues.size === 0) wakeUp?.cancel();
          resolve(false);
        });
        const waiter: Waiter = { settle: resolve, timer };
        queues.set(account, [...(queues.get(account) ?? []), waiter]);
        wake();
      }),
    leave(count, overloaded) {
      const isHalfUsed = inFlight * 2 >= adapted;
      inFlight -= 1;
      if (tpm !== undefined && count > 0) tokens.push({ at: clock.monotonic(), count });
      if (adaptive && overloaded) adapted = Math.max(1, adapted * DECREASE);
      else if (adaptive && isHalfUsed) adapted = Math.min(most, adapted + 1);
      wake();
    },
    limit: () => Math.floor(adapted),
  };
}
