// One circuit breaker a model: a provider that fails again and again is left alone for a while, then tried by one request
// at a time until one begins to answer. DESIGN.md "Breaker". Only faults of the provider count; a client's never do.
import type { Config } from "../config/schema.ts";
import type { ProviderAnswer } from "../providers/provider-error.ts";

const PROBE_RETRY_MS = 1_000; // while a probe is on its way nobody knows how long it takes; others are told to come back soon
export const BREAKER_STATES = ["closed", "probing", "open"] as const; // from the best to the worst
export type Breaker = ReturnType<typeof createBreaker>;

/** `now` is a monotonic clock in milliseconds. */
export function createBreaker(now: () => number) {
  let failures = 0; // in a row
  let openedAt: number | undefined; // undefined: closed
  let probing = false;
  let lastFault: string | null = null;
  let lastAnswer: ProviderAnswer | null = null; // the last one with which an attempt failed, whoever is to blame
  let openings = 0; // what an attempt finds out after another opening is old news, and changes nothing

  return {
    /** Leave for one attempt, until it is done, has failed or was dropped; undefined if it is open, and not this request's turn to probe. */
    enter({ failures: limit, cooldown_ms }: Config["breaker"]) {
      const probe = openedAt !== undefined;
      if (probe && (probing || now() < openedAt! + cooldown_ms)) return undefined;
      probing = probe;
      const entered = openings;
      return {
        /** The provider has begun to answer: a probe lets the others in again, though a fault before it is done still shuts them out. */
        answered(done: boolean): void {
          if (entered === openings && (done || openedAt !== undefined))
            [openedAt, probing, failures] = [undefined, false, done ? 0 : limit - 1];
        },
        /** `atOnce`: there is no sense in trying again soon (a refused key). */
        failed(reason: string, atOnce = false, answer?: ProviderAnswer): void {
          lastFault = reason;
          lastAnswer = answer ?? null; // the one that belongs to this fault
          if (entered !== openings) return;
          failures += 1;
          if (!atOnce && failures < limit && openedAt === undefined) return;
          [openedAt, probing, openings] = [now(), false, openings + 1];
        },
        /** Ended with no word on the provider: the client left, or its request was at fault. */
        dropped(answer?: ProviderAnswer): void {
          lastAnswer = answer ?? lastAnswer;
          if (entered === openings) probing = false;
        },
      };
    },
    /** `failures` are those in a row; `retryMs`: when to ask again, 0 if an attempt would be let through now. */
    status({ cooldown_ms }: Config["breaker"]) {
      if (openedAt === undefined)
        return { state: "closed", failures, retryMs: 0, lastFault, lastAnswer } as const;
      const retryMs = Math.max(probing ? PROBE_RETRY_MS : 0, openedAt + cooldown_ms - now());
      return {
        state: probing ? "probing" : "open",
        failures,
        retryMs,
        lastFault,
        lastAnswer,
      } as const;
    },
  };
}
