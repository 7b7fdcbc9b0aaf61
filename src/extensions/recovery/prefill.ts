// How a model is asked to go on with the beginning of its own answer: the trait `prefill`.
import type { ChatRequest, Message } from "../../core/openai/request.ts";
import type { Model } from "../../core/routing/model.ts";

/** What a value of the trait adds: to the last message, and to the body of the request. */
interface Marks {
  readonly message?: object;
  readonly body?: Readonly<Record<string, unknown>>;
}

const MARKS: ReadonlyMap<string, Marks> = new Map([
  // The last message is one of the assistant: that says it.
  ["plain", {}],
  ["prefix", { message: { prefix: true } }],
  ["partial", { message: { partial: true } }],
  [
    "continue_final_message",
    { body: { continue_final_message: true, add_generation_prompt: false } },
  ],
]);

/** Whether a model takes the beginning of its own answer. */
export const takesBeginning = ({ traits }: Pick<Model, "traits">): boolean =>
  MARKS.has(traits.prefill);

/**
 * The request with the beginning of the answer. The model does not think again, and has only those
 * tokens left that the beginning did not take: `used`.
 */
export const withBeginning = (chat: ChatRequest, beginning: string, used: number): ChatRequest => ({
  ...chat,
  messages: [
    ...chat.messages,
    { role: "assistant", content: beginning, reasoning_content: undefined, tool_calls: [] },
  ],
  wantsThinking: false,
  effort: undefined,
  maxTokens: chat.maxTokens === undefined ? undefined : Math.max(1, chat.maxTokens - used),
  native: undefined,
});

/** The same request as the model wants it that is to go on: with what its trait adds. */
export function marked(
  chat: ChatRequest,
  model: Model,
): { readonly chat: ChatRequest; readonly model: Model } {
  const { message: marks, body } = MARKS.get(model.traits.prefill)!;
  const { traits } = model;
  const last: Message = { ...chat.messages.at(-1)!, marks };
  return {
    chat: {
      ...chat,
      messages: [...chat.messages.slice(0, -1), last],
    },
    model: body ? { ...model, traits: { ...traits, extra: { ...traits.extra, ...body } } } : model,
  };
}
