// Which failures of attempts the breaker must not count against the provider, where recovery knows
// more than the core.
import type { Cancel } from "../../../core/http/cancel.ts";
import { ProviderError, type ProviderErrorCode } from "../../../core/providers/provider-error.ts";

/** The breaker does not count such an error, and a retry would fail in the same way. */
const CONTENT = { fromContent: true, permanent: true };

/**
 * The error to throw for an attempt that was held back, or that continued another. If the request
 * was cancelled, that is the reason of the cancellation, else the attempt's own error. The breaker
 * must not count the request's deadline here: it would take the time of a long reply, or of the
 * attempts before, for silence of this provider.
 */
export function withoutBreakerBlame(error: unknown, { aborted, reason }: Cancel): unknown {
  if (!aborted) return error;
  return reason instanceof ProviderError ? fromContent(reason, reason.code) : reason;
}

/** A copy of the error with this code, blamed on the content of the request. */
export function fromContent(error: ProviderError, code: ProviderErrorCode): ProviderError {
  const detail = { ...error.detail, cause: error, ...CONTENT };
  const copy = new ProviderError(code, error.message, detail);
  return Object.assign(copy, { answer: error.answer, usage: error.usage });
}

/** The error of a reply that cannot be used, for which the provider is not to blame. */
export const unusable = (why: string): ProviderError =>
  new ProviderError("upstream_error", why, CONTENT);
