// Marks failed attempts that the breaker must not count against the provider, because recovery
// caused them or knows their reason.
import type { Cancel } from "../../../core/http/cancel.ts";
import { ProviderError, type ProviderErrorCode } from "../../../core/providers/provider-error.ts";

/** Marks an error that the breaker does not count, and that a retry would not avoid. */
const CONTENT = { fromContent: true, permanent: true };

/**
 * Returns the error to throw for an attempt that was held back, or that continued another: the
 * reason of the cancellation if the request was cancelled, otherwise the attempt's own error. The
 * breaker must not count the total deadline of the request: earlier attempts or a long reply used
 * that time, not a silent provider.
 */
export function withoutBreakerBlame(error: unknown, { aborted, reason }: Cancel): unknown {
  if (!aborted) return error;
  return reason instanceof ProviderError ? fromContent(reason, reason.code) : reason;
}

/** Copies an error with another code, and marks it as caused by the content of the request. */
export function fromContent(error: ProviderError, code: ProviderErrorCode): ProviderError {
  const detail = { ...error.detail, cause: error, ...CONTENT };
  const copy = new ProviderError(code, error.message, detail);
  return Object.assign(copy, { answer: error.answer, usage: error.usage });
}

/** The error of a reply that the gateway cannot use although the provider made no mistake. */
export const unusableReply = (why: string): ProviderError =>
  new ProviderError("upstream_error", why, CONTENT);
