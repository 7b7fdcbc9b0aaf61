// Translates the items of a request into messages. The reasoning, texts and calls of an assistant
// between two inputs become one message. The results of the calls follow it directly, because
// providers refuse any message between them. Images and files of the results come after these, in
// user messages.
import type { ContentPart, Message } from "../../../core/openai/request.ts";
import {
  createOpener,
  inputMessage,
  moveToEnd,
  refuseOrphan,
  splitResult,
  type Entry,
  type Path,
  type ToolCall,
  type Sealer,
} from "../client-apis/index.ts";
import { TOOL_SEARCH, type InputItem } from "./schema.ts";
import { freeFormArguments } from "./free-form.ts";
import { functionName, type ToolSet } from "./tools.ts";

/** Joins the texts of separate items. */
const SEPARATOR = "\n\n";

type Item<T> = Extract<InputItem, { readonly type: T }>;

/** The reasoning, texts and calls of an assistant between two inputs. */
interface AssistantTurn {
  /** The path of the first item. */
  readonly path: Path;
  readonly texts: string[];
  readonly thoughts: string[];
  readonly calls: ToolCall[];
  /** The results of the calls, in the order of the request. */
  readonly results: Entry[];
  /** Images and files of the results, as user messages. */
  readonly media: Entry[];
}

/** Whether a turn has texts and no calls. */
const isOnlyText = (turn: AssistantTurn | undefined): boolean =>
  turn !== undefined && turn.texts.length > 0 && turn.calls.length === 0;

export function createConversation(tools: ToolSet, open: Sealer["open"]) {
  const openSealed = createOpener(open);
  const turns = new Set<Entry | AssistantTurn>();
  /** The turns with calls, by the ids of the calls. If an id is repeated, the later call counts. */
  const callers = new Map<string, AssistantTurn>();
  let turn: AssistantTurn | undefined;
  let unreadCount = 0;

  /** The current turn of the assistant. Begins one if there is none. */
  function assistant(path: Path): AssistantTurn {
    if (turn) return turn;
    turn = { path, texts: [], thoughts: [], calls: [], results: [], media: [] };
    turns.add(turn);
    return turn;
  }

  /** Adds a user or system message. `path`: the path of the content. */
  function addInput(role: "user" | "system", content: string | ContentPart[], path: Path): void {
    turn = undefined;
    turns.add({ message: inputMessage(role, content), path });
  }

  function addResult(tool_call_id: string, parts: readonly ContentPart[], path: Path): void {
    const caller = callers.get(tool_call_id) ?? refuseOrphan([...path, "call_id"]);
    // A text that the assistant wrote after its calls is moved before them: as the last message it
    // would be a prefill.
    if (isOnlyText(turn)) moveToEnd(turns, caller);
    turn = undefined;
    const result = splitResult(tool_call_id, parts, "");
    caller.results.push({ message: { role: "tool", tool_call_id, content: result.text }, path });
    if (result.media.length === 0) return;
    const message: Message = { role: "user", content: result.media };
    caller.media.push({ message, path: [...path, "output"] });
  }

  function addCall(item: Item<`${string}_call`>, path: Path): void {
    const caller = assistant(path);
    caller.calls.push({ id: item.call_id, type: "function", function: calledFunction(item) });
    callers.set(item.call_id, caller);
  }

  /** Adds the reasoning of an item, sealed or plain, or else its summary. */
  function addReasoning({ encrypted_content, content, summary }: Item<"reasoning">, path: Path) {
    let unsealed: string | undefined;
    if (encrypted_content) {
      unsealed = openSealed(encrypted_content, [...path, "encrypted_content"]);
      if (unsealed === undefined) unreadCount += 1;
    }
    const thought = unsealed || content || summary;
    if (thought) assistant(path).thoughts.push(thought);
  }

  /**
   * Adds an item to the messages, and its tools to the tool set. Throws a ValidationError if it
   * contradicts the items before it.
   */
  function addItem(item: Exclude<InputItem, Item<"configuration_update">>, path: Path): void {
    switch (item.type) {
      case "message":
        if (item.role === "assistant") assistant(path).texts.push(item.content);
        else addInput(item.role, item.content, [...path, "content"]);
        break;
      case "agent_message":
        addInput("user", item.content, path);
        break;
      case "reasoning":
        addReasoning(item, path);
        break;
      case "additional_tools":
        tools.add(item.tools, [...path, "tools"]);
        break;
      case "tool_search_output":
        addResult(item.call_id, foundTools(tools.add(item.tools, [...path, "tools"])), path);
        break;
      case "function_call_output":
      case "custom_tool_call_output":
        addResult(item.call_id, item.output, path);
        break;
      default:
        addCall(item, path);
    }
  }

  return {
    addInput,
    addItem,
    /** All messages. Call it after the last addition. */
    entries: () => [...turns].flatMap((turn) => ("message" in turn ? [turn] : entriesOf(turn))),
    /** The number of sealed texts that could not be opened, and are left out. */
    unread: (): number => unreadCount,
  };
}

function calledFunction(item: Item<`${string}_call`>): ToolCall["function"] {
  const isSearch = item.type === "tool_search_call";
  const name = isSearch ? TOOL_SEARCH : functionName(item.name, item.namespace);
  if (item.type === "custom_tool_call") return { name, arguments: freeFormArguments(item.input) };
  const given = item.arguments ?? {};
  return { name, arguments: typeof given === "string" ? given : JSON.stringify(given) };
}

function foundTools(names: readonly string[]): ContentPart[] {
  const list = `These tools can be called now: ${names.join(", ")}`;
  return [{ type: "text", text: names.length > 0 ? list : "No tool was found." }];
}

/** The messages of a turn: none, or the assistant's with the results of its calls. */
function entriesOf(turn: AssistantTurn): readonly Entry[] {
  const { path, texts, thoughts, calls, results, media } = turn;
  // A turn of reasoning alone comes from an interrupted reply, and cannot be continued.
  if (texts.length + calls.length === 0) return [];
  const message: Message = {
    role: "assistant",
    content: texts.length > 0 ? texts.join(SEPARATOR) : null,
    reasoning_content: thoughts.length > 0 ? thoughts.join(SEPARATOR) : undefined,
    tool_calls: calls,
  };
  return [{ message, path }, ...results, ...media];
}
