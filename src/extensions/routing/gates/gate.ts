// What one provider, model or key can take: requests and tokens in a minute, and requests at once.
// Requests that have to wait are let in by turns of their accounts, so that an account with many
// requests does not hold up the others.
import { WINDOW_MS } from "../../../core/accounts/limiter.ts";
import type { Clock, Timer } from "../../../core/clock.ts";
import type { Cancel } from "../../../core/http/cancel.ts";

/** Absent: there is no such bound. */
export interface Bounds {
  /** Requests in any minute. */
  readonly rpm?: number | undefined;
  /** Tokens in any minute, counted when replies end. */
  readonly tpm?: number | undefined;
  /** Requests at once. */
  readonly max_in_flight?: number | undefined;
  /** The requests at once follow from what the provider bears, up to max_in_flight. */
  readonly adaptive?: boolean | undefined;
}

/** A request that wants to be let in. */
export interface Entry {
  /** In force from now on. What is counted stays. */
  readonly bounds: Bounds;
  /** Whose request it is. */
  readonly account: string;
  /** How long it may wait for room, in milliseconds. */
  readonly waitMs: number;
  /** Aborted when the client has left: it waits no more. Absent: it never is. */
  readonly cancel?: Pick<Cancel, "onAbort">;
}

export interface Gate {
  /**
   * True: the request is let in, and counted; it has to leave, or to be undone. A number: there is
   * no room for so many milliseconds. A promise, of true or of that number: it waits.
   */
  enter(entry: Entry): true | number | Promise<true | number>;
  /** A request that was let in so many milliseconds ago is not made: it counts for nothing. */
  undo(ageMs: number): void;
  /** A request has left. `overloaded`: the provider refused it because it has too many. */
  leave(tokens: number, overloaded: boolean): void;
  /** Nobody is let in for so many milliseconds; a minute at most, however absurd the time is. */
  pause(ms: number): void;
}

/** A gate that this process has itself. */
export interface LocalGate extends Gate {
  /** Requests at once that are allowed now. Infinity: any number. */
  limit(): number;
}

/** Where an adaptive limit begins, and what an overload leaves of it. */
const FIRST_LIMIT = 10;
const DECREASE = 0.9;

/** Ends the wait of a request. */
type Waiter = (isIn: boolean) => void;

export function createGate(clock: Clock): LocalGate {
  let bounds: Bounds = {};
  const requests = createWindow(clock);
  const tokens = createWindow(clock);
  /** By account, in the order of their turns. */
  const queues = new Map<string, Waiter[]>();
  let inFlight = 0;
  /** What the provider bears, as far as is known. */
  let borne = FIRST_LIMIT;
  /** The end of a pause, by the monotonic clock. */
  let pausedUntil = -Infinity;
  let wakeUp: Timer | undefined;

  function allowed(): number {
    const { max_in_flight: most = Infinity, adaptive } = bounds;
    return adaptive ? Math.min(borne, most) : most;
  }

  function tryEnter(): true | number {
    if (inFlight >= Math.floor(allowed())) return Infinity;
    const { rpm = Infinity, tpm = Infinity } = bounds;
    const pause = pausedUntil - clock.monotonic();
    const wait = Math.max(pause, tokens.wait(tpm), requests.wait(rpm));
    if (wait > 0) return wait;
    if (rpm < Infinity) requests.add(1);
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
      next(true);
    }
  }

  function wait({ account, waitMs, cancel }: Entry): Promise<boolean> {
    return new Promise((resolve) => {
      const waiter: Waiter = (isIn) => {
        timer.cancel();
        detach?.();
        resolve(isIn);
      };
      function giveUp(): void {
        const queue = (queues.get(account) ?? []).filter((other) => other !== waiter);
        if (queue.length > 0) queues.set(account, queue);
        else queues.delete(account);
        if (queues.size === 0) wakeUp?.cancel();
        waiter(false);
      }
      const timer = clock.after(waitMs, giveUp);
      queues.set(account, [...(queues.get(account) ?? []), waiter]);
      const detach = cancel?.onAbort(giveUp);
      wake();
    });
  }

  return {
    enter(entry) {
      bounds = entry.bounds;
      wake();
      const entered = queues.size > 0 ? Infinity : tryEnter(); // nobody overtakes those who wait
      if (entered === true || entry.waitMs <= 0) return entered;
      return wait(entry).then((isIn) => isIn || entered);
    },
    undo(ageMs) {
      inFlight -= 1;
      requests.takeBack(clock.monotonic() - ageMs);
      wake();
    },
    leave(count, overloaded) {
      const { adaptive, tpm } = bounds;
      const limit = allowed();
      const isHalfUsed = inFlight * 2 >= limit;
      inFlight -= 1;
      if (tpm !== undefined) tokens.add(count);
      if (adaptive && overloaded) borne = Math.max(1, limit * DECREASE);
      else if (adaptive && isHalfUsed) borne = limit + 1;
      wake();
    },
    pause(ms) {
      pausedUntil = Math.max(pausedUntil, clock.monotonic() + Math.min(ms, WINDOW_MS));
    },
    limit: () => Math.floor(allowed()),
  };
}

/** What was counted in the last minute. */
function createWindow({ monotonic }: Clock) {
  const counted: { readonly at: number; readonly count: number }[] = [];
  /** The index of the oldest one that counts. Those before it go together, or each would cost. */
  let first = 0;
  let sum = 0;

  function forget(now: number): void {
    for (; first < counted.length && counted[first]!.at + WINDOW_MS <= now; first += 1)
      sum -= counted[first]!.count;
    if (first * 2 <= counted.length) return;
    counted.splice(0, first);
    first = 0;
  }

  return {
    add(count: number): void {
      counted.push({ at: monotonic(), count });
      sum += count;
    },
    /** The last one up to this time does not count. */
    takeBack(time: number): void {
      const at = counted.findLastIndex((each) => each.at <= time);
      if (at >= first) sum -= counted.splice(at, 1)[0]!.count;
    },
    /** Milliseconds until fewer than `most` count. */
    wait(most: number): number {
      const now = monotonic();
      forget(now);
      let excess = sum - most;
      for (let at = first; excess >= 0; at += 1) {
        excess -= counted[at]!.count;
        if (excess < 0) return counted[at]!.at + WINDOW_MS - now;
      }
      return 0;
    },
  };
}
