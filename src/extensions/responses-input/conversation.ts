// Gathers the messages of a checked request. All that an assistant did between two inputs is one
// message: its reasoning, its texts and its calls. The results of the calls follow it at once,
// wherever they stood in the request: providers refuse a message between them. Images and files
// that tools returned come after these, in a message of the user: in chat completions the result of
// a tool is a text.
import type { ContentPart, Message } from "../../core/openai/request.ts";
import {
  inputMessage,
  refuseResult,
  resultOf,
  type Entry,
  type Path,
  type ToolCall,
} from "../client-apis/index.ts";

type Content = string | ContentPart[];

/** What an assistant did between two inputs. */
interface AssistantTurn {
  /** The place of the first item. */
  readonly path: Path;
  readonly texts: string[];
  readonly thoughts: string[];
  readonly calls: ToolCall[];
  /** The results of the calls, in the order of the request. */
  readonly results: Entry[];
  /** What the results show beside their texts. */
  readonly shown: ContentPart[];
  /** The place of the first of these outputs. Undefined: there is none. */
  shownAt: Path | undefined;
}

export interface Conversation {
  /** The assistant's turn that goes on, or begins. `path`: that of the item. */
  assistant(path: Path): Pick<AssistantTurn, "texts" | "thoughts">;
  /** Adds a call to the assistant's turn. */
  addCall(id: string, called: ToolCall["function"], path: Path): void;
  /** Adds a message of a user or the system. `path`: that of the content. */
  addInput(role: "user" | "system", content: Content, path: Path): void;
  /** Adds the result of a call. Throws a ValidationError if there is no such call before it. */
  addResult(tool_call_id: string, output: Content, path: Path): void;
  /** All messages. Nothing is added after that. */
  end(): readonly Entry[];
}

/** Between texts that were items of their own. */
const SEPARATOR = "\n\n";

export function createConversation(): Conversation {
  const entries: (Entry | AssistantTurn)[] = [];
  /** By the ids of their calls. A later call takes the id of an earlier one. */
  const callers = new Map<string, AssistantTurn>();
  let turn: AssistantTurn | undefined;

  function turnAt(path: Path): AssistantTurn {
    if (turn) return turn;
    turn = { path, texts: [], thoughts: [], calls: [], results: [], shown: [], shownAt: undefined };
    entries.push(turn);
    return turn;
  }

  return {
    assistant: turnAt,
    addCall(id, called, path) {
      const caller = turnAt(path);
      caller.calls.push({ id, type: "function", function: called });
      callers.set(id, caller);
    },
    addInput(role, content, path) {
      turn = undefined;
      entries.push({ message: inputMessage(role, content), path });
    },
    addResult(id, output, path) {
      turn = undefined;
      const caller = callers.get(id) ?? refuseResult([...path, "call_id"]);
      const parts = typeof output === "string" ? [textPart(output)] : output;
      const { text, shown } = resultOf(id, parts, "");
      caller.results.push({ message: { role: "tool", tool_call_id: id, content: text }, path });
      if (shown.length > 0) caller.shownAt ??= [...path, "output"];
      for (const part of shown) caller.shown.push(part);
    },
    end: () => entries.flatMap((entry) => ("message" in entry ? [entry] : entriesOf(entry))),
  };
}

const textPart = (text: string): ContentPart => ({ type: "text", text });

/** The messages of a turn: none, or the assistant's, and what has to follow it at once. */
function entriesOf({ path, texts, thoughts, calls, results, ...rest }: AssistantTurn): Entry[] {
  // Reasoning alone, of a reply that was interrupted, is nothing that could be continued.
  if (texts.length + calls.length === 0) return [];
  const message: Message = {
    role: "assistant",
    content: texts.length > 0 ? texts.join(SEPARATOR) : null,
    reasoning_content: thoughts.length > 0 ? thoughts.join(SEPARATOR) : undefined,
    tool_calls: calls,
  };
  const { shown, shownAt } = rest;
  const following: Message = { role: "user", content: shown };
  return [
    { message, path },
    ...results,
    ...(shownAt ? [{ message: following, path: shownAt }] : []),
  ];
}
