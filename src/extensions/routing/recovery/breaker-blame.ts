// Which failures of attempts the breaker must not count against the provider, where recovery knows
// more than the core.
import type { Cancel } from "../../../core/http/cancel.ts";
import { ProviderError, type ProviderErrorCode } from "../../../core/providers/provider-error.ts";

/** The breaker does not count such an error, and a retry would fail in the same way. */
const CONTENT = { fromContent: true, permanent: true };

/**
 * The error to throw for an attempt whose reply was held back, in whole or in part. Until the
 * request is cancelled: the attempt's own error. After that: the reason of the cancellation. If the
 * reason is the request's deadline, the breaker must not count it: it would take the time of a long
 * reply for silence of the provider.
 */
export function withoutBreakerBlame(error: unknown, { aborted, reason }: Cancel): unknown {
  if (!aborted) return error;
  return reason instanceof ProviderError ? fromContent(reason, reason.code) : reason;
}

/** A copy of the error with this code, blamed on the content of the request. */
export function fromContent(error: ProviderError, code: ProviderErrorCode): ProviderError {
  const copy = new ProviderError(code, error.message, {
    ...error.detail,
    cause: error,
    ...CONTENT,
  });
  if (error.answer) copy.answer = error.answer;
  copy.usage = error.usage;
  return copy;
}

/** The error of a reply that cannot be used, for which the provider is not to blame. */
export const unusable = (why: string): ProviderError =>
  new ProviderError("upstream_error", why, CONTENT);
