// Limits the requests per minute, tokens per minute and concurrent requests of one provider, model
// or key. Accounts with waiting requests take turns, so that an account with many requests does not
// hold up the others.
import { WINDOW_MS } from "../../../core/accounts/limiter.ts";
import type { Clock, Timer } from "../../../core/clock.ts";
import type { Cancel } from "../../../core/http/cancel.ts";
import { createTokenWindows } from "../../money/token-windows/index.ts";

/** The bounds of a gate. An absent bound does not limit. */
export interface Bounds {
  /** Requests in any minute. */
  readonly rpm?: number | undefined;
  /** Tokens in any minute, counted when replies end. */
  readonly tpm?: number | undefined;
  /** Requests at once. */
  readonly max_in_flight?: number | undefined;
  /** Whether the concurrency limit adapts to overloads, up to max_in_flight. Absent: no. */
  readonly adaptive?: boolean | undefined;
}

/** A request that asks for a permit. */
export interface Entry {
  /** The account of the request. Accounts with waiting requests take turns. */
  readonly account: string;
  /** How long the request may wait for room, in milliseconds. */
  readonly waitMs: number;
  /** Ends the wait when the client has left. Absent: only `waitMs` ends it. */
  readonly cancel?: Pick<Cancel, "aborted" | "onAbort">;
}

/** How a request ended. `overload`: the provider refused it because of too many requests. */
export type Ending = "reply" | "overload" | "other";

/** The right to make one request. It counts as concurrent until one of these is called. */
export interface Permit {
  /** The request has ended, and used this many tokens. */
  release(tokens: number, ending: Ending): void;
  /** The request was not made, so it does not count at all. */
  undo(): void;
}

/** A permit, or the milliseconds until there may be room. Infinity: no time is known. */
export type Entered = Permit | number;

/** The first value of an adaptive limit, and the factor by which an overload lowers it. */
const FIRST_LIMIT = 10;
const DECREASE = 0.9;

/** Creates a gate, which has no bounds until the first enter(). */
export function createGate(clock: Clock) {
  let bounds: Bounds = {};
  /** The requests and tokens of the last minute, where they are bounded. */
  const windows = createTokenWindows(clock.monotonic);
  const queue = createQueue(clock, tryEnter);
  let inFlight = 0;
  /** How many concurrent requests the provider seems to accept. */
  let adaptiveLimit = FIRST_LIMIT;
  /** The end of a pause, by the monotonic clock. */
  let pausedUntil = -Infinity;

  function allowed(): number {
    const { max_in_flight: most = Infinity, adaptive } = bounds;
    return adaptive ? Math.min(adaptiveLimit, most) : most;
  }

  /** Milliseconds until there is room. Infinity: a permit must be released first. */
  function timeToRoom(): number {
    if (inFlight >= Math.floor(allowed())) return Infinity;
    const room = windows.msUntilRoom([...limitsIn(bounds, "rpm"), ...limitsIn(bounds, "tpm")], 1);
    return Math.max(pausedUntil - clock.monotonic(), room);
  }

  function tryEnter(): Entered {
    const wait = timeToRoom();
    if (wait > 0) return wait;
    inFlight += 1;
    const requests = limitsIn(bounds, "rpm");
    const admission = windows.admit(requests, 1);
    return {
      release,
      undo() {
        inFlight -= 1;
        windows.withdraw(requests, admission);
        queue.wake();
      },
    };
  }

  function release(tokens: number, ending: Ending): void {
    const { adaptive } = bounds;
    const limit = allowed();
    const isHalfUsed = inFlight * 2 >= limit;
    inFlight -= 1;
    windows.admit(limitsIn(bounds, "tpm"), tokens);
    if (adaptive && ending === "overload") adaptiveLimit = Math.max(1, limit * DECREASE);
    else if (adaptive && ending === "reply" && isHalfUsed) adaptiveLimit = limit + 1;
    queue.wake();
  }

  return {
    /** Admits a request, or makes it wait. `inForce`: the bounds from now on; counts are kept. */
    enter(inForce: Bounds, entry: Entry): Entered | Promise<Entered> {
      bounds = inForce;
      queue.wake();
      const entered = queue.isEmpty() ? tryEnter() : timeToRoom(); // waiting requests go first
      if (typeof entered !== "number") return entered;
      if (entry.waitMs <= 0 || entry.cancel?.aborted) return entered;
      return queue.wait(entry).then((permit) => permit ?? timeToRoom());
    },
    /** Admits no request for `ms` milliseconds, but at most for a minute. */
    pause(ms: number): void {
      pausedUntil = Math.max(pausedUntil, clock.monotonic() + Math.min(ms, WINDOW_MS));
    },
    /** The present limit of concurrent requests. Infinity: there is none. */
    limit: (): number => Math.floor(allowed()),
  };
}

/** The bound of this name, in the form that the token windows need. Empty: there is none. */
function limitsIn(bounds: Bounds, name: "rpm" | "tpm") {
  const limit = bounds[name];
  return limit === undefined ? [] : [{ name, limit }];
}

/** Ends the wait of a request. Undefined: it is not admitted. */
type Waiter = (permit: Permit | undefined) => void;

/** The queue of waiting requests, in which accounts take turns. */
function createQueue(clock: Clock, tryEnter: () => Entered) {
  /** The waiting requests of each account. Accounts are in the order of their turns. */
  const queues = new Map<string, Waiter[]>();
  let wakeUp: Timer | undefined;

  /** Admits as many requests as there is room for. */
  function wake(): void {
    wakeUp?.cancel();
    for (const [account] of queues) {
      const entered = tryEnter();
      if (typeof entered === "number") {
        if (entered !== Infinity) wakeUp = clock.after(entered, wake);
        return;
      }
      const queue = queues.get(account)!;
      const next = queue.shift()!;
      queues.delete(account);
      if (queue.length > 0) queues.set(account, queue); // its next turn comes after the others
      next(entered);
    }
  }

  function wait({ account, waitMs, cancel }: Entry): Promise<Permit | undefined> {
    return new Promise((resolve) => {
      const waiter: Waiter = (permit) => {
        timer.cancel();
        detach?.();
        resolve(permit);
      };
      function giveUp(): void {
        const queue = (queues.get(account) ?? []).filter((other) => other !== waiter);
        if (queue.length > 0) queues.set(account, queue);
        else queues.delete(account);
        waiter(undefined);
        wake();
      }
      const timer = clock.after(waitMs, giveUp);
      queues.set(account, [...(queues.get(account) ?? []), waiter]);
      const detach = cancel?.onAbort(giveUp);
      wake();
    });
  }

  return { isEmpty: (): boolean => queues.size === 0, wait, wake };
}
