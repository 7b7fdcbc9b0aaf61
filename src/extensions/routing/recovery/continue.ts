// How a model is asked to go on with the beginning of its own answer, as its trait `prefill` says,
// and what becomes of its reply.
import type { Part } from "../../../core/openai/parts.ts";
import type { ChatRequest } from "../../../core/openai/request.ts";
import { ProviderError } from "../../../core/providers/provider-error.ts";
import type { attempt as plainAttempt } from "../../../core/routing/attempt.ts";
import type { Model } from "../../../core/routing/model.ts";
import { joinAfter } from "./joint.ts";
import { fromContent, spoken } from "./spoken.ts";

type Attempt = typeof plainAttempt;

/** Whether a model takes the beginning of its own answer. */
export const takesBeginning = ({ traits }: Model): boolean => traits.prefill !== "none";

/**
 * The request with the beginning of the answer. The model does not think again, and has only those
 * tokens left that the beginning did not take: `used`.
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
  native: undefined,
});

/** The request and the model with what the trait adds: to the last message, or to the body. */
function marked(chat: ChatRequest, model: Model) {
  const { traits } = model;
  if (traits.prefill === "continue_final_message") {
    const marks = { continue_final_message: true, add_generation_prompt: false };
    return {
      chat,
      model: { ...model, traits: { ...traits, extra: { ...traits.extra, ...marks } } },
    };
  }
  const marks = traits.prefill === "plain" ? undefined : { [traits.prefill]: true };
  const last = { ...chat.messages.at(-1)!, marks };
  return { chat: { ...chat, messages: [...chat.messages.slice(0, -1), last] }, model };
}

/** The same attempt, asked to go on from `text`. Only what is new is delivered. */
export const continuing =
  (attempt: Attempt, text: string): Attempt =>
  async (chat, serving, deliver, options) => {
    const asked = marked(chat, serving.model);
    const joint = joinAfter(text);
    let delivered = false;
    const show = (parts: readonly Part[]): Promise<unknown> | undefined => {
      if (parts.length === 0) return undefined;
      delivered = true;
      return deliver(parts);
    };
    const take = (parts: readonly Part[]) => show(parts.flatMap(joint.take));
    try {
      await attempt(asked.chat, { ...serving, model: asked.model }, take, options);
      await show(joint.end());
    } catch (error) {
      throw spoken(delivered ? error : refusedBeginning(error), options.cancel);
    }
  };

/**
 * The error of an attempt of which nothing was delivered. The gateway has added a message to the
 * request, so a refusal of it is no fault of the client: others are asked, and the breaker does not
 * count it.
 */
function refusedBeginning(error: unknown): unknown {
  if (!(error instanceof ProviderError) || error.blame !== "client") return error;
  // This one is no reason not to ask others, and says more.
  if (error.code === "context_length_exceeded") return error;
  return fromContent(error, "upstream_error");
}
