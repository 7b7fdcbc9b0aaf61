// The tools of a request for a provider that does not know all forms of tool_choice, and what
// Mistral demands of messages with calls and their results.
import { sha256 } from "../../../core/hash.ts";
import type { ChatRequest, Message } from "../../../core/openai/request.ts";
import { statedId } from "../provider-words/index.ts";
import type { Traits } from "../../../core/providers/traits.ts";

/**
 * The fields that take the place of the documented ones. A request that needs another form never
 * comes here.
 */
export function toolFields(
  { tools, tool_choice: choice }: ChatRequest,
  known: Exclude<Traits["tool_choice"], "all">,
): object {
  if (!tools) return {};
  if (known === "auto" && choice === "none")
    return { tools: undefined, tool_choice: undefined, parallel_tool_calls: undefined };
  if (known === "auto" || choice === "none" || choice === "auto") return {};
  // A named tool is forced by leaving the others out.
  const isChosen = (name: string) => typeof choice !== "object" || choice.function.name === name;
  return {
    tools: tools.filter((tool) => isChosen(tool.function.name)),
    tool_choice: known === "any" ? "any" : "required",
  };
}

/** Mistral takes nine letters and digits. Other providers' ids become such ones. */
const shortId = (id: string): string => (/^[a-z\d]{9}$/i.test(id) ? id : sha256(id).slice(0, 9));

/** Mistral refuses any message but the model's own directly after the result of a call. */
const BETWEEN: Message = {
  role: "assistant",
  content: "I have read the results.",
  reasoning_content: undefined,
  tool_calls: [],
};

/** The messages with ids, and in an order, that Mistral takes. */
export const forMistral = (messages: readonly Message[]): readonly Message[] =>
  withIds(messages, shortId).flatMap((message, at) => {
    const isOther = message.role === "user" || message.role === "system";
    const isNext = isOther && messages[at - 1]?.role === "tool";
    return isNext ? [BETWEEN, message] : [message];
  });

/**
 * The messages with the ids of calls that the provider stated, but for an id that it stated of
 * several calls.
 */
export function withStatedIds(messages: readonly Message[]): readonly Message[] {
  const calls = messages.flatMap((message) =>
    message.role === "assistant" ? message.tool_calls : [],
  );
  const stated = new Map<string, string>();
  const counts = new Map<string, number>();
  for (const { id } of calls) {
    const own = statedId(id);
    if (own !== id && !stated.has(id)) counts.set(own, (counts.get(own) ?? 0) + 1);
    if (own !== id) stated.set(id, own);
  }
  if (stated.size === 0) return messages;
  return withIds(messages, (id) => {
    const own = stated.get(id);
    return own !== undefined && counts.get(own) === 1 ? own : id;
  });
}

const withIds = (messages: readonly Message[], idOf: (id: string) => string): readonly Message[] =>
  messages.map((message) => {
    if (message.role === "tool") return { ...message, tool_call_id: idOf(message.tool_call_id) };
    if (message.role !== "assistant" || message.tool_calls.length === 0) return message;
    const calls = message.tool_calls.map((call) => ({ ...call, id: idOf(call.id) }));
    return { ...message, tool_calls: calls };
  });
