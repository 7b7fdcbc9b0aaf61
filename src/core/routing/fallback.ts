// Makes attempts at one request until a model has replied: retries the same model after a temporary
// failure, then asks the next candidate of the alias. contract.md "Attempts" and "Commit point",
// wire.md "Provider errors". After the first content the model does not change.
import type { Clock } from "../clock.ts";
import { ClientGone, type Cancel } from "../http/cancel.ts";
import type { AttemptRecord } from "../ledger/ledger.ts";
import { Meter, NO_USAGE, type MeterReading } from "../ledger/meter.ts";
import { costOf, type Price } from "../ledger/price.ts";
import type { FinishReason, Part } from "../openai/parts.ts";
import type { ChatRequest } from "../openai/request.ts";
import { ProviderError } from "../providers/provider-error.ts";
import type { RequestContext, Serving } from "./attempt.ts";
import type { Pass } from "./breaker.ts";
import { attemptOutcome, errorFields, toClientError, type FailedAttempt } from "./failure.ts";
import type { Model } from "./model.ts";

/** The state of a request at the providers when it ends, for the ledger. */
export interface RequestProgress {
  /** The model that served, else the last that was asked, else the first candidate. */
  readonly model: Model;
  /** In the order in which they were made. Empty: no provider was asked. */
  readonly attempts: readonly AttemptRecord[];
  /** When the model began to reply, by the monotonic clock. Undefined: it did not. */
  readonly begunAt: number | undefined;
  /** The tokens that are billed. An attempt that failed before it began costs nothing. */
  readonly reading: MeterReading;
  /** The price of these tokens. Undefined: they cost nothing. */
  readonly price: Price | undefined;
  /** Their cost, in pico-units of the currency. */
  readonly cost: bigint;
  /** As Settlement.notes. */
  readonly notes?: readonly string[] | undefined;
  /** As Settlement.recovery. */
  readonly recovery?: string | undefined;
  /** Null: no model finished a reply. */
  readonly finishReason: FinishReason | null;
}

/** A request without a complete reply. */
export class CompletionError extends Error {
  readonly progress: RequestProgress;
  /**
   * The reason of the cancellation if the request was cancelled. An ApiError for the client if no
   * model began a reply. A ProviderError if a reply broke off. Anything else is a bug.
   */
  readonly error: unknown;
  constructor(progress: RequestProgress, error: unknown) {
    super("the request was not completed", { cause: error });
    this.progress = progress;
    this.error = error;
  }
}

/**
 * Takes a batch of parts from a model. The promise, if there is one, resolves when there is room
 * for more.
 */
export type Deliver = (parts: readonly Part[], serving: Serving) => Promise<unknown> | undefined;

/** Completes a request: as completeWithFallback. */
export type Complete = typeof completeWithFallback;

/** The error of an attempt on a pooled connection that the provider had already closed. */
const STALE_CONNECTION = new ProviderError("upstream_error", "the pooled connection was closed");

/** The progress of a request that no model has begun to answer. */
export const notStarted = (model: Model): RequestProgress => ({
  model,
  attempts: [],
  begunAt: undefined,
  reading: NO_USAGE,
  price: model.priceOf(NO_USAGE.usage),
  cost: 0n,
  finishReason: null,
});

/**
 * Asks the candidates in their order, and delivers the reply of the first that begins one. Throws a
 * CompletionError.
 */
export async function completeWithFallback(
  chat: ChatRequest,
  candidates: readonly Model[],
  deliver: Deliver,
  context: RequestContext,
): Promise<RequestProgress> {
  const { cancel, clock, endsAt, remaining: choose = (models) => models } = context;
  const attempts: AttemptRecord[] = [];
  const failures: FailedAttempt[] = [];
  let progress = notStarted(candidates[0]!);
  let remaining = candidates;
  let retries = 0;
  while (remaining.length > 0) {
    const model = remaining[0]!;
    const others = remaining.slice(1);
    const pass = model.enter();
    let wait = Infinity;
    if (pass) {
      const result = await tryOnce(chat, { model, others, pass, attempts }, deliver, context);
      progress = result.progress;
      if (result.error === undefined) return progress;
      const error = requireRecoverable(result.error, progress, chat.model, context);
      failures.push({ model, error });
      wait = waitBefore(error, model, retries);
      // On a retry, `failures` already holds the model's real error.
    } else if (retries === 0) failures.push({ model, error: breakerError(model) });

    // Retry the model if there is time and its breaker is still closed. Otherwise ask the next.
    if (clock.monotonic() + wait < endsAt && model.status().state === "closed") {
      await pause(wait, clock, cancel);
      if (cancel.aborted) throw new CompletionError(progress, cancel.reason);
      retries += 1;
    } else {
      remaining = choose(others, failures);
      retries = 0;
    }
  }
  throw new CompletionError(progress, toClientError(chat.model, failures));
}

/** The error of an attempt that the model's breaker did not permit. */
function breakerError(model: Model): ProviderError {
  const { state, retryMs: retryAfterMs } = model.status();
  if (state !== "closed") return new ProviderError("model_unavailable", "its breaker is open");
  return new ProviderError("model_overloaded", "its provider asked for a pause", { retryAfterMs });
}

/** A model whose turn it is, with the candidates `others` that remain after it. */
type Turn = Pick<Serving, "model" | "others"> & { pass: Pass; attempts: AttemptRecord[] };

/**
 * Makes one attempt, measures it, and reports its end to the breaker. Adds its record to
 * `attempts`, and another for each time that the transport sent the request again. `error`
 * undefined: the reply is complete.
 */
function tryOnce(
  chat: ChatRequest,
  { model, others, pass, attempts }: Turn,
  deliver: Deliver,
  context: RequestContext,
): Promise<{ progress: RequestProgress; error: unknown }> {
  const { clock, report, cancel } = context;
  const isFirst = attempts.length === 0;
  // An estimate must not exceed the tokens that the hold pays for.
  const most = Math.min(chat.maxTokens ?? Infinity, model.traits.max_output_tokens ?? Infinity);
  const meter = new Meter(chat, model.provider.countMedia, most);
  const serving: Serving = { model, others, meter, resent, usesKey };
  let key: string | undefined;
  let startedAt = clock.monotonic();
  let begunAt: number | undefined;

  function record(error: unknown): void {
    const endedAt = clock.monotonic();
    const { outcome, ...detail } = attemptOutcome(error);
    const attempted: AttemptRecord = {
      model: model.name,
      provider: model.provider.name,
      outcome,
      duration_ms: Math.round(endedAt - startedAt),
      ...(key !== undefined && { key }),
      ...detail,
    };
    attempts.push(attempted);
    for (const observer of context.observers) observer.attempted?.(attempted);
    startedAt = endedAt;
  }

  /** Neither the breaker nor max_retries counts these: the failure does not concern the model. */
  function resent(error = STALE_CONNECTION): void {
    meter.hasPrompt = false;
    record(error);
    if (error === STALE_CONNECTION)
      report("stale_connection", model, { level: "info", code: error.code, detail: error.message });
    else report("attempt_failed", model, { ...errorFields(error), key });
  }

  function usesKey(end: string): void {
    key = end;
  }

  /** The first call is the commit point. */
  function take(parts: readonly Part[]): Promise<unknown> | undefined {
    if (begunAt === undefined) {
      pass.began();
      begunAt = clock.monotonic();
    }
    return deliver(parts, serving);
  }

  function conclude(error: unknown) {
    const { connect_ms, total_ms } = model.provider.timeouts;
    // A request that was not sent waited for a connection. Where connect_ms could not have ended
    // that wait, it counts as the provider's silence.
    const wasTried = meter.hasPrompt || total_ms <= connect_ms;
    record(error);
    if (error === undefined) pass.completed();
    else if (isEvidence(error, cancel, isFirst && begunAt === undefined && wasTried))
      pass.failed(error);
    else pass.dropped(error instanceof ProviderError ? error.answer : undefined);
    // An attempt that failed before it began is not billed, unless the client left: the provider
    // may still process the prompt.
    if (begunAt === undefined && !(error instanceof ClientGone))
      return { progress: { ...notStarted(model), attempts }, error };
    const reading = meter.usage();
    const price = model.priceOf(reading.usage);
    const cost = costOf(reading.usage, price);
    const finishReason = meter.finishReason();
    return { progress: { model, attempts, begunAt, reading, price, cost, finishReason }, error };
  }

  return context.attempt(chat, serving, take, context).then(() => conclude(undefined), conclude);
}

/**
 * Whether an attempt's error counts against its provider. If the request was cancelled, it counts
 * only if total_ms ran out and this was the first attempt, whose provider had the request, or could
 * have had it, and sent no content (`wasSilent`).
 */
function isEvidence(error: unknown, cancel: Cancel, wasSilent: boolean): error is ProviderError {
  if (!(error instanceof ProviderError) || !error.countsForBreaker) return false;
  return !cancel.aborted || (wasSilent && cancel.reason instanceof ProviderError);
}

/**
 * Returns the error if another attempt may follow it, else throws a CompletionError. `requested`:
 * the model that the client named.
 */
function requireRecoverable(
  error: unknown,
  progress: RequestProgress,
  requested: string,
  { cancel, report }: RequestContext,
): ProviderError {
  const { model, begunAt } = progress;
  if (cancel.aborted || begunAt !== undefined || !(error instanceof ProviderError))
    throw new CompletionError(progress, error);
  report("attempt_failed", model, { ...errorFields(error), key: progress.attempts.at(-1)?.key });
  // Other models would refuse the request too, but a prompt that is too long for one may fit them.
  if (error.blame === "client" && error.code !== "context_length_exceeded")
    throw new CompletionError(progress, toClientError(requested, [{ model, error }]));
  return error;
}

/**
 * Milliseconds before the same model is asked again. Infinity: it is not asked again, because it
 * would fail again or the wait would be too long.
 */
function waitBefore(
  { blame, code, detail: { retryAfterMs, permanent } }: ProviderError,
  model: Model,
  retries: number,
): number {
  const { max_retries, backoff_ms, max_wait_ms } = model.provider.retry;
  if (retries >= max_retries || blame !== "provider" || permanent) return Infinity;
  if (code === "upstream_timeout") return Infinity; // Do not wait for another timeout.
  if (retryAfterMs !== undefined) return retryAfterMs <= max_wait_ms ? retryAfterMs : Infinity;
  return Math.min(max_wait_ms, backoff_ms * 2 ** retries * (0.5 + Math.random() / 2));
}

/** Resolves after `ms`, or when `cancel` is aborted. */
function pause(ms: number, clock: Clock, cancel: Cancel): Promise<void> {
  return new Promise((resolve) => {
    const timer = clock.after(ms, resolve);
    cancel.onAbort(() => {
      timer.cancel();
      resolve();
    });
  });
}
