// `cache_control` on the parts of messages: the client's marks for a provider's cache. The check of
// a request joins texts and knows no marks; they are taken from the JSON again, so that a dialect
// can send the parts as they were.
import type { Extension } from "../../core/extension/extension.ts";
import type { ChatRequest, ContentPart, Message } from "../../core/openai/request.ts";
import { jsonObject, lenient } from "../../core/schema/checker.ts";
import { asArray, asObject, asString } from "../../core/schema/untrusted-json.ts";

/** A mark is a small object. A larger one, or none, counts as absent. */
const mark = lenient(jsonObject({ maxValues: 100 }));

export const extension: Extension = { name: "cache-marks", annotate: withCacheMarks };

/** The request with the marks that its JSON has. The JSON has passed the check. */
export function withCacheMarks(chat: ChatRequest, json: unknown): ChatRequest {
  const written = asArray(asObject(json)["messages"]);
  if (!written.some(hasMarks)) return chat;
  const messages = chat.messages.map((message, index) => {
    const given = written[index];
    return hasMarks(given) ? { ...message, marked: markedParts(message, given) } : message;
  });
  return { ...chat, messages };
}

const partsIn = (message: unknown): readonly unknown[] => asArray(asObject(message)["content"]);
const markIn = (part: unknown) => mark(asObject(part)["cache_control"]);

const hasMarks = (message: unknown): boolean =>
  partsIn(message).some((part) => markIn(part) !== undefined);

/** The parts of a message: texts as they were written, all others as they were checked. */
const markedParts = ({ content }: Message, given: unknown): readonly ContentPart[] =>
  partsIn(given).map((part, index) => {
    const { type, text, refusal } = asObject(part);
    const checked = Array.isArray(content) ? content[index] : undefined;
    const isText = type === "text" || type === "refusal" || !checked;
    const plain = isText
      ? { type: "text" as const, text: asString(text ?? refusal) ?? "" }
      : checked;
    const cache_control = markIn(part);
    return cache_control ? { ...plain, cache_control } : plain;
  });
