// A value that expires, such as a token. One renewal serves all waiting requests, and usually ends
// before the value expires, so that no request waits.
import type { Clock } from "../../../core/clock.ts";

/** A value with its expiry. */
export interface Lease<T> {
  readonly value: T;
  /** By the wall clock, in milliseconds. Infinity: it does not expire. */
  readonly expiresAt: number;
}

export interface LeaseCache<T> {
  /** The value. Rejects with what `obtain` rejects with. */
  get(): T | Promise<T>;
  /**
   * Reports that this value was refused. Returns true if `get` will return another one, false if
   * the value was renewed for this reason less than a second ago.
   */
  refuse(value: T): boolean;
}

/** A value is renewed when a fifth of its lifetime is left, or this time if that is longer. */
const LEAST_EARLY_MS = 150;
/** The least time between renewals in the background, after a failed one, and between refusals. */
const LEAST_BETWEEN_MS = 1_000;

/** Calls `failed` for each renewal that failed. */
export function createLeaseCache<T>(
  obtain: () => Promise<Lease<T>>,
  clock: Clock,
  failed: (error: unknown) => void,
): LeaseCache<T> {
  let lease: Lease<T> | undefined;
  let renewAt = 0;
  let renewal: Promise<T> | undefined;
  /** The error of the last renewal, if it failed. */
  let lastError: unknown;
  /** The end of the last renewal, by the monotonic clock. */
  let renewedAt = -Infinity;
  let refusedAt = -Infinity;

  async function renew(): Promise<T> {
    try {
      const obtained = await obtain();
      const now = clock.now();
      lease = obtained;
      renewAt = obtained.expiresAt - Math.max(LEAST_EARLY_MS, (obtained.expiresAt - now) / 5);
      lastError = undefined;
      return obtained.value;
    } catch (error) {
      lastError = error;
      failed(error);
      throw error;
    } finally {
      renewedAt = clock.monotonic();
      renewal = undefined;
    }
  }

  /** Joins the renewal in flight, or starts one. */
  function joinRenewal(): Promise<T> {
    renewal ??= renew();
    return renewal;
  }

  return {
    get() {
      const now = clock.now();
      const mayRenew = clock.monotonic() - renewedAt >= LEAST_BETWEEN_MS;
      if (lease && now < lease.expiresAt) {
        // No request waits for this renewal. Its failure was reported; the value is still valid.
        if (now >= renewAt && mayRenew) joinRenewal().catch(() => undefined);
        return lease.value;
      }
      if (renewal || lastError === undefined || mayRenew) return joinRenewal();
      return Promise.reject(lastError as Error);
    },
    refuse(value) {
      if (lease?.value !== value) return true;
      if (clock.monotonic() - refusedAt < LEAST_BETWEEN_MS) return false;
      refusedAt = clock.monotonic();
      lease = undefined;
      lastError = undefined;
      return true;
    },
  };
}
