// What one provider, model or key can take: requests and tokens in a minute, and requests at once.
// Requests that have to wait are let in by turns of their accounts, so that an account with many
// requests does not hold up the others.
import { WINDOW_MS } from "../../../core/accounts/limiter.ts";
import type { Clock, Timer } from "../../../core/clock.ts";
import type { Cancel } from "../../../core/http/cancel.ts";
import { createTokenWindows } from "../../money/token-windows/index.ts";

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
  /** Whose request it is. */
  readonly account: string;
  /** How long it may wait for room, in milliseconds. */
  readonly waitMs: number;
  /** Aborted when the client has left: it waits no more. Absent: it never is. */
  readonly cancel?: Pick<Cancel, "onAbort">;
}

/** `overload`: the provider refused the request because it has too many. */
export type Ending = "reply" | "overload" | "other";

/** A request that was let in, and is counted until one of these is called. */
export interface Permit {
  /** It has left. */
  leave(tokens: number, ending: Ending): void;
  /** It is not made: it counts for nothing. */
  undo(): void;
}

/** A permit, or the milliseconds for which there is no room. */
export type Entered = Permit | number;

/** Where an adaptive limit begins, and what an overload leaves of it. */
const FIRST_LIMIT = 10;
const DECREASE = 0.9;

/** It lets everybody in until bounds come. */
export function createGate(clock: Clock) {
  let bounds: Bounds = {};
  /** What was counted in the last minute, as far as it is bounded. */
  const windows = createTokenWindows(clock.monotonic);
  const queue = createQueue(clock, tryEnter);
  let inFlight = 0;
  /** What the provider bears, as far as is known. */
  let borne = FIRST_LIMIT;
  /** The end of a pause, by the monotonic clock. */
  let pausedUntil = -Infinity;

  function allowed(): number {
    const { max_in_flight: most = Infinity, adaptive } = bounds;
    return adaptive ? Math.min(borne, most) : most;
  }

  /** Milliseconds until there is room. Infinity: until a request leaves. */
  function timeToRoom(): number {
    if (inFlight >= Math.floor(allowed())) return Infinity;
    const room = windows.roomIn([...limitsIn(bounds, "rpm"), ...limitsIn(bounds, "tpm")], 1);
    return Math.max(pausedUntil - clock.monotonic(), room);
  }

  function tryEnter(): Entered {
    const wait = timeToRoom();
    if (wait > 0) return wait;
    inFlight += 1;
    const requests = limitsIn(bounds, "rpm");
    const admission = windows.admit(requests, 1);
    return {
      leave,
      undo() {
        inFlight -= 1;
        windows.withdraw(requests, admission);
        queue.wake();
      },
    };
  }

  function leave(count: number, ending: Ending): void {
    const { adaptive } = bounds;
    const limit = allowed();
    const isHalfUsed = inFlight * 2 >= limit;
    inFlight -= 1;
    windows.admit(limitsIn(bounds, "tpm"), count);
    if (adaptive && ending === "overload") borne = Math.max(1, limit * DECREASE);
    else if (adaptive && ending === "reply" && isHalfUsed) borne = limit + 1;
    queue.wake();
  }

  return {
    /**
     * Lets a request in, or has it wait. `inForce`: the bounds from now on; what is counted stays.
     */
    enter(inForce: Bounds, entry: Entry): Entered | Promise<Entered> {
      bounds = inForce;
      queue.wake();
      const entered = queue.isEmpty() ? tryEnter() : timeToRoom(); // nobody overtakes who waits
      if (typeof entered !== "number" || entry.waitMs <= 0) return entered;
      return queue.wait(entry).then((permit) => permit ?? timeToRoom());
    },
    /** Nobody is let in for so many milliseconds; a minute at most, however absurd the time is. */
    pause(ms: number): void {
      pausedUntil = Math.max(pausedUntil, clock.monotonic() + Math.min(ms, WINDOW_MS));
    },
    /** Requests at once that are allowed now. Infinity: any number. */
    limit: (): number => Math.floor(allowed()),
  };
}

/** The bound of this name, as a window has it. Empty: there is none. */
function limitsIn(bounds: Bounds, name: "rpm" | "tpm") {
  const limit = bounds[name];
  return limit === undefined ? [] : [{ name, limit }];
}

/** Ends the wait of a request. Undefined: it is not let in. */
type Waiter = (permit: Permit | undefined) => void;

/** The requests that wait until `tryEnter` lets them in, by turns of their accounts. */
function createQueue(clock: Clock, tryEnter: () => Entered) {
  /** By account, in the order of their turns. */
  const queues = new Map<string, Waiter[]>();
  let wakeUp: Timer | undefined;

  /** Lets in as many as there is room for. */
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
