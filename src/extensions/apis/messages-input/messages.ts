// Translates a client's messages into those of a checked request. A message with tool results
// becomes several, and a tool's images follow its text in a user message. Results follow their
// calls directly, because providers refuse any message between them.
import { textOf, type ContentPart, type Message } from "../../../core/openai/request.ts";
import type { Steps } from "../../../core/turns.ts";
import {
  inputMessage,
  moveToEnd,
  splitResult,
  type Entry,
  type Opener,
  type Path,
  type ToolCall,
} from "../client-apis/index.ts";
import { sealedIn } from "./native-body.ts";
import type { Block, BlockOf, ClientMessage, MessagesRequest } from "./schema.ts";

/**
 * Called with the path of each part that cannot be translated. `value`: the part, if the model
 * reads it; its size then counts towards the prompt.
 */
export type Note = (path: Path, value?: unknown) => void;

/** A message with all parts of its content, and the client's marks for the provider's cache. */
export interface MarkedEntry extends Entry {
  readonly parts: readonly ContentPart[];
}

interface Conversation {
  readonly entries: readonly MarkedEntry[];
  /** The path of the first result that answers no earlier call. Undefined: there is none. */
  readonly orphan: Path | undefined;
  /** The names of tools that the client's tool searches have found, or that `tool_choice` names. */
  readonly found: ReadonlySet<string>;
}

type Parts = readonly ContentPart[];
type Mark = ContentPart["cache_control"];

export function* conversationOf(
  request: MessagesRequest,
  note: Note,
  open: Opener,
): Steps<Conversation> {
  /** A turn is one message with the results of its calls. */
  const turns = new Set<MarkedEntry[]>();
  /** Whether the last turn is a message of the assistant without calls. */
  let endsInText = false;
  /** Turns by the ids of their calls. */
  const callers = new Map<string, MarkedEntry[]>();
  let orphan: Path | undefined;
  const choice = request.tool_choice;
  const found = new Set(choice?.type === "tool" ? [choice.name] : []);

  function addInput(role: "user" | "system", parts: Parts, path: Path): void {
    turns.add([{ message: inputMessage(role, parts.map(withoutMark)), parts, path }]);
    endsInText = false;
  }

  function addUser(blocks: readonly Block[], path: Path): void {
    const parts = blocks.flatMap((block, index) => {
      const place = [...path, index];
      const isResult = block.type === "tool_result";
      return isResult ? addResult(block, place, path) : partsOf(block, place, note);
    });
    const hasResults = blocks.some(({ type }) => type === "tool_result");
    if (!hasResults || parts.length > 0) addInput("user", paragraphs(parts), path);
  }

  /** Adds a tool's result. Returns the parts that a tool message cannot hold. */
  function addResult(block: BlockOf<"tool_result">, place: Path, path: Path): Parts {
    const { tool_use_id: tool_call_id, content, is_error, cache_control } = block;
    const parts = allPartsOf(content, [...place, "content"], note);
    for (const block of content) if (block.type === "tool_reference") found.add(block.tool_name);
    const { text, media } = splitResult(tool_call_id, parts, "\n");
    const isMarked = (part: ContentPart) => part.type === "text" && part.cache_control;
    const mark = cache_control ?? parts.findLast(isMarked)?.cache_control;
    // Chat completions has no field for a failed call.
    const part = textPart(is_error ? `Error: ${text}` : text, mark);
    const message: Message = { role: "tool", tool_call_id, content: textOf([part]) };
    const caller = callers.get(tool_call_id);
    if (caller) {
      caller.push({ message, parts: [part], path });
      // A text that the assistant wrote after its calls is moved before them: as the last message
      // it would be a prefill.
      if (endsInText) moveToEnd(turns, caller);
      endsInText = false;
    } else {
      // The call may be in a conversation that the provider stores. Only a native request can refer
      // to one, so this message only serves to count tokens.
      orphan ??= [...place, "tool_use_id"];
      addInput("user", [part], path);
    }
    return media;
  }

  /** `thoughts` become the reasoning of the message. */
  function addAssistant(blocks: readonly Block[], path: Path, thoughts: readonly string[]): void {
    const parts = allPartsOf(blocks, path, note);
    const tool_calls: ToolCall[] = [];
    const turn: MarkedEntry[] = [];
    for (const block of blocks) {
      if (block.type !== "tool_use") continue;
      const { id, name, input } = block;
      callers.set(id, turn);
      const called = { name, arguments: JSON.stringify(input) };
      tool_calls.push({ id, type: "function", function: called });
    }
    const content = parts.length === 0 && tool_calls.length > 0 ? null : textOf(parts);
    const reasoning_content = thoughts.join("\n") || undefined;
    const message: Message = { role: "assistant", content, reasoning_content, tool_calls };
    turn.push({ message, parts, path });
    turns.add(turn);
    endsInText = tool_calls.length === 0;
  }

  function addMessage({ role, content }: ClientMessage, path: Path, thoughts: string[]): void {
    if (content === undefined) return; // an instruction that only sets output_config
    if (role === "user") addUser(content, path);
    else if (role === "assistant") addAssistant(content, path, thoughts);
    else addInput(role, systemParts(content, path, note), path);
  }

  const system = systemParts(request.system ?? [], ["system"], note);
  if (system.length > 0) addInput("system", system, ["system"]);
  for (const [index, message] of request.messages.entries()) {
    if (message.role === "system" && (message.clear_at ?? "never") !== "never")
      note(["messages", index, "clear_at"]);
    const path = ["messages", index, "content"];
    addMessage(message, path, yield* thoughtsIn(message, path, open));
    yield;
  }
  return { entries: [...turns].flat(), orphan, found };
}

/** The readable thoughts of a message. Pauses after each: opening a sealed one takes time. */
function* thoughtsIn({ content }: ClientMessage, path: Path, open: Opener): Steps<string[]> {
  const thoughts: string[] = [];
  for (const [index, block] of (content ?? []).entries()) {
    if (block.type !== "thinking") continue;
    const { thinking, signature } = block;
    const sealed = thinking === "" ? sealedIn(signature) : undefined;
    const thought = sealed === undefined ? thinking : open(sealed, [...path, index, "signature"]);
    if (thought) thoughts.push(thought);
    yield;
  }
  return thoughts;
}

/** A text part. It keeps the client's mark for the provider's cache. */
const textPart = (text: string, cache_control?: Mark): ContentPart =>
  cache_control ? { type: "text", text, cache_control } : { type: "text", text };

const withoutMark = ({ cache_control: _, ...part }: ContentPart): ContentPart => part;

/**
 * Claude Code begins its first system text with a line for its vendor's billing. The line is not an
 * instruction, so the model does not get it.
 */
const BILLING = "x-anthropic-billing-header:";

/** The parts of system texts, as paragraphs of one text. `path`: the path of `blocks`. */
function systemParts(blocks: readonly Block[], path: Path, note: Note): Parts {
  const parts = allPartsOf(blocks, path, note).flatMap((part) => {
    if (part.type !== "text" || !part.text.startsWith(BILLING)) return [part];
    const [, ...lines] = part.text.split("\n");
    const text = lines.join("\n").replace(/^\n+/, "");
    return text.trim() === "" ? [] : [{ ...part, text }];
  });
  return paragraphs(parts);
}

/** Separates consecutive texts by blank lines, because they are joined without a separator. */
const paragraphs = (parts: Parts): Parts =>
  parts.map((part, index) => {
    const isNext = part.type === "text" && parts[index - 1]?.type === "text";
    return isNext ? { ...part, text: `\n\n${part.text}` } : part;
  });

/** `path`: the path of `blocks`. */
const allPartsOf = (blocks: readonly Block[], path: Path, note: Note): Parts =>
  blocks.flatMap((block, index) => partsOf(block, [...path, index], note));

/** The parts of one block. The last one gets the block's mark for the provider's cache. */
function partsOf(block: Block, path: Path, note: Note): Parts {
  const parts = plainPartsOf(block, path, note);
  const cache_control = "cache_control" in block ? block.cache_control : undefined;
  if (!cache_control) return parts;
  return parts.map((part, at) => (at === parts.length - 1 ? { ...part, cache_control } : part));
}

function plainPartsOf(block: Block, path: Path, note: Note): Parts {
  switch (block.type) {
    case "text":
      return [textPart(block.text)];
    case "image":
      return imageParts(block, [...path, "source"], note);
    case "document":
      return documentParts(block, path, note);
    case "tool_reference":
      return [textPart(`The tool ${block.tool_name} can be called now.`)];
    case "unknown":
      note(path, block.value);
  }
  return [];
}

const dataUrl = (source: { readonly media_type: string; readonly data: string }): string =>
  `data:${source.media_type};base64,${source.data}`;

function imageParts({ source }: BlockOf<"image">, path: Path, note: Note): Parts {
  if (source.type === "unknown") {
    note(path, source.value);
    return [];
  }
  const url = source.type === "url" ? source.url : dataUrl(source);
  return [{ type: "image_url", image_url: { url, detail: undefined } }];
}

function documentParts(document: BlockOf<"document">, path: Path, note: Note): Parts {
  const { source, title, context, citations } = document;
  if (citations?.enabled) note([...path, "citations"], citations);
  const head = [title, context].filter((text) => text !== undefined);
  const place = [...path, "source"];
  switch (source.type) {
    case "base64": {
      const file = { filename: title ?? "document.pdf", file_data: dataUrl(source) };
      return [...(context ? [textPart(context)] : []), { type: "file", file }];
    }
    case "url":
      // Only native requests can have a URL. The part counts as a file of unknown size.
      note(place, source);
      return [{ type: "file", file: { file_url: source.url } }];
    case "text":
      return [textPart([...head, source.data].join("\n\n"))];
    case "content": {
      const parts = allPartsOf(source.content, [...place, "content"], note);
      return [...head.map((text) => textPart(text)), ...parts];
    }
    case "unknown":
      note(place, source.value);
      return [];
  }
}
