// A circuit breaker for each model. After repeated failures no request is sent to the model for a
// while. Then one request at a time probes it, until one gets a reply. contract.md "Breaker". Only
// failures of the provider count. An overload with a stated retry time does not: every process
// skips the model until that time.
import type { Clock } from "../../../core/clock.ts";
import type { Installer } from "../../../core/extension/installer.ts";
import { slots } from "../../../core/extension/places.ts";
import type { ProviderAnswer } from "../../../core/providers/provider-error.ts";
import type { Breaker, Pass } from "../../../core/routing/breaker.ts";
import { sharedPauses, type Pause } from "../pauses/index.ts";

export function install(gateway: Installer): void {
  gateway.fill(slots.breaker, (context) => {
    const pauseOf = sharedPauses(context, "breaker");
    return (identity) => createBreaker(context.clock, pauseOf(identity));
  });
}

/** The retry time that other clients get during a probe, because its duration is unknown. */
const PROBE_RETRY_MS = 1_000;

/** Creates a closed breaker. `pause`: the one that the model's provider asks for. */
export function createBreaker(clock: Clock, pause: Pause): Breaker {
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

  /** Closes the circuit, unless it has opened since `openingsBefore` was read. */
  function close(openingsBefore: number, failuresLeft: number): void {
    if (openings !== openingsBefore) return;
    openedAt = undefined;
    isProbing = false;
    failures = failuresLeft;
  }

  /** The pass of an attempt. Once the circuit has opened again, it no longer changes the state. */
  const createPass = (openingsBefore: number, threshold: number): Pass => ({
    began() {
      // While the breaker is closed, only a complete reply resets the count of failures.
      if (openedAt === undefined) return;
      // Until the reply is complete, one more failure opens the circuit again.
      close(openingsBefore, threshold - 1);
    },
    completed: () => close(openingsBefore, 0),
    failed(error) {
      lastFault = `${error.code}: ${error.message}`;
      lastAnswer = error.answer ?? null;
      if (openings !== openingsBefore) return;
      const { retryAfterMs = 0 } = error.detail;
      if (error.code === "model_overloaded" && retryAfterMs > 0) {
        pause.begin(retryAfterMs);
        isProbing = false;
        return;
      }
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
      if (pause.left() > 0) return undefined;
      if (openedAt !== undefined) {
        if (isProbing || clock.monotonic() < openedAt + settings.cooldown_ms) return undefined;
        isProbing = true;
      }
      return createPass(openings, settings.failures);
    },
    status({ cooldown_ms }) {
      const pauseMs = pause.left();
      if (openedAt === undefined)
        return { state: "closed", failures, retryMs: pauseMs, lastFault, lastAnswer };
      const least = isProbing ? PROBE_RETRY_MS : pauseMs;
      const retryMs = Math.max(least, openedAt + cooldown_ms - clock.monotonic());
      return { state: isProbing ? "probing" : "open", failures, retryMs, lastFault, lastAnswer };
    },
  };
}
