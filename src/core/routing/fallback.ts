// All attempts at one request, until a provider has answered: the same model again after a passing fault, then, for an alias, the
// next candidate. DESIGN.md "Attempts" and "Commit point", WIRE.md 4.3. After the first real delta there is no way back.
import { setTimeout as pause } from "node:timers/promises";
import type { AttemptRecord } from "../ledger/ledger.ts";
import { createMeter, type Meter } from "../ledger/meter.ts";
import { ProviderError } from "../providers/provider-error.ts";
import { ClientGone } from "../http/cancel.ts";
import type { ChatRequest } from "../openai/request.ts";
import { attempt, type AttemptOptions, type Deliver } from "./attempt.ts";
import { withMoreRoom, type Model } from "./catalog.ts";
import {
  attemptDetail,
  faultWords,
  outcomeOf,
  toClientError,
  type FailedAttempt,
} from "./failure.ts";

/** How far a request has come, for the books, whenever it ends: its attempts so far, the model that is asked or that serves, when this
 * one began to answer, and what it has said; an attempt that fails before it has begun costs nothing. */
export interface Tally {
  readonly attempts: AttemptRecord[];
  model: Model;
  meter: Meter;
  begunAt?: number;
}
const SHUT = new ProviderError("model_unavailable", "its breaker is open"); // what stands for the attempt at a model that was not asked
/** What stands for an attempt on a pooled connection that the provider had already closed. */
const STALE = new ProviderError(
  "upstream_error",
  "the provider had closed the pooled connection; the request is sent again on a new one",
);
/** Tries the candidates in their order and delivers the answer of the first that begins one; throws the ApiError that the client is to
 * see if none does, and what went wrong if it breaks off. */
export async function completeWithFallback(
  chat: ChatRequest,
  candidates: readonly Model[],
  tally: Tally,
  deliver: Deliver,
  options: Omit<AttemptOptions, "resent">,
): Promise<void> {
  const { cancel, tell, endsAt } = options;
  const failures: FailedAttempt[] = [];
  let remaining = candidates;
  while (remaining.length > 0) {
    const model = remaining[0]!;
    for (let retries = 0; ; retries += 1) {
      const pass = model.enter();
      if (!pass && retries === 0) failures.push({ model, fault: SHUT });
      if (!pass) break;
      let startedAt = performance.now();
      tally.model = model;
      /** For the books; `thrown` is undefined where the attempt succeeded. */
      const record = (thrown: unknown): void => {
        const duration_ms = Math.round(performance.now() - startedAt);
        tally.attempts.push({
          model: model.name,
          provider: model.provider.name,
          outcome: outcomeOf(thrown),
          duration_ms,
          ...attemptDetail(thrown),
        });
      };
      /** A closed pooled connection says nothing of the model: neither the breaker nor max_retries counts it. */
      const resent = (): void => {
        record(STALE);
        tell("stale_connection", model, { level: "info", code: STALE.code, detail: STALE.message });
        startedAt = performance.now();
      };
      const begun: Deliver = (parts) => {
        if (tally.begunAt === undefined) pass.answered(false);
        tally.begunAt ??= performance.now();
        return deliver(parts);
      };
      const error: unknown = await attempt(chat, model, tally.meter, begun, {
        ...options,
        resent,
      }).catch((thrown: unknown) => thrown);
      record(error);
      if (error === undefined) return pass.answered(true);
      // After `cancel` only a provider is to blame that had all of the time, and was silent.
      const silent =
        tally.begunAt === undefined &&
        cancel.reason instanceof ProviderError &&
        failures.every(({ fault }) => fault === SHUT);
      const faulty =
        error instanceof ProviderError && error.countsForBreaker && (silent || !cancel.aborted);
      const answer = error instanceof ProviderError ? error.answer : undefined;
      const atOnce = error instanceof ProviderError && error.detail.operator === "key";
      if (faulty) pass.failed(`${error.code}: ${error.message}`, atOnce, answer);
      else pass.dropped(answer);
      if (tally.begunAt !== undefined) throw error;
      if (!(error instanceof ClientGone)) tally.meter = createMeter(chat);
      if (!(error instanceof ProviderError) || cancel.aborted) throw error;
      failures.push({ model, fault: error });
      tell("attempt_failed", model, faultWords(error));
      if (error.blame === "client" && error.code !== "context_length_exceeded")
        throw toClientError(chat.model, failures.slice(-1));
      const wait = waitBefore(error, model, retries);
      if (performance.now() + wait >= endsAt || model.status().state !== "closed") break;
      await pause(wait, undefined, { signal: cancel.signal });
    }
    remaining = nextCandidates(remaining.slice(1), failures);
  }
  throw toClientError(chat.model, failures);
}

/** The candidates that are still to be asked, in their order; once the prompt was too long for a model, only those that may have
 * more room. */
function nextCandidates(
  remaining: readonly Model[],
  failures: readonly FailedAttempt[],
): readonly Model[] {
  const full = failures
    .filter(({ fault }) => fault.code === "context_length_exceeded")
    .map(({ model }) => model);
  return full.length > 0 ? withMoreRoom(remaining, full) : remaining;
}

/** How long to wait before the same model is asked again; Infinity: not at all. A silent provider has had its time, one that
 * refuses this gateway will do so again, and one that wants longer than max_wait_ms is left to the next candidate. */
function waitBefore(
  { blame, code, detail: { retryAfterMs, permanent } }: ProviderError,
  model: Model,
  retries: number,
): number {
  const { max_retries, backoff_ms, max_wait_ms } = model.provider.retry;
  if (retries >= max_retries || blame !== "provider" || code === "upstream_timeout" || permanent)
    return Infinity;
  if (retryAfterMs !== undefined) return retryAfterMs <= max_wait_ms ? retryAfterMs : Infinity;
  return Math.min(max_wait_ms, backoff_ms * 2 ** retries * (0.5 + Math.random() / 2));
}
