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

/** A message of the user, or a text of the system. */
export const inputMessage = (role: "user" | "system", content: string | ContentPart[]): Message =>
  role === "user" ? { role, content: joinText(content) } : { role, content: textOf(content) };

/** Ends the text of a result whose images and files follow. */
const SHOWN_BELOW = "(What the tool shows follows in the next message.)";

/**
 * The result of a tool call. In chat completions it is a text: its images and files follow in a
 * message of the user, below a heading.
 */
export function resultOf(callId: string, parts: readonly ContentPart[], separator: string) {
  const shown = parts.filter(({ type }) => type !== "text");
  const texts = parts.flatMap((part) => (part.type === "text" ? [part.text] : []));
  const text = texts.join(separator);
  if (shown.length === 0) return { text, shown };
  const heading: ContentPart = { type: "text", text: `What the tool call ${callId} shows:` };
  return {
    text: text === "" ? SHOWN_BELOW : `${text}\n${SHOWN_BELOW}`,
    shown: [heading, ...shown],
  };
}

/** Throws the ValidationError for a result at a place. */
export const refuseResult = (path: Path): never =>
  fail("invalid_value", "answers no tool call of an assistant message before it", path);

/**
 * The members of a request that follow from its messages. `places`: the members of the checked
 * request that have another place in the client's own, for errors.
 */
export function requestOf(entries: readonly Entry[], places: Readonly<Record<string, Path>>) {
  const placeOf = (member: string): Path => places[member] ?? [member];
  if (entries.length === 0)
    fail("invalid_value", "expected at least 1 element, got 0", placeOf("messages"));
  return {
    messages: entries.map(({ message }) => message),
    includeUsage: false,
    clientPath([first, index]: Path): (string | number)[] {
      const member = String(first);
      const entry = member === "messages" ? entries[Number(index)] : undefined;
      return [...(entry?.path ?? placeOf(member))];
    },
  };
}
