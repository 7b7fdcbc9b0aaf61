// Asks a model to continue the beginning of its own answer (the prefill), and joins its reply to
// that beginning.
import type { Part } from "../../../core/openai/parts.ts";
import type { ChatRequest } from "../../../core/openai/request.ts";
import { ProviderError } from "../../../core/providers/provider-error.ts";
import type { Attempt } from "../../../core/routing/attempt.ts";
import type { Model } from "../../../core/routing/model.ts";
import { fromContent, withoutBreakerBlame } from "./breaker-blame.ts";
import { createJoiner } from "./joint.ts";

/** Whether a model can continue the beginning of its own answer. */
export const supportsPrefill = ({ traits }: Model): boolean => traits.prefill !== "none";

/**
 * The request with the beginning of the answer as its last message. The model does not think again,
 * and may use the client's `max_tokens` less the tokens that the earlier attempts `used`.
 */
export const withPrefill = (chat: ChatRequest, content: string, used: number): ChatRequest => ({
  ...chat,
  messages: [
    ...chat.messages,
    { role: "assistant", content, reasoning_content: undefined, tool_calls: [] },
  ],
  wantsThinking: false,
  effort: undefined,
  maxTokens: chat.maxTokens === undefined ? undefined : Math.max(1, chat.maxTokens - used),
  // No provider gets the client's own request, which lacks the beginning. Later system texts stay
  // in their places as before (providers/turns).
  native: chat.native && { ...chat.native, dialect: "" },
});

/** The same attempt, but it continues `shown`, and delivers only what comes after that. */
export const continueAttempt =
  (attempt: Attempt, shown: string): Attempt =>
  async (chat, serving, deliver, options) => {
    const joiner = createJoiner(shown);
    let delivered = false;
    const show = (parts: readonly Part[]): Promise<unknown> | undefined => {
      if (parts.length === 0) return undefined;
      delivered = true;
      return deliver(parts);
    };
    const join = (parts: readonly Part[]) => show(parts.flatMap(joiner.transform));
    try {
      await attempt(chat, serving, join, options);
      await show(joiner.flush());
    } catch (error) {
      const cause = delivered ? error : withoutClientBlame(error);
      throw withoutBreakerBlame(cause, options.cancel);
    }
  };

/**
 * The error of an attempt that delivered nothing. If the provider rejects the request, that may be
 * because of the message that the gateway added, so the client is not to blame: the next candidate
 * is asked, and the breaker does not count the error.
 */
function withoutClientBlame(error: unknown): unknown {
  if (!(error instanceof ProviderError) || error.blame !== "client") return error;
  // After this error the next candidate is asked anyway, and its code says more to the client.
  if (error.code === "context_length_exceeded") return error;
  return fromContent(error, "upstream_error");
}
