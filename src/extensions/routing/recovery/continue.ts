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
 * The request with the beginning of the answer as its last message. The model does not think again.
 * The client's token limit is reduced by the tokens that earlier attempts `used`, to 1 at least.
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
  // Without a dialect, no provider gets the client's original body, which lacks the beginning. The
  // body is kept so that later system texts stay in their places (providers/turns).
  native: chat.native && { ...chat.native, dialect: "" },
});

/** The same attempt, but it continues `shown`, and delivers only the text that comes after it. */
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
 * The error of an attempt that delivered nothing. If the provider rejected the request, the message
 * that the gateway added may be the cause. So the client is not blamed, the breaker does not count
 * the error, and the next candidate is asked.
 */
function withoutClientBlame(error: unknown): unknown {
  if (!(error instanceof ProviderError) || error.blame !== "client") return error;
  // The next candidate is asked after this error too, and its code tells the client more.
  if (error.code === "context_length_exceeded") return error;
  return fromContent(error, "upstream_error");
}
