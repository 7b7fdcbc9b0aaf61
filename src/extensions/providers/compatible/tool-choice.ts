// The tools of a request for a provider that does not know all forms of tool_choice.
import type { ChatRequest } from "../../../core/openai/request.ts";
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
  return { tools: tools.filter((tool) => isChosen(tool.function.name)), tool_choice: "any" };
}
