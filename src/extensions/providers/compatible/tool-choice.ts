// The tools of a request for a provider that does not know all forms of tool_choice, and what
// Mistral demands of messages with calls and their results.
import { sha256 } from "../../../core/hash.ts";
import type { ChatRequest, Message } from "../../../core/openai/request.ts";
import { withCallIds } from "../provider-words/index.ts";
import type { Traits } from "../../../core/providers/traits.ts";
import { hashedId } from "../turns/index.ts";

/** Replaces the documented fields. A request goes only to models that know the form it needs. */
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

/** Mistral and its chat templates demand ids of nine letters and digits. Others are hashed. */
const shortId = (id: string): string => (/^[a-z\d]{9}$/i.test(id) ? id : sha256(id).slice(0, 9));

/** The messages with ids that Mistral and its chat templates accept. */
export const withMistralIds = (messages: readonly Message[]): readonly Message[] =>
  withCallIds(messages, shortId);

/**
 * The body's messages with the reasoning in the client's as the first part of their content.
 * Mistral wants the reasoning of every reply back, with calls or not.
 */
export const withThinkingParts = (body: readonly object[], messages: readonly Message[]) =>
  body.map((written, at) => {
    const message = messages[at];
    if (message?.role !== "assistant" || !message.reasoning_content?.trim()) return written;
    const { reasoning_content: text, content } = message;
    const thinking = { type: "thinking", thinking: [{ type: "text", text }], closed: true };
    const texts = content ? [{ type: "text", text: content }] : [];
    return { ...written, content: [thinking, ...texts] };
  });

/** Hashes ids of more than `max` characters. Some other servers write longer ones. */
export const withShortIds = (messages: readonly Message[], max: number | undefined) =>
  max === undefined
    ? messages
    : withCallIds(messages, (id) => (id.length > max ? hashedId(id) : id));
