// `cache_control` on the parts of messages and on tools: the client's marks for a provider's cache.
// The check of a request joins texts and knows no marks. They are taken from the JSON again, so
// that a dialect can send the parts as they were. In a request with a mark every message keeps its
// parts: clients move their marks, and a message must go out the same when its mark is gone.
import type { Installer } from "../../../core/extension/installer.ts";
import { moments } from "../../../core/extension/places.ts";
import type { ChatRequest, ContentPart, Message } from "../../../core/openai/request.ts";
import { jsonObject, lenient, makeCheck } from "../../../core/schema/checker.ts";
import { asArray, asObject, asString } from "../../../core/schema/untrusted-json.ts";

/** A mark is a small object. A larger one, or none, counts as absent. */
export const mark = lenient(jsonObject({ maxValues: 100 }));

export function install(gateway: Installer): void {
  gateway.on(moments.extendRequest, (check) =>
    makeCheck(check.schema, (json, all) => withCacheMarks(check(json, all), json)),
  );
}

/** The request with the marks that its JSON has. The JSON has passed the check. */
function withCacheMarks(chat: ChatRequest, json: unknown): ChatRequest {
  const { messages: given, tools } = asObject(json);
  const written = asArray(given);
  const toolMarks = marksOfTools(tools);
  if (toolMarks.size === 0 && !written.some(hasMarks)) return chat;
  const messages = chat.messages.map((message, index) =>
    withParts(message, allParts(message, written[index])),
  );
  return { ...chat, messages, toolMarks };
}

/** The message with all its parts, as they were written, and their marks. */
export function withParts(message: Message, parts: readonly ContentPart[]): Message {
  const marked = withoutBlanks(parts);
  return marked.length > 0 ? { ...message, marked } : message;
}

/** By the names of the tools. */
function marksOfTools(tools: unknown): ReadonlyMap<string, object> {
  const marks = new Map<string, object>();
  for (const tool of asArray(tools)) {
    const name = asString(asObject(asObject(tool)["function"])["name"]);
    const found = markIn(tool);
    if (found && name !== undefined) marks.set(name, found);
  }
  return marks;
}

const partsIn = (message: unknown): readonly unknown[] => asArray(asObject(message)["content"]);
const markIn = (marked: unknown) => mark(asObject(marked)["cache_control"]);

const hasMarks = (message: unknown): boolean =>
  partsIn(message).some((part) => markIn(part) !== undefined);

/**
 * The parts of a message: texts as they were written, all others as they were checked. What was
 * written as a string is one part: many clients make a list of it only while it has a mark.
 */
function allParts({ content }: Message, given: unknown): readonly ContentPart[] {
  if (typeof content === "string" && !Array.isArray(asObject(given)["content"]))
    return [{ type: "text", text: content }];
  return partsIn(given).map((part, index) => {
    const { type, text, refusal } = asObject(part);
    const checked = Array.isArray(content) ? content[index] : undefined;
    const isText = type === "text" || type === "refusal" || !checked;
    const plain = isText
      ? { type: "text" as const, text: asString(text ?? refusal) ?? "" }
      : checked;
    const cache_control = markIn(part);
    return cache_control ? { ...plain, cache_control } : plain;
  });
}

/**
 * Providers refuse parts of blanks alone. They become the end of the text before them, and their
 * mark becomes that of the part before them. At the beginning of a message they say nothing.
 */
function withoutBlanks(parts: readonly ContentPart[]): readonly ContentPart[] {
  const kept: ContentPart[] = [];
  for (const part of parts) {
    const last = kept.at(-1);
    if (part.type !== "text" || part.text.trim() !== "") kept.push(part);
    else if (last) {
      const { text, cache_control = last.cache_control } = part;
      const longer = last.type === "text" ? { ...last, text: last.text + text } : last;
      kept.splice(-1, 1, cache_control ? { ...longer, cache_control } : longer);
    }
  }
  return kept;
}
