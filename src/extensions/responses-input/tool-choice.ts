// `tool_choice`: whether a model must call a tool, and which ones it may call.
import { fail } from "../../core/schema/checker.ts";
import { HOSTED, type NamedChoice, type ResponsesRequest } from "./schema.ts";
import { functionName, type ToolSet } from "./tools.ts";

interface Choice {
  /** As chat completions have it. */
  readonly tool_choice: unknown;
  /** Whether the model may call the function of this name. */
  isAllowed(name: string): boolean;
}

/** Throws a ValidationError for a choice that cannot be followed. */
export function choiceOf(
  choice: ResponsesRequest["tool_choice"],
  { declarations }: ToolSet,
): Choice {
  const isDeclared = (name: string): boolean => declarations.has(name);
  if (typeof choice === "string") {
    if (choice === "required" && declarations.size === 0) refuse(choice);
    return { tool_choice: choice, isAllowed: isDeclared };
  }
  if (choice.type === "allowed_tools") {
    const names = new Set(choice.tools.map(nameOf).filter(isDeclared));
    if (choice.mode === "required" && names.size === 0) refuse("required");
    return { tool_choice: choice.mode, isAllowed: (name) => names.has(name) };
  }
  const name = nameOf(choice);
  if (!isDeclared(name)) refuse(choice.type);
  return { tool_choice: { type: "function", function: { name } }, isAllowed: isDeclared };
}

const nameOf = ({ name = "", namespace }: Pick<NamedChoice, "name" | "namespace">): string =>
  functionName(name, namespace);

function refuse(type: string): never {
  const path = ["tool_choice"];
  if (HOSTED.some((hosted) => hosted === type))
    fail("unsupported_value", "forces a tool that only the vendor's own service has", path);
  if (type === "required")
    fail("unsupported_value", "demands a call, but there is no tool that the model can call", path);
  return fail("invalid_value", "names a tool that is not among the tools", path);
}
