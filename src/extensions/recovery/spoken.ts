// Failures of attempts that were heard although nothing of them was delivered.
import type { Cancel } from "../../core/http/cancel.ts";
import { ProviderError } from "../../core/providers/provider-error.ts";

/**
 * The error of an attempt that said something. The request's time may be over: then the breaker
 * would count the attempt as silent, because nothing was delivered, so that long replies would
 * close a model to others.
 */
export function spoken(error: unknown, { aborted, reason }: Cancel): unknown {
  if (!aborted || error !== reason || !(error instanceof ProviderError)) return error;
  return new ProviderError(error.code, error.message, { ...error.detail, fromContent: true });
}
