// Replaces the tools of a request by functions, which every model knows, and finds the tool of a
// called function. A free-form tool becomes a function with one text. The function for a tool of a
// namespace has a name that begins with the namespace's. Hosted tools, which the vendor's service
// runs, are left out. `tool_choice` is followed exactly or refused: a hosted tool is never confused
// with a client's tool of the same name.
import { isDeepStrictEqual } from "node:util";
import { sha256 } from "../../../core/hash.ts";
import type { ChatRequest, Tool as FunctionTool } from "../../../core/openai/request.ts";
import { cut, fail } from "../../../core/schema/checker.ts";
import { asString } from "../../../core/schema/untrusted-json.ts";
import { completeSchema, type Path } from "../client-apis/index.ts";
import {
  MAX_TOOLS,
  TOOL_SEARCH,
  type Callable,
  type ChosenTool,
  type ResponsesRequest,
  type Tool,
} from "./schema.ts";

/** The client's tool that a function replaces. */
export interface ToolOrigin {
  readonly type: Callable["type"];
  readonly name: string;
  /** Undefined: the tool is in no namespace. */
  readonly namespace: string | undefined;
}

/** A tool as it is declared to a model. */
interface Declaration {
  readonly origin: ToolOrigin;
  readonly tool: FunctionTool;
  /** The path of the tool in the request. */
  readonly path: Path;
}

/** The tools of one request. */
export interface ToolSet {
  /** By the names of their functions, in the order of the request. */
  readonly declarations: ReadonlyMap<string, Declaration>;
  /** The types of the hosted tools. */
  readonly leftOut: ReadonlySet<string>;
  /**
   * Adds tools. A repeated declaration replaces the earlier one. Returns the names of their
   * functions. Throws a ValidationError if two different tools have the same function name, or if
   * there are more than MAX_TOOLS in all.
   */
  add(tools: readonly Tool[], path: Path): string[];
}

/** The most characters of a function's name. */
const MAX_NAME = 64;
const HASH_DIGITS = 8;

/** The name of a tool's function. It is the same in every request with these arguments. */
export function functionName(name: string, namespace: string | undefined): string {
  const whole = namespace === undefined ? name : `${namespace}__${name}`;
  if (whole.length <= MAX_NAME) return whole;
  const hash = sha256(whole).slice(0, HASH_DIGITS);
  return `${whole.slice(0, MAX_NAME - HASH_DIGITS - 1)}_${hash}`;
}

export function createToolSet(): ToolSet {
  const declarations = new Map<string, Declaration>();
  const leftOut = new Set<string>();

  function declare(tool: Callable, namespace: string | undefined, path: Path): string {
    const origin = { type: tool.type, name: tool.name, namespace };
    const name = functionName(tool.name, namespace);
    const earlier = declarations.get(name);
    if (earlier && !isDeepStrictEqual(earlier.origin, origin))
      fail("invalid_value", `two different tools would be called "${cut(name)}"`, path);
    if (!earlier && declarations.size === MAX_TOOLS) {
      const message = `is one more than the ${MAX_TOOLS} tools that a request may have`;
      fail("invalid_value", message, path);
    }
    const declared = { name, ...functionFor(tool) };
    declarations.set(name, { origin, tool: { type: "function", function: declared }, path });
    return name;
  }

  function add(tools: readonly Tool[], path: Path, namespace?: string): string[] {
    return tools.flatMap((tool, index) => {
      const place = [...path, index];
      if (tool.type === "namespace") return add(tool.tools, [...place, "tools"], tool.name);
      if (tool.type !== "hosted") return declare(tool, namespace, place);
      leftOut.add(tool.name);
      return [];
    });
  }

  return { declarations, leftOut, add };
}

function functionFor(tool: Callable): Omit<FunctionTool["function"], "name"> {
  const { type, description, strict, format = {} } = tool;
  const parameters = tool.parameters && completeSchema(tool.parameters);
  if (type !== "custom") return { description, parameters, strict };
  const { syntax, definition } = format;
  const rule = asString(definition)
    ? `The input is a text that follows this ${asString(syntax) ?? ""} grammar:\n${definition}`
    : "The input is free text.";
  const described = `${description ?? ""}\n\n${rule}`;
  return { description: described, parameters: FREE_FORM, strict: undefined };
}

/** The parameters of a free-form tool's function. */
const FREE_FORM = {
  type: "object",
  properties: { input: { type: "string", description: "The whole input of the tool." } },
  required: ["input"],
  additionalProperties: false,
};

const CHOICE_PATH: Path = ["tool_choice"];

interface Choice {
  readonly tool_choice: ChatRequest["tool_choice"];
  /** The tools that the model gets. */
  readonly declared: readonly Declaration[];
}

/** Throws a ValidationError for a choice that cannot be followed. */
export function choiceOf(choice: ResponsesRequest["tool_choice"], tools: ToolSet): Choice {
  const declared = [...tools.declarations.values()];
  if (typeof choice === "string") return modeChoice(choice, declared);
  if ("mode" in choice) {
    const names = choice.tools.map((tool, index) =>
      declaredName(tool, tools, [...CHOICE_PATH, "tools", index]),
    );
    return modeChoice(
      choice.mode,
      declared.filter(({ tool }) => names.includes(tool.function.name)),
    );
  }
  const name = declaredName(choice, tools, CHOICE_PATH);
  if (name === undefined)
    fail("unsupported_value", "forces a tool that only the vendor's own service has", CHOICE_PATH);
  return { tool_choice: { type: "function", function: { name } }, declared };
}

function modeChoice(mode: "none" | "auto" | "required", declared: Choice["declared"]): Choice {
  if (mode === "required" && declared.length === 0)
    fail(
      "unsupported_value",
      "demands a call, but there is no tool that the model can call",
      CHOICE_PATH,
    );
  return { tool_choice: mode, declared };
}

/** The name of a tool's function. Undefined: a hosted tool, which is left out. */
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
