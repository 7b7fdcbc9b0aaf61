// What each item of `input` adds to the conversation, and to the tools.
import { fail } from "../../core/schema/checker.ts";
import { textOf } from "./content.ts";
import type { Conversation } from "./conversation.ts";
import { freeFormArguments } from "./free-form.ts";
import { required, type Path } from "./paths.ts";
import { NOT_STORED, type InputItem } from "./schema.ts";
import type { SealedTexts } from "./sealed.ts";
import { functionName, TOOL_SEARCH, type ToolSet } from "./tools.ts";

/** What items are added to. */
export interface ItemTarget {
  readonly conversation: Conversation;
  readonly tools: ToolSet;
  readonly sealed: SealedTexts;
}

/** Throws a ValidationError if the item lacks what its type needs, or asks for what is not here. */
export function addItem(item: InputItem, path: Path, target: ItemTarget): void {
  const { conversation, tools, sealed } = target;
  const content = () => required(item.content, path, "content");
  const text = () => textOf(content(), [...path, "content"]);
  const addTools = () => tools.add(item.tools ?? [], [...path, "tools"]);
  const callId = () => required(item.call_id, path, "call_id");
  switch (item.type) {
    case "message": {
      const role = required(item.role, path, "role");
      if (role === "assistant") conversation.assistant(path).texts.push(text());
      else conversation.addInput(role, content(), path);
      break;
    }
    case "agent_message":
      conversation.addInput("user", text(), path);
      break;
    case "reasoning": {
      const thought = thoughtOf(item, path, sealed);
      if (thought !== "") conversation.assistant(path).thoughts.push(thought);
      break;
    }
    case "additional_tools":
      addTools();
      break;
    case "tool_search_output":
      conversation.addResult(callId(), foundTools(addTools()), path);
      break;
    case "function_call_output":
    case "custom_tool_call_output":
      conversation.addResult(callId(), required(item.output, path, "output"), path);
      break;
    case "item_reference":
      fail("unsupported_value", NOT_STORED, path);
      break;
    default:
      conversation.addCall(callId(), calledFunction(item, path), path);
  }
}

function calledFunction(item: InputItem, path: Path) {
  if (item.type === "tool_search_call")
    return { name: TOOL_SEARCH, arguments: JSON.stringify(item.arguments ?? {}) };
  const name = functionName(required(item.name, path, "name"), item.namespace);
  if (item.type === "custom_tool_call")
    return { name, arguments: freeFormArguments(required(item.input, path, "input")) };
  const given = required(item.arguments, path, "arguments");
  return { name, arguments: typeof given === "string" ? given : JSON.stringify(given) };
}

const foundTools = (names: readonly string[]): string =>
  names.length > 0 ? `These tools can be called now: ${names.join(", ")}` : "No tool was found.";

/** The reasoning itself if the item has it, sealed or plain; else its summary. Empty: none. */
function thoughtOf(item: InputItem, path: Path, sealed: SealedTexts): string {
  const { encrypted_content, content = "", summary = "" } = item;
  const opened =
    encrypted_content && sealed.open(encrypted_content, [...path, "encrypted_content"]);
  if (opened) return opened;
  return textOf(content, [...path, "content"]) || summary;
}
