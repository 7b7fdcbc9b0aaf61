// One circuit breaker a model: a provider that fails again and again is left alone for a while, then tried by one request
// at a time until one begins to answer. DESIGN.md "Breaker". Only faults of the provider count; a client's never do.

export interface BreakerRules {
  /** Faults in a row that open it. */
  readonly failures: number;
  /** How long an open breaker lets nothing through. */
  readonly cooldown_ms: number;
}

export type BreakerState = "closed" | "open" | "probing";

/** Leave to make one attempt; one of `succeeded`, `failed` and `dropped` ends it. */
export interface Pass {
  /** The provider has begun to answer: a probe lets the others in again, though a fault now would still shut them out. */
  begun(): void;
  succeeded(): void;
  /** `atOnce`: there is no sense in trying again soon (a refused key). */
  failed(reason: string, atOnce?: boolean): void;
  /** Ended with no word on the provider: the client left, or its request was at fault. */
  dropped(): void;
}

export interface Breaker {
  /** Leave for an attempt; undefined while the breaker is open and it is not this request's turn to probe. */
  enter(rules: BreakerRules): Pass | undefined;
  /** `retryMs`: when to ask again; 0 if an attempt would be let through now. */
  status(rules: BreakerRules): BreakerStatus;
}

export interface BreakerStatus {
  readonly state: BreakerState;
  /** Faults in a row. */
  readonly failures: number;
  readonly retryMs: number;
  readonly lastFault: string | null;
}

/** While a probe is on its way nobody knows how long it takes; others are told to come back soon. */
const PROBE_RETRY_MS = 1_000;

/** `now` is a monotonic clock in milliseconds. */
export function createBreaker(now: () => number): Breaker {
  let failures = 0;
  let openedAt: number | undefined; // undefined: closed
  let probing = false;
  let lastFault: string | null = null;
  let openings = 0; // what an attempt finds out after another opening is old news, and changes nothing

  return {
    enter({ failures: limit, cooldown_ms }) {
      const probe = openedAt !== undefined;
      if (probe && (probing || now() < openedAt! + cooldown_ms)) return undefined;
      probing = probe;
      const entered = openings;
      return {
        begun() {
          if (entered === openings && openedAt !== undefined) [openedAt, probing, failures] = [undefined, false, limit - 1];
        },
        succeeded() {
          if (entered === openings) [openedAt, probing, failures] = [undefined, false, 0];
        },
        failed(reason, atOnce = false) {
          lastFault = reason;
          if (entered !== openings) return;
          failures += 1;
          if (!atOnce && failures < limit && openedAt === undefined) return;
          [openedAt, probing] = [now(), false];
          openings += 1;
        },
        dropped() {
          if (entered === openings) probing = false;
        },
      };
    },
    status({ cooldown_ms }) {
      if (openedAt === undefined) return { state: "closed", failures, retryMs: 0, lastFault };
      const retryMs = Math.max(probing ? PROBE_RETRY_MS : 0, openedAt + cooldown_ms - now());
      return { state: probing ? "probing" : "open", failures, retryMs, lastFault };
    },
  };
}
