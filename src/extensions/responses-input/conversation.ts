// Gathers the messages of a chat completion. All that an assistant did between two inputs is one
// message: its reasoning, its texts and its calls. Images and files that a tool returned follow in
// a message of the user: in chat completions the result of a tool is a text.
import { contentParts, textOf, type Content } from "./content.ts";
import type { Path } from "./paths.ts";

/** What an assistant did between two inputs. */
interface AssistantTurn {
  readonly path: Path;
  readonly texts: string[];
  readonly thoughts: string[];
  readonly calls: object[];
}

export interface Conversation {
  /** The assistant's turn that goes on, or begins. */
  assistant(path: Path): AssistantTurn;
  /** Adds a message of a user, a developer or the system. */
  addInput(role: string, content: Content, path: Path): void;
  addResult(tool_call_id: string, output: Content, path: Path): void;
  /** All messages, each with its place in the request. Nothing is added after that. */
  end(): { readonly messages: readonly object[]; readonly paths: readonly Path[] };
}

/** Between texts that were items of their own. */
const SEPARATOR = "\n\n";

export function createConversation(): Conversation {
  const messages: object[] = [];
  const paths: Path[] = [];
  let turn: AssistantTurn | undefined;
  let media: object[] = [];

  function push(message: object, path: Path): void {
    messages.push(message);
    paths.push(path);
  }
  function endTurn(): void {
    // Reasoning alone, of a reply that was interrupted, is nothing that could be continued.
    if (turn && turn.texts.length + turn.calls.length > 0) push(assistantMessage(turn), turn.path);
    turn = undefined;
  }
  function endMedia(): void {
    if (media.length > 0) push({ role: "user", content: media }, paths.at(-1)!);
    media = [];
  }

  return {
    assistant(path) {
      endMedia();
      turn ??= { path, texts: [], thoughts: [], calls: [] };
      return turn;
    },
    addInput(role, content, path) {
      endTurn();
      endMedia();
      const isText = typeof content === "string";
      push({ role, content: isText ? content : contentParts(content, [...path, "content"]) }, path);
    },
    addResult(tool_call_id, output, path) {
      endTurn();
      push({ role: "tool", tool_call_id, content: textOf(output) }, path);
      if (typeof output === "string") return;
      const parts = contentParts(output, [...path, "output"]);
      media = [...media, ...parts.filter(({ type }) => type !== "text")];
    },
    end() {
      endTurn();
      endMedia();
      return { messages, paths };
    },
  };
}

const assistantMessage = ({ texts, thoughts, calls }: AssistantTurn) => ({
  role: "assistant",
  content: texts.length > 0 ? texts.join(SEPARATOR) : null,
  ...(thoughts.length > 0 && { reasoning_content: thoughts.join(SEPARATOR) }),
  ...(calls.length > 0 && { tool_calls: calls }),
});
