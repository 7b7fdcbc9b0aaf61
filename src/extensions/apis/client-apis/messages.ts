// Shared by further APIs: builds the messages of a checked request.
import { joinText, textOf, type ContentPart, type Message } from "../../../core/openai/request.ts";
import { fail, type ValidationIssue } from "../../../core/schema/checker.ts";

export type Path = ValidationIssue["path"];

/** A call in a message of an assistant. */
export type ToolCall = Extract<Message, { readonly role: "assistant" }>["tool_calls"][number];

/** A message of the checked request. */
export interface Entry {
  readonly message: Message;
  /** The path of its content in the client's request. */
  readonly path: Path;
}

/** A user message, or a system message, which has only text. */
export const inputMessage = (role: "user" | "system", content: string | ContentPart[]): Message =>
  role === "user" ? { role, content: joinText(content) } : { role, content: textOf(content) };

/** Ends the text of a result whose images and files are in the next message. */
const MEDIA_FOLLOW = "(What the tool shows follows in the next message.)";

/**
 * Splits the result of a tool call. Chat completions only takes text there, so images and files go
 * into a user message, below a heading.
 */
export function splitResult(callId: string, parts: readonly ContentPart[], separator: string) {
  const media = parts.filter(({ type }) => type !== "text");
  const texts = parts.flatMap((part) => (part.type === "text" ? [part.text] : []));
  const text = texts.join(separator);
  if (media.length === 0) return { text, media };
  const heading: ContentPart = { type: "text", text: `What the tool call ${callId} shows:` };
  return {
    text: text === "" ? MEDIA_FOLLOW : `${text}\n${MEDIA_FOLLOW}`,
    media: [heading, ...media],
  };
}

/** Moves an element to the end of a set, in constant time. */
export function moveToEnd<T>(set: Set<T>, element: T): void {
  set.delete(element);
  set.add(element);
}

/** Throws the ValidationError for a result without a call. */
export const refuseOrphan = (path: Path): never =>
  fail("invalid_value", "answers no tool call of an assistant message before it", path);

/**
 * The fields of a checked request that follow from its messages. `paths`: the client's paths, for
 * errors, of the fields that have another path in the client's request.
 */
export function messageFields(entries: readonly Entry[], paths: Readonly<Record<string, Path>>) {
  const pathOf = (field: string): Path => paths[field] ?? [field];
  if (entries.length === 0)
    fail("invalid_value", "expected at least 1 element, got 0", pathOf("messages"));
  return {
    messages: entries.map(({ message }) => message),
    includeUsage: false,
    clientPath([first, index]: Path): (string | number)[] {
      const field = String(first);
      const entry = field === "messages" ? entries[Number(index)] : undefined;
      return [...(entry?.path ?? pathOf(field))];
    },
  };
}
