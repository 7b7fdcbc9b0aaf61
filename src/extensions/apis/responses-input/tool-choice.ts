// `tool_choice`: whether a model must call a tool, and which ones it may call. A choice is followed
// exactly or refused: a hosted tool is never taken for the client's own of the same name.
import type { ChatRequest } from "../../../core/openai/request.ts";
import { fail } from "../../../core/schema/checker.ts";
import type { Path } from "../client-apis/index.ts";
import { HOSTED, type AllowedTools, type ChosenTool, type ResponsesRequest } from "./schema.ts";
import { functionName, TOOL_SEARCH, type Declaration, type ToolSet } from "./tools.ts";

interface Choice {
  readonly tool_choice: ChatRequest["tool_choice"];
  /** The tools that the model gets, by the names of their functions. */
  readonly declared: readonly (readonly [string, Declaration])[];
}

const PATH: Path = ["tool_choice"];
const UNDECLARED = "names a tool that is not among the tools";

/** Throws a ValidationError for a choice that cannot be followed. */
export function choiceOf(choice: ResponsesRequest["tool_choice"], tools: ToolSet): Choice {
  const declared = [...tools.declarations];
  if (typeof choice === "string") {
    if (choice === "required" && declared.length === 0) refuseNothing();
    return { tool_choice: choice, declared };
  }
  if ("mode" in choice) return allowedTools(choice, tools);
  const name = declaredName(choice, tools);
  if (name !== undefined)
    return { tool_choice: { type: "function", function: { name } }, declared };
  if (isHosted(choice.type, tools))
    fail("unsupported_value", "forces a tool that only the vendor's own service has", PATH);
  return fail("invalid_value", UNDECLARED, PATH);
}

/** The hosted tools in the list are left out, as they are of the tools. */
function allowedTools({ mode, tools: chosen }: AllowedTools, tools: ToolSet): Choice {
  const names = new Set<string>();
  for (const [index, tool] of chosen.entries()) {
    const name = declaredName(tool, tools);
    if (name !== undefined) names.add(name);
    else if (!tools.leftOut.has(tool.type))
      fail("invalid_value", UNDECLARED, [...PATH, "tools", index]);
  }
  if (mode === "required" && names.size === 0) refuseNothing();
  return {
    tool_choice: mode,
    declared: [...tools.declarations].filter(([name]) => names.has(name)),
  };
}

/** The name of the function that stands for a tool. Undefined: no such tool is declared. */
function declaredName(
  { type, name = "", namespace }: ChosenTool,
  { declarations }: ToolSet,
): string | undefined {
  const chosen = type === TOOL_SEARCH ? TOOL_SEARCH : functionName(name, namespace);
  return declarations.get(chosen)?.origin.type === type ? chosen : undefined;
}

const isHosted = (type: string, { leftOut }: ToolSet): boolean =>
  leftOut.has(type) || Object.hasOwn(HOSTED, type);

const refuseNothing = (): never =>
  fail("unsupported_value", "demands a call, but there is no tool that the model can call", PATH);
