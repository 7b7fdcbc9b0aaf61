// A failed attempt, in words for the client: WIRE.md 4.2, the rows of providers' faults. Never the provider's own words.

import type { ProviderFault } from "../dialects/dialect.ts";
import { ApiError } from "../protocol/errors.ts";
import type { Model } from "./catalog.ts";

/** What an overloaded provider is given when it does not say itself, and the longest that clients obey (WIRE.md 4.4). */
const DEFAULT_RETRY_SECONDS = 5;
const MAX_RETRY_SECONDS = 60;

/** `requested` is the name that the client sent; an error must not tell more. */
export function clientError(fault: ProviderFault, requested: string, model: Model): ApiError {
  const { code } = fault;
  switch (code) {
    case "context_length_exceeded": {
      const limit = model.contextTokens === undefined ? "" : ` is ${model.contextTokens} tokens`;
      const message = `The prompt is too long; this model's maximum context length${limit || " is smaller"}.`;
      return new ApiError(code, message, { param: "messages", cause: fault });
    }
    case "content_filter":
      return new ApiError(code, "The prompt was refused by the model's content filter.", { param: "messages", cause: fault });
    case "upstream_rejected":
      return new ApiError(code, "The model refused this request as invalid.", { cause: fault });
    case "upstream_timeout":
      return new ApiError(code, `The model '${requested}' did not answer in time.`, { param: "model", cause: fault });
    case "upstream_error":
      return new ApiError(code, `The model '${requested}' failed before its reply was complete.`, { param: "model", cause: fault });
    case "model_unavailable":
      return new ApiError(code, `The model '${requested}' is unavailable at the moment.`, { param: "model", headers: retryAfter(fault), cause: fault });
    case "model_overloaded": {
      const headers = { "Retry-After": String(DEFAULT_RETRY_SECONDS), ...retryAfter(fault) };
      const message = `The model '${requested}' is overloaded. Retry after ${headers["Retry-After"]} seconds.`;
      return new ApiError(code, message, { param: "model", headers, cause: fault });
    }
  }
}

function retryAfter({ retryAfterMs }: ProviderFault): Record<string, string> {
  if (retryAfterMs === undefined) return {};
  return { "Retry-After": String(Math.min(MAX_RETRY_SECONDS, Math.max(1, Math.ceil(retryAfterMs / 1000)))) };
}
