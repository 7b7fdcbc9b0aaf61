// `functions` and `function_call`, OpenAI's predecessors of `tools` and `tool_choice`. In a request
// they become tools. In messages they are refused: a call without an id cannot be matched with
// its result.
import type { ChatRequest } from "../../../core/openai/request.ts";
import {
  fail,
  ValidationError,
  type Check,
  type ValidationIssue,
} from "../../../core/schema/checker.ts";
import { asObject } from "../../../core/schema/untrusted-json.ts";
import type { ChatFields } from "./fields.ts";

type Path = ValidationIssue["path"];

const RESULTS =
  'expected no "function": send the result of a call as a message of the role "tool", with the ' +
  "tool_call_id of the call";
const CALLS = "is not supported: send the call in tool_calls, with its id, as the reply had it";

const WITH_TOOLS = "may not be set together with tools or tool_choice";

/** Throws a ValidationError for a call or result without an id. `index`: the message's position. */
export function refuseLegacyMessage(message: unknown, index: number): void {
  const { role, function_call: call = null } = asObject(message);
  if (role === "function") fail("invalid_value", RESULTS, ["messages", index, "role"]);
  if (role === "assistant" && call !== null)
    fail("unsupported_value", CALLS, ["messages", index, "function_call"]);
}

/** Checks a request with its `functions` and `function_call` translated to tools. */
export function checkWithTools(
  check: Check<ChatRequest>,
  fields: ChatFields,
  json: unknown,
  all?: boolean,
): ChatRequest {
  const { functions = [], function_call: call } = fields;
  if (functions.length === 0 && call === undefined) return check(json, all);
  const body = asObject(json);
  const { tools: ownTools = null, tool_choice: choice = null } = body;
  const hasTools = Array.isArray(ownTools) ? ownTools.length > 0 : ownTools !== null;
  const field = functions.length > 0 ? "functions" : "function_call";
  if (hasTools || choice !== null) fail("invalid_parameter_combination", WITH_TOOLS, [field]);
  const tools = functions.map((declared) => ({ type: "function", function: declared }));
  const tool_choice = typeof call === "object" ? { type: "function", function: call } : call;
  try {
    return { ...check({ ...body, tools, tool_choice }, all), clientPath: legacyPath };
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error;
    throw new ValidationError(
      error.issues.map((issue) => ({ ...issue, path: legacyPath(issue.path) })),
    );
  }
}

/** The client's path: `tools[2].function.name` was `functions[2].name`. */
function legacyPath([field, ...rest]: Path): (string | number)[] {
  const inner = rest.filter((step) => step !== "function");
  if (field === "tools") return ["functions", ...inner];
  return field === "tool_choice" ? ["function_call", ...inner] : [field ?? "", ...rest];
}
