// Where the client's request has what an error names: the paths of the chat completion that it was
// translated to, as paths of the request that its client wrote. And results of tools, whose error
// has a place of its own.
import { fail, type ValidationIssue } from "../../core/schema/checker.ts";
import { asArray, asObject } from "../../core/schema/untrusted-json.ts";
import type { ClientMessage } from "./schema.ts";

type Path = ValidationIssue["path"];

/** What became of the parts of a request. */
interface Places {
  /** The index of the client's message that each of the messages comes from; -1: the system's. */
  readonly origins: readonly number[];
  /** The index of the client's tool that each of the tools is. */
  readonly tools: readonly number[];
  /** Where the client put the format of the reply. */
  readonly formatField: Path;
}

export const createClientPath =
  ({ origins, tools, formatField }: Places) =>
  ([field, index, ...rest]: Path): (string | number)[] => {
    if (field === undefined) return [];
    if (field === "response_format") return [...formatField];
    if (typeof index === "number" && field === "messages") return messagePath(origins, index);
    if (typeof index === "number" && field === "tools")
      return toolPath(tools[index] ?? index, rest);
    return [field === "stop" ? "stop_sequences" : field];
  };

function messagePath(origins: readonly number[], index: number): (string | number)[] {
  const origin = origins[index] ?? index;
  return origin === -1 ? ["system"] : ["messages", origin, "content"];
}

/** `rest`: what follows the index, as `function.parameters`. */
function toolPath(tool: number, [, member]: Path): (string | number)[] {
  return ["tools", tool, member === "parameters" ? "input_schema" : (member ?? "name")];
}

/**
 * The messages, of which each result answers a call before it. Throws a ValidationError if one does
 * not, unless only a provider of the same format is asked: the call may be in a part of the
 * conversation that this keeps. Chat completions knows no such results, so they become texts, which
 * only count as tokens.
 */
export function answering(
  translated: readonly object[],
  messages: readonly ClientMessage[],
  isNative: boolean,
): readonly object[] {
  const orphan = firstOrphan(messages);
  if (!orphan) return translated;
  if (!isNative)
    fail("invalid_value", "answers no tool call of an assistant message before it", orphan);
  const calls = new Set<unknown>();
  return translated.map((message) => {
    const { role, tool_calls, tool_call_id, content } = asObject(message);
    for (const call of asArray(tool_calls)) calls.add(asObject(call)["id"]);
    return role === "tool" && !calls.has(tool_call_id) ? { role: "user", content } : message;
  });
}

/** The place of the first result that answers no call before it. Undefined: there is none. */
function firstOrphan(messages: readonly ClientMessage[]): Path | undefined {
  const calls = new Set<string>();
  for (const [index, { content }] of messages.entries()) {
    if (typeof content === "string" || content === undefined) continue;
    for (const [at, block] of content.entries()) {
      if (block.type === "tool_use") calls.add(block.id);
      if (block.type === "tool_result" && !calls.has(block.tool_use_id))
        return ["messages", index, "content", at, "tool_use_id"];
    }
  }
  return undefined;
}
