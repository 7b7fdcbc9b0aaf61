// `tool_choice`: whether a model must call a tool, and which ones it may call. A choice is followed
// exactly or refused: a hosted tool is never taken for the client's own of the same name.
import type { ChatRequest } from "../../../core/openai/request.ts";
import { fail } from "../../../core/schema/checker.ts";
import type { Path } from "../client-apis/index.ts";
import { TOOL_SEARCH, type ChosenTool, type ResponsesRequest } from "./schema.ts";
import { functionName, type Declaration, type ToolSet } from "./tools.ts";

interface Choice {
  readonly tool_choice: ChatRequest["tool_choice"];
  /** The tools that the model gets. */
  readonly declared: readonly Declaration[];
}

const PATH: Path = ["tool_choice"];

/** Throws a ValidationError for a choice that cannot be followed. */
export function choiceOf(choice: ResponsesRequest["tool_choice"], tools: ToolSet): Choice {
  const declared = [...tools.declarations.values()];
  if (typeof choice === "string") return callable(choice, declared);
  if ("mode" in choice) {
    const names = choice.tools.map((tool, index) =>
      declaredName(tool, tools, [...PATH, "tools", index]),
    );
    return callable(
      choice.mode,
      declared.filter(({ tool }) => names.includes(tool.function.name)),
    );
  }
  const name = declaredName(choice, tools, PATH);
  if (name === undefined)
    fail("unsupported_value", "forces a tool that only the vendor's own service has", PATH);
  return { tool_choice: { type: "function", function: { name } }, declared };
}

function callable(mode: "none" | "auto" | "required", declared: Choice["declared"]): Choice {
  if (mode === "required" && declared.length === 0)
    fail("unsupported_value", "demands a call, but there is no tool that the model can call", PATH);
  return { tool_choice: mode, declared };
}

/** The name of the function that stands for a tool. Undefined: a hosted tool, which is left out. */
function declaredName(
  { type, name = "", namespace }: ChosenTool,
  { declarations, leftOut }: ToolSet,
  path: Path,
): string | undefined {
  const chosen = type === TOOL_SEARCH ? TOOL_SEARCH : functionName(name, namespace);
  if (declarations.get(chosen)?.origin.type === type) return chosen;
  if (leftOut.has(type)) return undefined;
  return fail("invalid_value", "names a tool that is not among the tools", path);
}
