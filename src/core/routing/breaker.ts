// A circuit breaker for one model. A provider that fails again and again is left alone for a while.
// Then one request at a time probes it, until one gets a reply. DESIGN.md "Breaker". Only failures
// of the provider count.
import type { Clock } from "../clock.ts";
import type { ProviderAnswer, ProviderError } from "../providers/provider-error.ts";
import type { BreakerSettings } from "./model.ts";

/** From the best to the worst. */
export const BREAKER_STATES = ["closed", "probing", "open"] as const;

export interface BreakerStatus {
  /**
   * Closed: every attempt passes. Probing: one request tries the model, and no other does. Open:
   * nothing passes until the cooldown is over; then one probe does.
   */
  readonly state: (typeof BREAKER_STATES)[number];
  /** Failures in a row. */
  readonly failures: number;
  /** Milliseconds until it is worth asking again. 0: an attempt would be let through now. */
  readonly retryMs: number;
  /** The last failure, for the operator. Null: there was none. */
  readonly lastFault: string | null;
  /**
   * The provider's answer at the last failed attempt, whoever was to blame. Null: there was none.
   */
  readonly lastAnswer: ProviderAnswer | null;
}

/**
 * The permission for one attempt. `began` may be called once; then exactly one of the others ends
 * the attempt.
 */
export interface Pass {
  /** The provider has begun its reply. */
  began(): void;
  /** The provider has completed its reply. */
  completed(): void;
  /** The provider failed. */
  failed(error: ProviderError): void;
  /**
   * The attempt ended without evidence about the provider: the client left, or its request was at
   * fault.
   */
  dropped(answer?: ProviderAnswer): void;
}

export interface Breaker {
  /** A pass for one attempt. Undefined: the breaker is open, and this request is not its probe. */
  enter(settings: BreakerSettings): Pass | undefined;
  /** The state at this moment. Changes nothing. */
  status(settings: BreakerSettings): BreakerStatus;
}

/**
 * How long a probe takes is unknown, so other clients are asked to come back after so many
 * milliseconds.
 */
const PROBE_RETRY_MS = 1_000;

export function createBreaker(clock: Clock): Breaker {
  let failures = 0; // in a row
  let openedAt: number | undefined; // undefined: closed
  let isProbing = false;
  let openings = 0;
  let lastFault: string | null = null;
  let lastAnswer: ProviderAnswer | null = null;

  function open(): void {
    openedAt = clock.monotonic();
    isProbing = false;
    openings += 1;
  }

  /** Closes the circuit, unless it has opened again since. */
  function close(openingsBefore: number, failuresLeft: number): void {
    if (openings !== openingsBefore) return;
    openedAt = undefined;
    isProbing = false;
    failures = failuresLeft;
  }

  /**
   * The pass of an attempt that began after so many openings. It changes nothing once the circuit
   * has opened again.
   */
  const createPass = (openingsBefore: number, threshold: number): Pass => ({
    began() {
      // A closed breaker learns nothing from a mere beginning.
      if (openedAt === undefined) return;
      // Until the reply is complete, one more failure opens the circuit again.
      close(openingsBefore, threshold - 1);
    },
    completed: () => close(openingsBefore, 0),
    failed(error) {
      lastFault = `${error.code}: ${error.message}`;
      lastAnswer = error.answer ?? null;
      if (openings !== openingsBefore) return;
      failures += 1;
      const keyRefused = error.detail.operator === "key"; // trying again soon cannot help
      if (keyRefused || failures >= threshold || openedAt !== undefined) open();
    },
    dropped(answer) {
      lastAnswer = answer ?? lastAnswer;
      if (openings === openingsBefore) isProbing = false;
    },
  });

  return {
    enter(settings) {
      if (openedAt !== undefined) {
        if (isProbing || clock.monotonic() < openedAt + settings.cooldown_ms) return undefined;
        isProbing = true;
      }
      return createPass(openings, settings.failures);
    },
    status({ cooldown_ms }) {
      if (openedAt === undefined)
        return { state: "closed", failures, retryMs: 0, lastFault, lastAnswer };
      const least = isProbing ? PROBE_RETRY_MS : 0;
      const retryMs = Math.max(least, openedAt + cooldown_ms - clock.monotonic());
      return { state: isProbing ? "probing" : "open", failures, retryMs, lastFault, lastAnswer };
    },
  };
}
