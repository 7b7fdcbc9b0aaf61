// Failed attempts in words: for the books, for the operator, and for the client, who never sees the provider's own: WIRE.md
// 4.2, the rows of providers' faults. The client's words are in failure.json, a row a code.
import type { AttemptRecord } from "../ledger/ledger.ts";
import { ProviderError } from "../providers/provider-error.ts";
import { ClientGone } from "../http/cancel.ts";
import { ApiError, toApiError } from "../openai/errors.ts";
import type { Model } from "./catalog.ts";
import words from "./failure.json" with { type: "json" };

export type FailedAttempt = { readonly model: Model; readonly fault: ProviderError };
/** What an overloaded provider is given when it does not say itself, and the longest that clients obey (WIRE.md 4.4). */
const DEFAULT_RETRY_MS = 5_000;
const MAX_RETRY_SECONDS = 60;

/** What became of an attempt, for the books, by what it threw, if it did. */
export const outcomeOf = (error: unknown): string => {
  if (error === undefined) return "completed";
  if (error instanceof ClientGone) return "cancelled";
  return error instanceof ProviderError ? error.code : toApiError(error).code;
};

/** A fault for the operator's log; one that only the operator can mend is an error, the others pass. */
export const faultWords = ({ code, blame, detail, message, answer }: ProviderError) => ({
  level: blame === "operator" ? "error" : "warn",
  code,
  blame,
  status: detail.status,
  detail: message,
  provider_status: answer?.status,
  provider_path: answer?.path,
  provider_message: answer?.message,
});

/** What the books say of an attempt beside its outcome: nothing of one that did not fail by a fault. */
export function attemptDetail(error: unknown): Pick<AttemptRecord, "status" | "path" | "detail"> {
  if (!(error instanceof ProviderError)) return {};
  const { answer, message } = error;
  return { status: answer?.status, path: answer?.path, detail: answer?.message ?? message };
}

/** The client's error: the fault that all models share, else that none is available. `requested` is the name that was sent; an
 * error must not tell more. Retry-After is the soonest moment at which asking again is of use: for each model what its provider
 * said and what its breaker demands, whichever is later; of all models the earliest, if it is known of all. */
export function toClientError(requested: string, failures: readonly FailedAttempt[]): ApiError {
  const last = [...new Map(failures.map((failure) => [failure.model, failure])).values()]; // the last one of each model
  const others = last.filter(({ fault }) => fault.code !== "context_length_exceeded");
  const told = others.length > 0 ? others : last;
  const codes = new Set(told.map(({ fault }) => fault.code));
  const code = codes.size === 1 ? [...codes][0]! : "model_unavailable";
  const seconds = Math.min(
    MAX_RETRY_SECONDS,
    Math.max(1, Math.ceil(Math.min(...told.map(waitFor)) / 1000)),
  ); // NaN if one of them is
  const room = Math.max(...told.map(({ model }) => model.contextTokens ?? 0));
  const values: { readonly [name: string]: unknown } = {
    requested,
    seconds,
    room: room === 0 ? "smaller" : `${room} tokens`,
  };
  const { message, param } = words[code];
  const text = message.replace(/\{(\w+)\}/g, (_, name: string) => String(values[name]));
  const again = code === "model_unavailable" || code === "model_overloaded"; // asking again is of use
  return new ApiError(code, text, {
    param,
    ...(again && seconds > 0 && { headers: { "Retry-After": String(seconds) } }),
  });
}

/** NaN: nobody knows, so it may be at once. */
function waitFor({ model, fault }: FailedAttempt): number {
  const stated =
    fault.detail.retryAfterMs ?? (fault.code === "model_overloaded" ? DEFAULT_RETRY_MS : undefined);
  const { retryMs } = model.status();
  return stated === undefined && retryMs === 0 ? NaN : Math.max(stated ?? 0, retryMs);
}
