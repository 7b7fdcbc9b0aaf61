// The reply of a server that speaks OpenAI's format in its own way, event by event. This is the hot
// path of a stream.
import { type Part, tokenLogprob } from "../../../core/openai/parts.ts";
import type { UsageReport } from "../../../core/openai/usage.ts";
import { textPart, withUsage } from "../../../core/providers/decoding.ts";
import type { Decoder } from "../../../core/providers/dialect.ts";
import type { Traits } from "../../../core/providers/traits.ts";
import { asArray, asCount, asObject } from "../../../core/schema/untrusted-json.ts";
import { finishPart, throwErrorIn } from "../provider-words/index.ts";
import { createTextReader, noTexts, type Texts } from "./content.ts";
import { createThinkTagSplitter } from "./think-tags.ts";
import { createToolCallReader } from "./tool-calls.ts";
import { usageIn } from "./usage.ts";

export function createCompatibleDecoder(traits: Traits): Decoder {
  const splitTags = createThinkTagSplitter(traits.think_tags);
  const readTexts = createTextReader(traits.repeats_reasoning);
  const toolCalls = createToolCallReader();
  let isTaggedTwice = false; // reasoning in tags is stated beside the text too (MiniMax)
  let hasContent = false;
  let hasDeltas = false; // deltas with content
  let hasUsage = false;
  let hasFinish = false;

  /** The parts of the texts. `isLast`: includes text that was held back. */
  function textParts(
    { text, reasoning, refusal }: Texts,
    logprobs: Record<string, unknown>,
    isLast: boolean,
  ): Part[] {
    const { text: untagged, reasoning: tagged } = splitTags(text, isLast);
    if (tagged !== "" && reasoning !== "")
      isTaggedTwice ||= reasoning.trim().startsWith(tagged.trim());
    const thoughts = reasoning + (isTaggedTwice ? "" : tagged);
    const split = splitLogprobs(logprobs, thoughts, untagged);
    const parts = textPart("reasoning", thoughts, split.reasoning);
    parts.push(...textPart("text", untagged, split.text));
    if (refusal !== "" || logprobs["refusal"])
      parts.push(...textPart("refusal", refusal, logprobs["refusal"]));
    return parts;
  }

  /**
   * `at`: the position of the choice in its event. Copilot's calls are in a choice of their own.
   */
  function choiceParts(stated: unknown, at: number): Part[] {
    const choice = asObject(stated);
    throwErrorIn(choice);
    const index = asCount(choice["index"]) ?? at;
    const isDelta = isStated(choice["delta"]);
    const finish = finishPart(choice["finish_reason"]);
    // Older servers leave the reason null in whole replies.
    const isLast = finish.length > 0 || (!isDelta && isStated(choice["message"]));
    // A whole message after deltas repeats them (MiniMax).
    const message = hasDeltas && !isDelta ? {} : messageIn(choice);

    const calls = callsIn(message);
    // A call releases the text before it that was held back as a possible tag.
    const isTextDue = isLast || calls.length > 0;
    const parts = textParts(readTexts(message, index), asObject(choice["logprobs"]), isTextDue);
    if (calls.length > 0)
      parts.push(...toolCalls.read({ calls, choice: index, isWhole: !isDelta }));
    hasContent ||= parts.length > 0;
    hasDeltas ||= isDelta && parts.length > 0;
    hasFinish ||= finish.length > 0;
    if (isLast) parts.push(...toolCalls.end());
    parts.push(...finish);
    return parts;
  }

  function push(json: unknown): Part[] {
    const event = asObject(json);
    throwErrorIn(event);
    const choices = asArray(event["choices"]);
    return choices.length === 1 ? choiceParts(choices[0], 0) : choices.flatMap(choiceParts);
  }

  /** Ends a reply that stated its usage, but no finish reason (Novita, Snowflake). */
  function done(): Part[] {
    if (hasFinish || !(traits.done_without_finish ?? hasUsage)) return [];
    const parts = [...toolCalls.end(), ...textParts(noTexts(), {}, true)];
    if (!hasContent && parts.length === 0) return [];
    return [...parts, { type: "finish", reason: "stop" }];
  }

  function usageOf(event: unknown): UsageReport | undefined {
    const usage = usageIn(event, traits.hidden_thinking_in_total);
    hasUsage ||= usage !== undefined;
    return usage;
  }

  return withUsage(usageOf, { push, done });
}

/** The message of a choice: a delta, a message, or only a text. */
function messageIn({ delta, message, text }: Record<string, unknown>): Record<string, unknown> {
  const stated = delta ?? message ?? text;
  return typeof stated === "string" ? { content: stated } : asObject(stated);
}

const isStated = (value: unknown): boolean => value !== undefined && value !== null;

/** The tool calls of a message, or fragments of them. `function_call` is the older form of one. */
function callsIn(message: Record<string, unknown>): readonly Record<string, unknown>[] {
  const { tool_calls, function_call } = message;
  const calls = Array.isArray(tool_calls) ? tool_calls : [tool_calls].filter(isStated);
  if (calls.length === 0 && isStated(function_call)) return [{ index: 0, function: function_call }];
  return calls.map(asObject);
}

/**
 * The log probabilities of the reasoning and of the text, as the provider lists them. Some servers
 * list both under `content`, the reasoning's first. Then the last tokens, as many as the text has
 * bytes, belong to the text, and so does the one after them that ends the reply (vLLM). The others
 * belong to the reasoning, and stay hidden where the reasoning does.
 */
export function splitLogprobs(
  { content, reasoning_content }: Record<string, unknown>,
  reasoning: string,
  text: string,
) {
  if (reasoning === "" || !Array.isArray(content) || Array.isArray(reasoning_content))
    return { reasoning: reasoning_content, text: content };
  const bytes = Buffer.from(text);
  const last = bytesOf(content.at(-1));
  const isEnd = text !== "" && !bytes.subarray(-last.length).equals(last);
  let first = content.length;
  let missing = bytes.length + (isEnd ? last.length : 0);
  while (first > 0 && missing > 0) {
    first -= 1;
    missing -= bytesOf(content[first]).length;
  }
  return { reasoning: content.slice(0, first), text: content.slice(first) };
}

/** The bytes of a listed token, which may be a part of a character. */
function bytesOf(listed: unknown): Buffer {
  const { token, bytes } = tokenLogprob(listed);
  return bytes ? Buffer.from(bytes) : Buffer.from(token);
}
