// How failed attempts are reported: to the ledger, to the operator, and to the client, who never
// sees the provider's own message. Computes the client's Retry-After after providers' faults.
// errors.md "Provider answers".
import type { AttemptRecord } from "../ledger/ledger.ts";
import { ClientGone } from "../http/cancel.ts";
import { ApiError, toApiError } from "../openai/errors.ts";
import { ProviderError, type ProviderErrorCode } from "../providers/provider-error.ts";
import type { Model } from "./model.ts";

export interface FailedAttempt {
  /** The model that was asked, or passed over because its breaker is open. */
  readonly model: Model;
  /** Why it did not reply. */
  readonly error: ProviderError;
}

type ClientError = readonly [param: string | null, message: string];

/** The assumed duration of an overload, if the provider states none. */
const DEFAULT_RETRY_MS = 5_000;
/** The longest Retry-After that clients obey (wire.md "Rate limit headers"). */
const MAX_RETRY_SECONDS = 60;

/**
 * By code: the request field that is to blame, and the message for the client. `{requested}` is the
 * name that the client sent, `{room}` the size of the largest context window, `{seconds}`
 * Retry-After.
 */
const CLIENT_ERRORS: { readonly [code in ProviderErrorCode]: ClientError } = {
  context_length_exceeded: [
    "messages",
    "The prompt is too long; this model's maximum context length is {room}.",
  ],
  content_filter: ["messages", "The prompt was refused by the model's content filter."],
  upstream_rejected: [null, "The model refused this request as invalid."],
  upstream_timeout: ["model", "The model '{requested}' did not answer in time."],
  upstream_error: ["model", "The model '{requested}' failed before its reply was complete."],
  model_unavailable: ["model", "The model '{requested}' is unavailable at the moment."],
  model_overloaded: [
    "model",
    "The model '{requested}' is overloaded. Retry after {seconds} seconds.",
  ],
};

/** The end of an attempt, as the ledger keeps it. `error` undefined: it succeeded. */
export function attemptOutcome(
  error: unknown,
): Pick<AttemptRecord, "outcome" | "status" | "path" | "detail"> {
  if (error === undefined) return { outcome: "completed" };
  if (error instanceof ClientGone) return { outcome: "cancelled" };
  if (!(error instanceof ProviderError)) return { outcome: toApiError(error).code };
  const { code, answer, message } = error;
  return {
    outcome: code,
    status: answer?.status,
    path: answer?.path,
    detail: answer?.message ?? message,
  };
}

/**
 * The fields of an error in the operator's log. Level "error": only the operator can mend it.
 * Level "warn": it is temporary, or the client's fault.
 */
export const errorFields = ({ code, blame, detail, message, answer }: ProviderError) => ({
  level: blame === "operator" ? "error" : "warn",
  code,
  blame,
  status: detail.status,
  detail: message,
  provider_status: answer?.status,
  provider_path: answer?.path,
  provider_message: answer?.message,
});

/**
 * The error for the client: the code that all models share, else model_unavailable. `requested` is
 * the name that the client sent. The message must not show any other name. Retry-After is the time
 * until the first of the models may serve.
 */
export function toClientError(requested: string, failures: readonly FailedAttempt[]): ApiError {
  const last = [...new Map(failures.map((failure) => [failure.model, failure])).values()];
  // Errors of other models are more useful than "too long for this model".
  const others = last.filter(({ error }) => error.code !== "context_length_exceeded");
  const relevant = others.length > 0 ? others : last;
  const codes = new Set(relevant.map(({ error }) => clientCode(error)));
  const code = codes.size === 1 ? [...codes][0]! : "model_unavailable";
  const seconds = retrySeconds(relevant);
  const room = Math.max(...relevant.map(({ model }) => model.contextTokens ?? 0));
  const [param, message] = CLIENT_ERRORS[code];
  // The client's text comes last, and from a function, so that nothing in it is replaced.
  const text = message
    .replace("{room}", room === 0 ? "smaller" : `${room} tokens`)
    .replace("{seconds}", String(seconds))
    .replace("{requested}", () => requested);
  const canRetry = code === "model_unavailable" || code === "model_overloaded";
  if (!canRetry || seconds === undefined) return new ApiError(code, text, { param });
  return new ApiError(code, text, { param, headers: { "Retry-After": String(seconds) } });
}

/** A model that cannot do what the request needs refuses the request: to repeat it cannot help. */
const clientCode = ({ code, detail }: ProviderError): ProviderErrorCode =>
  detail.operator === "model" ? "upstream_rejected" : code;

/** Undefined: one of the models may be asked at once, so no Retry-After is sent. */
function retrySeconds(failures: readonly FailedAttempt[]): number | undefined {
  const waits = failures.map(retryMs);
  if (!waits.every((ms) => ms !== undefined)) return undefined;
  return Math.min(MAX_RETRY_SECONDS, Math.max(1, Math.ceil(Math.min(...waits) / 1000)));
}

/**
 * The wait that the provider or the breaker demands, whichever is longer. Undefined: neither
 * demands a wait.
 */
function retryMs({ model, error }: FailedAttempt): number | undefined {
  const assumed = error.code === "model_overloaded" ? DEFAULT_RETRY_MS : undefined;
  const stated = error.detail.retryAfterMs ?? assumed;
  const { retryMs: breakerMs } = model.status();
  return stated === undefined && breakerMs === 0 ? undefined : Math.max(stated ?? 0, breakerMs);
}
