// What each item of `input` adds to the conversation, and to the tools.
import { fail } from "../../core/schema/checker.ts";
import type { Path } from "../client-apis/index.ts";
import type { Conversation } from "./conversation.ts";
import { freeFormArguments } from "./free-form.ts";
import type { InputItem } from "./schema.ts";
import { functionName, TOOL_SEARCH, type ToolSet } from "./tools.ts";

/** Opens what was sealed. Undefined: this installation did not seal it, or it was changed. */
export type Open = (sealed: string) => string | undefined;

/** Sealed texts in one request. Each costs a decryption, however short it is. */
const MAX_SEALED = 10_000;

/** What items are added to. */
export interface ItemTarget {
  readonly conversation: Conversation;
  readonly tools: ToolSet;
  readonly open: Open;
  /** The sealed texts so far. */
  sealed: number;
  /** Those that cannot be read here. The conversation goes on without them. */
  unread: number;
}

/** Throws a ValidationError if the item does not go together with those before it. */
export function addItem(item: InputItem, path: Path, target: ItemTarget): void {
  const { conversation, tools } = target;
  const addTools = (added: Parameters<ToolSet["add"]>[0]) => tools.add(added, [...path, "tools"]);
  switch (item.type) {
    case "message": {
      const place = [...path, "content"];
      if (item.role === "assistant") conversation.assistant(place).texts.push(item.content);
      else conversation.addInput(item.role, item.content, place);
      break;
    }
    case "agent_message":
      conversation.addInput("user", item.content, path);
      break;
    case "reasoning": {
      const thought = thoughtOf(item, path, target);
      if (thought !== "") conversation.assistant(path).thoughts.push(thought);
      break;
    }
    case "additional_tools":
      addTools(item.tools);
      break;
    case "tool_search_output":
      conversation.addResult(item.call_id, foundTools(addTools(item.tools)), path);
      break;
    case "function_call_output":
    case "custom_tool_call_output":
      conversation.addResult(item.call_id, item.output, path);
      break;
    default:
      conversation.addCall(item.call_id, calledFunction(item), path);
  }
}

type CallItem = Extract<InputItem, { readonly type: `${string}_call` }>;

function calledFunction(item: CallItem) {
  if (item.type === "tool_search_call")
    return { name: TOOL_SEARCH, arguments: JSON.stringify(item.arguments ?? {}) };
  const name = functionName(item.name, item.namespace);
  if (item.type === "custom_tool_call") return { name, arguments: freeFormArguments(item.input) };
  const given = item.arguments;
  return { name, arguments: typeof given === "string" ? given : JSON.stringify(given) };
}

const foundTools = (names: readonly string[]): string =>
  names.length > 0 ? `These tools can be called now: ${names.join(", ")}` : "No tool was found.";

/** The reasoning itself if the item has it, sealed or plain; else its summary. Empty: none. */
function thoughtOf(
  item: Extract<InputItem, { readonly type: "reasoning" }>,
  path: Path,
  target: ItemTarget,
): string {
  const { encrypted_content, content, summary } = item;
  if (encrypted_content) {
    target.sealed += 1;
    if (target.sealed > MAX_SEALED)
      fail("invalid_value", `is one more than the ${MAX_SEALED} sealed texts allowed`, [
        ...path,
        "encrypted_content",
      ]);
    const opened = target.open(encrypted_content);
    if (opened === undefined) target.unread += 1;
    if (opened) return opened;
  }
  return content || summary;
}
