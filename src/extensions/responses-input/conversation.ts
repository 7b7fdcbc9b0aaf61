// Gathers the messages of a chat completion. All that an assistant did between two inputs is one
// message: its reasoning, its texts and its calls. The results of the calls follow it at once,
// wherever they stood in the request: providers refuse a message between them. Images and files
// that tools returned come after these, in a message of the user: in chat completions the result of
// a tool is a text.
import { shownHeading } from "../client-apis/index.ts";
import { contentParts, resultText, type ChatPart, type Content } from "./content.ts";
import type { MessageOrigin, Path } from "./paths.ts";

/** What an assistant did between two inputs. */
interface AssistantTurn {
  readonly path: Path;
  readonly texts: string[];
  readonly thoughts: string[];
  readonly calls: object[];
  /** The results of the calls, in the order of the request. */
  readonly results: Placed[];
  /** What the results show beside their texts, each part with its place in the request. */
  readonly shown: { readonly part: ChatPart; readonly path: Path }[];
}

/** A message, and where it stood in the request. */
interface Placed {
  readonly message: object;
  readonly origin: MessageOrigin;
}

export interface Conversation {
  /** The assistant's turn that goes on, or begins. */
  assistant(path: Path): Pick<AssistantTurn, "texts" | "thoughts">;
  /** Adds a call to the assistant's turn. `called`: the function, as chat completions have it. */
  addCall(id: string, called: object, path: Path): void;
  /** Adds a message of a user, a developer or the system. */
  addInput(role: string, content: Content, path: Path): void;
  addResult(tool_call_id: string, output: Content, path: Path): void;
  /** All messages, each with its place in the request. Nothing is added after that. */
  end(): { readonly messages: readonly object[]; readonly origins: readonly MessageOrigin[] };
}

/** Between texts that were items of their own. */
const SEPARATOR = "\n\n";

export function createConversation(): Conversation {
  const entries: (Placed | AssistantTurn)[] = [];
  /** By the ids of their calls. A later call takes the id of an earlier one. */
  const callers = new Map<string, AssistantTurn>();
  let turn: AssistantTurn | undefined;

  function turnAt(path: Path): AssistantTurn {
    if (turn) return turn;
    turn = { path, texts: [], thoughts: [], calls: [], results: [], shown: [] };
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
      const isText = typeof content === "string";
      const parts = isText ? content : contentParts(content, [...path, "content"]);
      entries.push({ message: { role, content: parts }, origin: { path } });
    },
    addResult(tool_call_id, output, path) {
      turn = undefined;
      const message = { role: "tool", tool_call_id, content: resultText(output) };
      const result: Placed = { message, origin: { path } };
      const caller = callers.get(tool_call_id);
      // Without a call it stays where it is, and the check of chat completions refuses it there.
      if (caller) caller.results.push(result);
      else entries.push(result);
      if (typeof output !== "string") addShown(caller, tool_call_id, output, [...path, "output"]);
    },
    end() {
      const placed = entries.flatMap((entry) => ("message" in entry ? [entry] : messagesOf(entry)));
      return {
        messages: placed.map(({ message }) => message),
        origins: placed.map(({ origin }) => origin),
      };
    },
  };
}

/** `path`: that of the output. */
function addShown(
  caller: AssistantTurn | undefined,
  callId: string,
  output: Exclude<Content, string>,
  path: Path,
): void {
  const shown = contentParts(output, path)
    .map((part, index) => ({ part, path: [...path, index] }))
    .filter(({ part }) => part.type !== "text");
  if (!caller || shown.length === 0) return;
  caller.shown.push({ part: { type: "text", text: shownHeading(callId) }, path });
  for (const part of shown) caller.shown.push(part);
}

/** The messages of a turn: none, or the assistant's, and what has to follow it at once. */
function messagesOf(turn: AssistantTurn): readonly Placed[] {
  const { path, texts, calls, results, shown } = turn;
  // Reasoning alone, of a reply that was interrupted, is nothing that could be continued.
  if (texts.length + calls.length === 0) return [];
  const own = { message: assistantMessage(turn), origin: { path } };
  if (shown.length === 0) return [own, ...results];
  const message = { role: "user", content: shown.map(({ part }) => part) };
  return [own, ...results, { message, origin: { path, parts: shown.map((part) => part.path) } }];
}

const assistantMessage = ({ texts, thoughts, calls }: AssistantTurn) => ({
  role: "assistant",
  content: texts.length > 0 ? texts.join(SEPARATOR) : null,
  ...(thoughts.length > 0 && { reasoning_content: thoughts.join(SEPARATOR) }),
  ...(calls.length > 0 && { tool_calls: calls }),
});
