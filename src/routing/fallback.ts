// All attempts at one request, until a provider has begun to answer: the same model again after a passing fault, then, for
// an alias, the next candidate. DESIGN.md "Attempts" and "Commit point", WIRE.md 4.3. All of it is before the first real
// delta, where another attempt can still hide a failure; what follows belongs to the client, and there is no way back.
import { setTimeout as pause } from "node:timers/promises";
import { ProviderFault } from "../dialects/dialect.ts";
import type { ChatRequest } from "../protocol/chat-request.ts";
import type { Part } from "../protocol/reply.ts";
import { attempt, type AttemptOptions } from "./attempt.ts";
import type { Pass } from "./breaker.ts";
import type { Model } from "./catalog.ts";
import { clientError, verdict, type FailedAttempt } from "./failure.ts";

export interface FallbackOptions extends AttemptOptions {
  /** Told of all that comes up to and with the first delta, whatever becomes of the attempt. */
  readonly heard: (model: Model, parts: readonly Part[]) => void;
  /** Told of every attempt at its end; without an error it was served to the end. */
  readonly attempted: (model: Model, durationMs: number, error?: unknown) => void;
  /** Told of those that another attempt may hide. */
  readonly failed: (attempt: FailedAttempt) => void;
  /** Milliseconds that are left of the request's whole time. */
  readonly timeLeft: () => number;
}

/** An answer that has begun: `first` has come already, up to and with the first delta; `batches` is still to come. */
export type Begun = Awaited<ReturnType<typeof begin>>;
/** Tries the candidates in their order; throws the ApiError that the client is to see if none begins to answer. */
export async function begin(chat: ChatRequest, candidates: readonly Model[], options: FallbackOptions) {
  const { signal } = options;
  const failures: FailedAttempt[] = [];
  const shut: Model[] = []; // not asked, because the breaker is open
  for (const model of candidates) {
    if (!hasMoreRoom(model, failures)) continue;
    for (let retries = 0; ; retries += 1) {
      const pass = model.enter();
      if (!pass) {
        if (retries === 0) shut.push(model);
        break;
      }
      const startedAt = performance.now();
      const attempted = (error?: unknown) => options.attempted(model, performance.now() - startedAt, error);
      const batches = attempt(chat, model, options);
      try {
        const first = await untilCommitted(batches, (parts) => options.heard(model, parts));
        pass.begun();
        /** To be told how it ended: with an error or, if the reader has gone, the signal's reason; without one: well. */
        const ended = (error?: unknown): void => {
          attempted(error);
          if (error === undefined) pass.succeeded();
          else conclude(pass, error, signal);
        };
        return { model, first, batches, ended };
      } catch (error) {
        attempted(error);
        // A provider that had all of the request's time, and was silent, is to blame for it.
        if (failures.length === 0 && signal.reason instanceof ProviderFault) pass.failed(signal.reason.message);
        else conclude(pass, error, signal);
        if (!(error instanceof ProviderFault) || signal.aborted) throw error;
        const failure = { model, fault: error };
        failures.push(failure);
        options.failed(failure);
        if (error.blame === "client" && error.code !== "context_length_exceeded") throw clientError(error, chat.model, model);
        const wait = retries < model.provider.retry.max_retries ? waitBefore(error, model, retries) : undefined;
        if (wait === undefined || wait >= options.timeLeft() || model.status().state !== "closed") break;
        await pause(wait, undefined, { signal });
      }
    }
  }
  throw verdict(chat.model, failures, shut);
}

/** Reads up to and with the first delta, or to the end of a reply that has none. A whole reply is one batch. */
async function untilCommitted(batches: AsyncGenerator<Part[], void, undefined>, heard: (parts: readonly Part[]) => void): Promise<Part[][]> {
  const first: Part[][] = [];
  for (;;) {
    const { done, value } = await batches.next();
    if (done) return first;
    first.push(value);
    heard(value);
    if (value.some(({ type }) => type !== "usage" && type !== "finish")) return first;
  }
}

/** What the breaker learns of an attempt that failed. */
function conclude(pass: Pass, error: unknown, signal: AbortSignal): void {
  if (signal.aborted || !(error instanceof ProviderFault) || error.blame === "client") pass.dropped();
  else pass.failed(`${error.code}: ${error.message}`, error.detail.operator === "key");
}

/** After a context that was too long only a model with more room is of use. */
function hasMoreRoom(model: Model, failures: readonly FailedAttempt[]): boolean {
  const tooSmall = failures.filter(({ fault }) => fault.code === "context_length_exceeded");
  return tooSmall.every((each) => (model.contextTokens ?? 0) > (each.model.contextTokens ?? Infinity));
}

/** How long to wait before the same model is asked again; undefined: not at all. A silent provider has had its time, one that
 * refuses this gateway will do so again, and one that wants longer than max_wait_ms is left to the next candidate. */
function waitBefore(fault: ProviderFault, model: Model, retries: number): number | undefined {
  const { backoff_ms, max_wait_ms } = model.provider.retry;
  if (fault.blame !== "provider" || fault.code === "upstream_timeout") return undefined;
  const { retryAfterMs } = fault.detail;
  if (retryAfterMs !== undefined) return retryAfterMs <= max_wait_ms ? retryAfterMs : undefined;
  return Math.min(max_wait_ms, backoff_ms * 2 ** retries * (0.5 + Math.random() / 2));
}
