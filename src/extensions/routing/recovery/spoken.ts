// What failures of attempts say of their providers, where recovery knows more than the core.
import type { Cancel } from "../../../core/http/cancel.ts";
import { ProviderError, type ProviderErrorCode } from "../../../core/providers/provider-error.ts";

/** The breaker does not count it, and to ask again would bring the same. */
const CONTENT = { fromContent: true, permanent: true };

/**
 * The error of an attempt that said something of which nothing was delivered, or that had not all
 * of the request's time, or whose reply was not taken in time. Once the request is cancelled, that
 * is why the attempt ended. If its time is over, the breaker would count the attempt as a silence
 * that lasted all of that time, so that long replies would open the breaker for others.
 */
export function spoken(error: unknown, { aborted, reason }: Cancel): unknown {
  if (!aborted) return error;
  return reason instanceof ProviderError ? fromContent(reason, reason.code) : reason;
}

/** The same error with this code, as one that comes of this request's content. */
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

/** What makes a reply useless that its provider is not to blame for. */
export const unusable = (why: string): ProviderError =>
  new ProviderError("upstream_error", why, CONTENT);
