// Parses texts of a conversation that are objects in a native format.
import type { Message } from "../../../core/openai/request.ts";
import { jsonObject, lenient } from "../../../core/schema/checker.ts";
import { parseJson } from "../../../core/schema/untrusted-json.ts";
import { createJsonCounter, type JsonCounter } from "../../bounds/json-bounds/index.ts";

/** Counts the texts of one request. */
export type TextCounter = JsonCounter;

/**
 * The most values in the parsed texts of one request, which are parsed and processed in one turn of
 * the event loop.
 */
const MAX_TEXT_VALUES = 200_000;
/** The most new property names in them. */
const MAX_TEXT_NAMES = 20_000;

/** The counter of one request. A text beyond its bounds is not parsed. */
export const createTextCounter = (): TextCounter =>
  createJsonCounter(MAX_TEXT_VALUES, MAX_TEXT_NAMES);

const object = lenient(jsonObject());

/**
 * The JSON object in a text. Undefined if the text is none, is nested too deeply to be serialized
 * again, or exceeds the bounds together with the texts before it.
 */
export const objectIn = (text: string, texts: TextCounter): Record<string, unknown> | undefined =>
  mayBeObject(text) && texts.add(text) === undefined ? object(parseJson(text)) : undefined;

/** The arguments of a call as an object. A model wrote them: they need not be JSON. */
export const argumentsIn = (text: string, texts: TextCounter): Record<string, unknown> =>
  objectIn(text || "{}", texts) ?? { _raw: text };

/** Avoids parsing other texts. */
const mayBeObject = (text: string): boolean => text.trimStart().startsWith("{");

/**
 * Wraps the arguments of calls that are no JSON object within the bounds of objectIn, such as those
 * of a reply that was cut off. vLLM and llama.cpp parse all of them, and would refuse each further
 * request of the conversation.
 */
export function withParsableArguments(messages: readonly Message[]): readonly Message[] {
  const texts = createTextCounter();
  return messages.map((message) => {
    if (message.role !== "assistant" || message.tool_calls.length === 0) return message;
    const tool_calls = message.tool_calls.map((call) => {
      const { name, arguments: text } = call.function;
      return { ...call, function: { name, arguments: parsable(text, texts) } };
    });
    return { ...message, tool_calls };
  });
}

const parsable = (text: string, texts: TextCounter): string =>
  objectIn(text, texts) ? text : JSON.stringify(argumentsIn(text, texts));
