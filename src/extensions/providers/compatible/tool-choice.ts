// The tools of a request for a provider that does not know all forms of tool_choice, and Mistral's
// ids of their calls.
import { sha256 } from "../../../core/hash.ts";
import type { ChatRequest, Message } from "../../../core/openai/request.ts";
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

/** The messages with ids that Mistral takes. */
export const withShortIds = (messages: readonly Message[]): readonly Message[] =>
  messages.map((message) => {
    if (message.role === "tool") return { ...message, tool_call_id: shortId(message.tool_call_id) };
    if (message.role !== "assistant") return message;
    const calls = message.tool_calls.map((call) => ({ ...call, id: shortId(call.id) }));
    return { ...message, tool_calls: calls };
  });
