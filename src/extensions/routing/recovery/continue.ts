// Asks a model to continue the beginning of its own answer, if its trait `prefill` says that it
// can, and joins its reply to that beginning.
import type { Part } from "../../../core/openai/parts.ts";
import type { ChatRequest } from "../../../core/openai/request.ts";
import { ProviderError } from "../../../core/providers/provider-error.ts";
import type { Attempt } from "../../../core/routing/attempt.ts";
import type { Model } from "../../../core/routing/model.ts";
import { fromContent, withoutBreakerBlame } from "./breaker-blame.ts";
import { joinAfter } from "./joint.ts";

/** Whether a model can continue the beginning of its own answer. */
export const takesBeginning = ({ traits }: Model): boolean => traits.prefill !== "none";

/**
 * The request with the beginning of the answer as its last message. The model does not think again.
 * Its reply may have the client's `max_tokens` less those that the earlier attempts `used`.
 */
export const withBeginning = (chat: ChatRequest, content: string, used: number): ChatRequest => ({
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

/** The same attempt, asked to continue `text`. Delivers only what comes after it. */
export const continuing =
  (attempt: Attempt, text: string): Attempt =>
  async (chat, serving, deliver, options) => {
    const joint = joinAfter(text);
    let delivered = false;
    const show = (parts: readonly Part[]): Promise<unknown> | undefined => {
      if (parts.length === 0) return undefined;
      delivered = true;
      return deliver(parts);
    };
    const take = (parts: readonly Part[]) => show(parts.flatMap(joint.take));
    try {
      await attempt(chat, serving, take, options);
      await show(joint.end());
    } catch (error) {
      const cause = delivered ? error : refusedBeginning(error);
      throw withoutBreakerBlame(cause, options.cancel);
    }
  };

/**
 * The error of an attempt that delivered nothing. The gateway added a message to the request, so
 * the client is not to blame if the provider rejects it: the next candidate is asked, and the
 * breaker does not count the error.
 */
function refusedBeginning(error: unknown): unknown {
  if (!(error instanceof ProviderError) || error.blame !== "client") return error;
  // This error lets the next candidate be asked as it is, and tells the client more.
  if (error.code === "context_length_exceeded") return error;
  return fromContent(error, "upstream_error");
}
