// What failures of attempts say of their providers, where recovery knows more than the core.
import type { Cancel } from "../../core/http/cancel.ts";
import { ProviderError, type ProviderErrorCode } from "../../core/providers/provider-error.ts";

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

/**
 * The error of an attempt that was asked to go on, and of which nothing was delivered. The gateway
 * has added a message to the request, so that a refusal of it is no fault of the client: others are
 * asked, and the breaker does not count it.
 */
export function asked(error: unknown): unknown {
  if (!(error instanceof ProviderError) || error.blame !== "client") return error;
  // This one is no reason not to ask others, and says more.
  if (error.code === "context_length_exceeded") return error;
  return fromContent(error, "upstream_error", { permanent: true });
}

function fromContent(error: ProviderError, code: ProviderErrorCode, more: object = {}) {
  const detail = { ...error.detail, ...more, cause: error, fromContent: true };
  const copy = new ProviderError(code, error.message, detail);
  if (error.answer) copy.answer = error.answer;
  copy.usage = error.usage;
  return copy;
}
