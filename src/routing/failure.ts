// Failed attempts, in words for the client: WIRE.md 4.2, the rows of providers' faults. Never the provider's own words.
import type { FaultCode, ProviderFault } from "../dialects/dialect.ts";
import { ApiError } from "../protocol/errors.ts";
import type { Model } from "./catalog.ts";

export type FailedAttempt = { readonly model: Model; readonly fault: ProviderFault };

/** What an overloaded provider is given when it does not say itself, and the longest that clients obey (WIRE.md 4.4). */
const DEFAULT_RETRY_MS = 5_000;
const MAX_RETRY_SECONDS = 60;

/** The error for one fault. `requested` is the name that the client sent; an error must not tell more. */
export function clientError({ code, detail }: ProviderFault, requested: string, model: Model): ApiError {
  return errorFor(code, requested, model.contextTokens, detail.retryAfterMs);
}

/** The error when no candidate has begun to answer: the fault that they share, else that none is available. `shut` are those
 * that were not asked because their breaker is open. Retry-After is the soonest moment at which asking again is of use: for
 * each model what its provider said and what its breaker demands, whichever is later; of all models the earliest. */
export function verdict(requested: string, failures: readonly FailedAttempt[], shut: readonly Model[]): ApiError {
  const last = [...new Map(failures.map((failure) => [failure.model, failure])).values()]; // the last one of each model
  const others = last.filter(({ fault }) => fault.code !== "context_length_exceeded");
  const told = others.length + shut.length > 0 ? others : last;
  const codes = new Set<FaultCode>([...told.map(({ fault }) => fault.code), ...shut.map(() => "model_unavailable" as const)]);
  const code = codes.size === 1 ? [...codes][0]! : "model_unavailable";
  const waits = [...told.map(({ model, fault }) => waitFor(model, fault)), ...shut.map((model) => waitFor(model))];
  const known = waits.filter((wait) => wait !== undefined);
  const room = Math.max(0, ...told.map(({ model }) => model.contextTokens ?? 0));
  return errorFor(code, requested, room || undefined, known.length > 0 && known.length === waits.length ? Math.min(...known) : undefined);
}

/** Undefined: nobody knows, so it may be at once. */
function waitFor(model: Model, fault?: ProviderFault): number | undefined {
  const stated = fault?.detail.retryAfterMs ?? (fault?.code === "model_overloaded" ? DEFAULT_RETRY_MS : undefined);
  const { retryMs } = model.status();
  return stated === undefined && retryMs === 0 ? undefined : Math.max(stated ?? 0, retryMs);
}

function errorFor(code: FaultCode, requested: string, contextTokens: number | undefined, retryMs: number | undefined): ApiError {
  const wait = retryMs ?? (code === "model_overloaded" ? DEFAULT_RETRY_MS : undefined);
  const seconds = wait === undefined ? undefined : String(Math.min(MAX_RETRY_SECONDS, Math.max(1, Math.ceil(wait / 1000))));
  const limit = contextTokens === undefined ? "is smaller" : `is ${contextTokens} tokens`;
  const words: { readonly [code in FaultCode]: readonly [message: string, param?: "messages" | "model"] } = {
    context_length_exceeded: [`The prompt is too long; this model's maximum context length ${limit}.`, "messages"],
    content_filter: ["The prompt was refused by the model's content filter.", "messages"],
    upstream_rejected: ["The model refused this request as invalid."],
    upstream_timeout: [`The model '${requested}' did not answer in time.`, "model"],
    upstream_error: [`The model '${requested}' failed before its reply was complete.`, "model"],
    model_unavailable: [`The model '${requested}' is unavailable at the moment.`, "model"],
    model_overloaded: [`The model '${requested}' is overloaded. Retry after ${seconds} seconds.`, "model"],
  };
  const [message, param] = words[code];
  const again = code === "model_unavailable" || code === "model_overloaded"; // asking again is of use
  return new ApiError(code, message, { ...(param && { param }), ...(again && seconds && { headers: { "Retry-After": seconds } }) });
}
