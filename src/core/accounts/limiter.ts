// Rate and concurrency limits: an exact sliding window. In any 60 seconds at most `rpm` requests
// are admitted, without a burst at a window's edge. A rejected request costs nothing, even if only
// one of its limits rejects it. A window is a list of admission times. At most half of them have
// expired, and a window without a current one is dropped. This limiter counts for one process.

export const WINDOW_MS = 60_000;

/** The names of the limits of an account and of a key: `account acme`, `key key_...`. */
export const accountLimitName = (account: string): string => `account ${account}`;
export const keyLimitName = (keyId: string): string => `key ${keyId}`;

/** A limit that a request falls under: the account's, or the key's. */
export interface Limit {
  /** Names its window. */
  readonly name: string;
  /** Requests per minute; null: unlimited; 0: none. */
  readonly rpm: number | null;
}

/**
 * A request to the limiter: to be admitted under all limits, and to get one of the account's
 * concurrency slots.
 */
export interface AdmissionRequest {
  /** Its concurrency slots are counted under this name. */
  readonly account: string;
  /** The account's and the key's. Each that is finite must have room. */
  readonly limits: readonly Limit[];
  /** The account's concurrency slots; null: any number. */
  readonly maxInFlight: number | null;
}

/** The result, with the figures of the limit that has the least room left. */
export interface AdmissionDecision {
  /** False: nothing was counted, and no slot was taken. */
  readonly admitted: boolean;
  /** Requests per minute; null: none of the limits is finite. */
  readonly limit: number | null;
  /** Requests that it still has room for. */
  readonly remaining: number;
  /** Milliseconds until the limit next has room. */
  readonly resetMs: number;
  /** When it was counted, by the limiter's own clock. Undefined: nothing was counted. */
  readonly countedAt?: number | undefined;
  /**
   * The reason for a rejection by other than a limit of requests per minute: no slot was free, or
   * the store of the limits is unreachable.
   */
  readonly rejectedBy?: "in_flight" | "store";
}

export interface Limiter {
  /** Admits a request under all of its limits and gives it a slot, or does neither. */
  admit(request: AdmissionRequest): AdmissionDecision | Promise<AdmissionDecision>;
  /** Frees the slot of a request that was admitted. */
  release(request: AdmissionRequest): void;
  /** Takes back what an admitted request counts under its limits. It keeps its slot. */
  refund(request: AdmissionRequest, decision: AdmissionDecision): void;
  /** How many requests of the last 60 seconds count against the limit of this name. */
  used(name: string): number;
}

/** The limiter of one process, which decides at once. */
export interface LocalLimiter extends Limiter {
  /** As Limiter.admit, never as a promise. */
  admit(request: AdmissionRequest): AdmissionDecision;
}

/** The state of one finite limit. */
export interface WindowState {
  /** Requests per minute, as in its Limit. */
  readonly rpm: number;
  /** The admissions that count in its window, this request included if it was admitted. */
  readonly count: number;
  /** Milliseconds until the limit next has room. */
  readonly resetMs: number;
}

/**
 * The decision, with the figures of the limit that has the least left. If several have equally
 * little, those of the one that has room again last.
 */
export function decide(admitted: boolean, windows: readonly WindowState[]): AdmissionDecision {
  const [tightest] = windows
    .map(({ rpm: limit, count, resetMs }) => {
      return { limit, remaining: Math.max(0, limit - count), resetMs };
    })
    .sort((one, other) => one.remaining - other.remaining || other.resetMs - one.resetMs);
  return { admitted, limit: null, remaining: Infinity, resetMs: 0, ...tightest };
}

/** The admissions that count against one limit. */
function createWindow() {
  /** Admission times, oldest first. Those before the index `first` do not count any more. */
  let times: number[] = [];
  let first = 0;
  return {
    /** Drops admissions that have expired at `time`. To be called before the other functions. */
    prune(time: number): void {
      while (first < times.length && times[first]! + WINDOW_MS <= time) first += 1;
      // The list is copied only when more than half of it is old, so that an admission takes
      // constant time on average.
      if (first * 2 <= times.length) return;
      times = times.slice(first);
      first = 0;
    },
    count: (): number => times.length - first,
    add: (time: number): number => times.push(time),
    /** Removes one admission of this time, if it still counts. */
    remove(time: number): void {
      const at = times.lastIndexOf(time);
      if (at >= first) times.splice(at, 1);
    },
    /** Milliseconds from `time` until it next has room under `rpm`. */
    resetMs(rpm: number, time: number): number {
      // A limit that a new configuration has lowered is full until enough of its admissions are
      // old. A limit of 0 never gets room.
      const excess = Math.max(0, times.length - first - rpm);
      return (times[first + excess] ?? time) + WINDOW_MS - time;
    },
  };
}

/** `now` must never go back: a monotonic clock in milliseconds. */
export function createLimiter(now: () => number): LocalLimiter {
  const windows = new Map<string, ReturnType<typeof createWindow>>();
  /** The number of taken slots, by account, for accounts with a bound. */
  const slots = new Map<string, number>();
  let sweepAt = 0;

  function windowOf(name: string, time: number) {
    const window = windows.get(name) ?? createWindow();
    window.prune(time);
    return window;
  }

  /** Once a minute, windows in which nothing counts are dropped. */
  function sweep(time: number): void {
    if (time < sweepAt) return;
    for (const name of windows.keys()) if (windowOf(name, time).count() === 0) windows.delete(name);
    sweepAt = time + WINDOW_MS;
  }

  return {
    admit({ account, limits, maxInFlight }) {
      const taken = slots.get(account) ?? 0;
      if (maxInFlight !== null && taken >= maxInFlight)
        return { ...decide(false, []), rejectedBy: "in_flight" };
      const time = now();
      sweep(time);
      const finite = limits.flatMap(({ name, rpm }) =>
        rpm === null ? [] : [{ name, rpm, window: windowOf(name, time) }],
      );
      const admitted = finite.every(({ rpm, window }) => window.count() < rpm);
      if (admitted && maxInFlight !== null) slots.set(account, taken + 1);
      const states = finite.map(({ name, rpm, window }): WindowState => {
        if (admitted) {
          window.add(time);
          windows.set(name, window);
        }
        return { rpm, count: window.count(), resetMs: window.resetMs(rpm, time) };
      });
      return { ...decide(admitted, states), countedAt: admitted ? time : undefined };
    },
    release({ account, maxInFlight }) {
      if (maxInFlight === null) return;
      slots.set(account, Math.max(0, (slots.get(account) ?? 0) - 1));
    },
    refund({ limits }, { countedAt = NaN }) {
      for (const { name } of limits) windows.get(name)?.remove(countedAt);
    },
    used: (name) => windowOf(name, now()).count(),
  };
}
