// Failed attempts, in words for the client: WIRE.md 4.2, the rows of providers' faults. Never the provider's own words.

import type { FaultCode, ProviderFault } from "../dialects/dialect.ts";
import { ApiError } from "../protocol/errors.ts";
import type { Model } from "./catalog.ts";

export interface FailedAttempt {
  readonly model: Model;
  readonly fault: ProviderFault;
}

/** What an overloaded provider is given when it does not say itself, and the longest that clients obey (WIRE.md 4.4). */
const DEFAULT_RETRY_MS = 5_000;
const MAX_RETRY_SECONDS = 60;

/** The error for one fault. `requested` is the name that the client sent; an error must not tell more. */
export function clientError({ code, detail }: ProviderFault, requested: string, model: Model): ApiError {
  return errorFor(code, requested, model.contextTokens, detail.retryAfterMs);
}

/**
 * The error when no candidate has begun to answer: the fault that they share, else that none is available. `shut` are those
 * that were not asked because their breaker is open. Retry-After is the soonest moment at which asking again is of use: for
 * each model what its provider said and what its breaker demands, whichever is later; of all models the earliest.
 */
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
  const seconds = (ms: number) => String(Math.min(MAX_RETRY_SECONDS, Math.max(1, Math.ceil(ms / 1000))));
  switch (code) {
    case "context_length_exceeded": {
      const limit = contextTokens === undefined ? "is smaller" : `is ${contextTokens} tokens`;
      return new ApiError(code, `The prompt is too long; this model's maximum context length ${limit}.`, { param: "messages" });
    }
    case "content_filter":
      return new ApiError(code, "The prompt was refused by the model's content filter.", { param: "messages" });
    case "upstream_rejected":
      return new ApiError(code, "The model refused this request as invalid.");
    case "upstream_timeout":
      return new ApiError(code, `The model '${requested}' did not answer in time.`, { param: "model" });
    case "upstream_error":
      return new ApiError(code, `The model '${requested}' failed before its reply was complete.`, { param: "model" });
    case "model_unavailable": {
      const headers = retryMs === undefined ? {} : { "Retry-After": seconds(retryMs) };
      return new ApiError(code, `The model '${requested}' is unavailable at the moment.`, { param: "model", headers });
    }
    case "model_overloaded": {
      const after = seconds(retryMs ?? DEFAULT_RETRY_MS);
      return new ApiError(code, `The model '${requested}' is overloaded. Retry after ${after} seconds.`, { param: "model", headers: { "Retry-After": after } });
    }
  }
}
