// `cache_control` on the parts of messages and on tools: the client's marks for a provider's cache.
// The check of a request joins texts and drops marks, so this extension reads both from the JSON,
// and a dialect can send the parts as they were written. In a request with a mark every message
// keeps its parts: clients move their marks, and a message must look the same without its mark.
import type { Installer } from "../../../core/extension/installer.ts";
import { hooks } from "../../../core/extension/places.ts";
import type { ChatRequest, ContentPart, Message } from "../../../core/openai/request.ts";
import { jsonObject, lenient, makeCheck } from "../../../core/schema/checker.ts";
import { asArray, asObject, asString } from "../../../core/schema/untrusted-json.ts";

/** A mark is a small object. A larger one, or none, counts as absent. */
export const mark = lenient(jsonObject({ maxValues: 100 }));

export function install(gateway: Installer): void {
  gateway.on(hooks.extendRequest, (check) =>
    makeCheck(check.schema, (json, all) => withCacheMarks(check(json, all), json)),
  );
}

/** The request with the marks that its JSON has. The JSON has passed the check. */
function withCacheMarks(chat: ChatRequest, json: unknown): ChatRequest {
  const { messages: list, tools } = asObject(json);
  const written = asArray(list);
  const toolMarks = marksOfTools(tools);
  if (toolMarks.size === 0 && !written.some(hasMarks)) return chat;
  const messages = chat.messages.map((message, index) =>
    withParts(message, allParts(message, written[index])),
  );
  return { ...chat, messages, toolMarks };
}

/** Adds to a message all its parts, as they were written, with their marks. */
export function withParts(message: Message, parts: readonly ContentPart[]): Message {
  const marked = withoutBlanks(parts);
  return marked.length > 0 ? { ...message, marked } : message;
}

/** The marks of tools, by the names of the tools. */
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
const markIn = (owner: unknown) => mark(asObject(owner)["cache_control"]);

const hasMarks = (message: unknown): boolean =>
  partsIn(message).some((part) => markIn(part) !== undefined);

/**
 * The parts of a message: texts as they were written, all others as they were checked. A string is
 * one part, because many clients write it as a list only while it has a mark.
 */
function allParts({ content }: Message, written: unknown): readonly ContentPart[] {
  if (typeof content === "string" && !Array.isArray(asObject(written)["content"]))
    return [{ type: "text", text: content }];
  return partsIn(written).map((part, index) => {
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
 * Providers refuse parts that have only blanks. Such a part is appended to the text before it, and
 * its mark goes to the part before it. At the beginning of a message it is dropped.
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
