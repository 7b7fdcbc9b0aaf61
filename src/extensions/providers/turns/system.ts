// Joins system messages, and turns them into user messages where a format has no other place for
// them.
import type { ContentPart, Message } from "../../../core/openai/request.ts";

export type SystemMessage = Extract<Message, { readonly role: "system" }>;

/** Precedes a system text in a user turn, because the user did not write it. */
const SYSTEM_HEADING = "(What follows is an instruction of the system.)\n";

/**
 * Turns a system message into a user message. Keeps the client's marks for the provider's cache.
 */
export const asUserMessage = ({ content, marked }: SystemMessage): Message => ({
  role: "user",
  content: SYSTEM_HEADING + content,
  marked: marked && preceded(SYSTEM_HEADING, marked),
});

/** Joins system messages as paragraphs. The result has parts if one has a mark for the cache. */
export function joinedSystem(system: readonly SystemMessage[]): SystemMessage {
  const content = system.map((message) => message.content).join("\n\n");
  if (system.every(({ marked }) => marked === undefined)) return { role: "system", content };
  const marked = paragraphs(system.map((message) => message.marked ?? message.content));
  return { role: "system", content, marked };
}

/** The parts of several contents, each a paragraph. */
export const paragraphs = (contents: readonly (string | readonly ContentPart[])[]) =>
  contents.map(partsOf).flatMap((parts, index) => (index === 0 ? parts : preceded("\n\n", parts)));

const partsOf = (content: string | readonly ContentPart[]): readonly ContentPart[] =>
  typeof content === "string" ? [{ type: "text", text: content }] : content;

/** Puts a text at the beginning of the first part, if that is a text. */
const preceded = (text: string, parts: readonly ContentPart[]): readonly ContentPart[] =>
  parts.map((part, index) =>
    index === 0 && part.type === "text" ? { ...part, text: text + part.text } : part,
  );
