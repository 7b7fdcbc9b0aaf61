// How much a provider may say. Each part becomes a chunk, and tool calls are remembered: 10,000 of
// them are 3 MB of chunks.
import type { Part } from "../openai/parts.ts";
import { ProviderError } from "../providers/provider-error.ts";

/** An answer that is no good reply. The message is for the operator. */
export const upstreamError = (message: string, cause?: unknown): ProviderError =>
  new ProviderError("upstream_error", message, { cause });

/**
 * Parts of one event or whole reply, and tool calls of one reply. Providers send a few parts at a
 * time.
 */
export const MAX_PARTS = 10_000;

/**
 * The length of a reply follows from the request (log probabilities of 20 tokens at each position),
 * so the breaker does not count it.
 */
export const tooMuch = (what: string): ProviderError =>
  new ProviderError("upstream_error", what, { fromContent: true });

/** The same parts. Throws a ProviderError if there are too many. */
export function boundedParts(parts: Part[]): Part[] {
  if (parts.length > MAX_PARTS) throw tooMuch(`more than ${MAX_PARTS} parts at once`);
  return parts;
}
