// The messages of a client as those of a checked request: one that answers tool calls becomes
// several, and what a tool showed beside its text follows in a message of the user.
import { joinText, textOf, type ContentPart, type Message } from "../../core/openai/request.ts";
import type { Steps } from "../../core/turns.ts";
import { SHOWN_BELOW, shownHeading } from "../client-apis/index.ts";
import {
  blockParts,
  noteUnknown,
  paragraphs,
  partsOf,
  systemParts,
  textPart,
  type Note,
  type Path,
} from "./content.ts";
import type {
  AssistantBlock,
  ClientMessage,
  MessagesRequest,
  ResultBlock,
  UserBlock,
} from "./schema.ts";

type ToolCall = Extract<Message, { readonly role: "assistant" }>["tool_calls"][number];

/** A message of the checked request. */
export interface Entry {
  readonly message: Message;
  /** All parts of its content, with the client's marks for the provider's cache. */
  readonly parts: readonly ContentPart[];
  /** Where the content stood in the client's request. */
  readonly path: Path;
}

interface Conversation {
  readonly entries: readonly Entry[];
  /** The place of the first result that answers no call before it. Undefined: there is none. */
  readonly orphan: Path | undefined;
}

export function* conversationOf(request: MessagesRequest, note: Note): Steps<Conversation> {
  const entries: Entry[] = [];
  const calls = new Set<string>();
  let orphan: Path | undefined;

  function addUser(blocks: readonly UserBlock[], path: Path): void {
    const shown: ContentPart[] = [];
    let hasResults = false;
    for (const [index, block] of blocks.entries()) {
      const place = [...path, index];
      const isResult = block.type === "tool_result";
      const own = isResult ? addResult(block, place, path) : blockParts(block, place, note);
      hasResults ||= isResult;
      // One by one: a call with 100,000 arguments would overflow the stack.
      for (const part of own) shown.push(part);
    }
    if (hasResults && shown.length === 0) return;
    entries.push(userEntry(paragraphs(shown), path));
  }

  /** Adds a tool's answer. Returns what it shows that a tool's message cannot hold. */
  function addResult(block: ResultBlock, place: Path, path: Path): readonly ContentPart[] {
    const { tool_use_id } = block;
    const { text, shown } = resultOf(block, [...place, "content"], note);
    if (calls.has(tool_use_id)) entries.push(resultEntry(tool_use_id, text, path));
    else {
      // Its call may be in a part of the conversation that the provider keeps. No other model
      // knows such results: it is a text, which only counts as tokens.
      orphan ??= [...place, "tool_use_id"];
      entries.push(userEntry([text], path));
    }
    return shown.length > 0 ? [textPart(shownHeading(tool_use_id)), ...shown] : [];
  }

  function addMessage({ role, content }: ClientMessage, path: Path): void {
    // Such an instruction only says how much effort the reply is worth.
    if (content === undefined) return;
    if (role === "user") addUser(blocksIn(content), path);
    else if (role === "assistant") {
      const { entry, tool_calls } = assistantEntry(blocksIn(content), path, note);
      for (const { id } of tool_calls) calls.add(id);
      entries.push(entry);
    } else {
      const isText = typeof content === "string";
      const parts = isText ? [textPart(content)] : systemParts(content, path, note);
      entries.push(systemEntry(parts, path));
    }
  }

  const system = systemParts(blocksIn(request.system ?? []), ["system"], note);
  if (system.length > 0) entries.push(systemEntry(system, ["system"]));
  for (const [index, message] of request.messages.entries()) {
    if (message.role === "system" && (message.clear_at ?? "never") !== "never")
      note(["messages", index, "clear_at"], "an instruction that is cleared");
    addMessage(message, ["messages", index, "content"]);
    yield;
  }
  return { entries, orphan };
}

interface PlainText {
  readonly type: "text";
  readonly text: string;
  readonly cache_control: undefined;
}

/** The blocks of a content. A text is one. */
const blocksIn = <B>(content: string | readonly B[]): readonly (B | PlainText)[] =>
  typeof content === "string"
    ? [{ type: "text", text: content, cache_control: undefined }]
    : content;

const systemEntry = (parts: readonly ContentPart[], path: Path): Entry => ({
  message: { role: "system", content: textOf(parts) },
  parts,
  path,
});

const userEntry = (parts: readonly ContentPart[], path: Path): Entry => ({
  message: { role: "user", content: joinText(parts.map(withoutMark)) },
  parts,
  path,
});

const resultEntry = (tool_call_id: string, text: ContentPart, path: Path): Entry => ({
  message: { role: "tool", tool_call_id, content: textOf([text]) },
  parts: [text],
  path,
});

const withoutMark = ({ cache_control: _, ...part }: ContentPart): ContentPart => part;

/** The text of a tool's answer, and what there is beside it. `path`: that of its content. */
function resultOf({ content, is_error, cache_control }: ResultBlock, path: Path, note: Note) {
  const parts = partsOf(content, path, note);
  const texts = parts.filter((part) => part.type === "text");
  const shown = parts.filter((part) => part.type !== "text");
  const lines = texts.map(({ text }) => text);
  if (shown.length > 0) lines.push(SHOWN_BELOW);
  const mark = cache_control ?? texts.findLast((part) => part.cache_control)?.cache_control;
  // Chat completions has no field that says so.
  const text = textPart(`${is_error ? "Error: " : ""}${lines.join("\n")}`, mark);
  return { text, shown };
}

/** Thoughts go back as reasoning. Encrypted ones are for their own provider alone. */
function assistantEntry(blocks: readonly AssistantBlock[], path: Path, note: Note) {
  const texts: ContentPart[] = [];
  const thoughts: string[] = [];
  const tool_calls: ToolCall[] = [];
  for (const [index, block] of blocks.entries()) {
    if (block.type === "text") texts.push(textPart(block.text, block.cache_control));
    else if (block.type === "thinking") thoughts.push(block.thinking);
    else if (block.type === "unknown") noteUnknown([...path, index], block, note);
    else if (block.type === "tool_use") {
      const { id, name, input } = block;
      const called = { name, arguments: JSON.stringify(input) };
      tool_calls.push({ id, type: "function", function: called });
    }
  }
  const content = texts.length === 0 && tool_calls.length > 0 ? null : textOf(texts);
  const reasoning_content = thoughts.join("\n") || undefined;
  const message: Message = { role: "assistant", content, reasoning_content, tool_calls };
  return { entry: { message, parts: texts, path }, tool_calls };
}
