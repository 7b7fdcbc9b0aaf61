// The interface of a circuit breaker for one model: it permits attempts, and reports its state.
// contract.md "Breaker". An extension brings one (extensions/routing/breaker); without it every
// model is always asked.
import type { ProviderAnswer, ProviderError } from "../providers/provider-error.ts";

export interface BreakerSettings {
  /** The number of consecutive failures that opens the breaker. */
  readonly failures: number;
  /** Milliseconds until an open breaker lets a probe through. */
  readonly cooldown_ms: number;
}

/** From the best to the worst. */
export const BREAKER_STATES = ["closed", "probing", "open"] as const;

export interface BreakerStatus {
  /**
   * Closed: every attempt passes. Probing: one request tries the model, and no other does. Open:
   * nothing passes until the cooldown is over; then one probe does.
   */
  readonly state: (typeof BREAKER_STATES)[number];
  /** Consecutive failures. */
  readonly failures: number;
  /** Milliseconds until the next permitted attempt. 0: one is permitted now. */
  readonly retryMs: number;
  /** The last failure, for the operator. Null: there was none. */
  readonly lastFault: string | null;
  /**
   * The provider's answer at the last failed attempt, also where the client or the operator was to
   * blame. Null: there was none.
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

const ignore = (): void => undefined;
const PASS: Pass = { began: ignore, completed: ignore, failed: ignore, dropped: ignore };

/** Lets every attempt through. */
export const noBreaker: Breaker = {
  enter: () => PASS,
  status: () => ({ state: "closed", failures: 0, retryMs: 0, lastFault: null, lastAnswer: null }),
};
