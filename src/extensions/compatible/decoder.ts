// The reply of a server that speaks OpenAI's format in its own way, event by event. This is the hot
// path of a stream.
import { type Part, type TextPart, tokenLogprob } from "../../core/openai/parts.ts";
import { withUsage } from "../../core/providers/decoding.ts";
import type { Decoder } from "../../core/providers/dialect.ts";
import { choiceIn } from "../../core/providers/openai/decoder.ts";
import type { Traits } from "../../core/providers/traits.ts";
import { asArray, asObject, asString } from "../../core/schema/untrusted-json.ts";
import { finishPart, throwErrorIn } from "../provider-words/index.ts";
import { createThinkTagSplitter } from "./think-tags.ts";
import { createToolCallReader } from "./tool-calls.ts";
import { usageIn } from "./usage.ts";

export function createCompatibleDecoder(traits: Traits): Decoder {
  const splitTags = traits.think_tags ? createThinkTagSplitter() : withoutTags;
  const toolCalls = createToolCallReader();
  let lastReasoning = "";

  /** The reasoning that a message states beside its text. */
  function reasoningIn(message: Record<string, unknown>): string {
    const stated = asString(message["reasoning_content"]) || asString(message["reasoning"]) || "";
    const isRepeated = traits.repeats_reasoning && stated === lastReasoning;
    lastReasoning = stated;
    return thoughtsIn(message["content"]) + (isRepeated ? "" : stated);
  }

  function push(json: unknown): Part[] {
    const event = asObject(json);
    const choice = choiceIn(event);
    throwErrorIn(event);
    throwErrorIn(choice);
    const message = asObject(choice["delta"] ?? choice["message"]);
    const finishReason = asString(choice["finish_reason"]);
    // Older servers leave the reason null in whole replies.
    const isLast = Boolean(finishReason) || choice["message"] !== undefined;

    const content = textIn(message["content"]);
    const { text, reasoning: tagged } = splitTags(content, isLast);
    const reasoning = tagged + reasoningIn(message);
    const refusal = asString(message["refusal"]) ?? "";
    const logprobs = asObject(choice["logprobs"]);
    const split = splitLogprobs(logprobs, reasoning, text);

    const parts: Part[] = [];
    const texts = [
      textPart("reasoning", reasoning, split.reasoning),
      textPart("text", text, split.text),
      textPart("refusal", refusal, logprobs["refusal"]),
    ];
    for (const part of texts) if (part) parts.push(part);
    for (const fragment of asArray(message["tool_calls"]))
      parts.push(...toolCalls.read(asObject(fragment)));
    if (isLast) toolCalls.end();
    parts.push(...finishPart(finishReason));
    return parts;
  }

  return withUsage((event) => usageIn(event, traits.hidden_thinking_in_total), { push });
}

/** A part with this text and these log probabilities. Undefined if there are neither. */
function textPart(type: TextPart["type"], text: string, stated: unknown): TextPart | undefined {
  const logprobs =
    Array.isArray(stated) && stated.length > 0 ? stated.map(tokenLogprob) : undefined;
  return text !== "" || logprobs ? { type, text, logprobs } : undefined;
}

const withoutTags = (text: string) => ({ text, reasoning: "" });

/** The text of a content that is a string, or a list of parts. */
const textIn = (content: unknown): string =>
  asString(content) ??
  asArray(content)
    .map((part) => asString(asObject(part)["text"]) ?? "")
    .join("");

/**
 * The reasoning of a content that is a list of parts: a part may have a list of its own under
 * `thinking` (Mistral).
 */
const thoughtsIn = (content: unknown): string =>
  asArray(content)
    .map((part) => textIn(asObject(part)["thinking"]))
    .join("");

/** Two lists of tokens as the provider sent them. */
interface SplitLogprobs {
  readonly reasoning: unknown;
  readonly text: unknown;
}

/**
 * Some servers list the tokens of both under `content`, the reasoning's first. Those that the text
 * does not need, counted from its end in bytes, are the reasoning's, and stay hidden where the
 * reasoning does.
 */
export function splitLogprobs(
  { content, reasoning_content }: Record<string, unknown>,
  reasoning: string,
  text: string,
): SplitLogprobs {
  if (reasoning === "" || !Array.isArray(content) || Array.isArray(reasoning_content))
    return { reasoning: reasoning_content, text: content };
  let first = content.length;
  let missing = Buffer.byteLength(text);
  while (first > 0 && missing > 0) {
    first -= 1;
    const { token, bytes } = tokenLogprob(content[first]);
    missing -= bytes?.length ?? Buffer.byteLength(token);
  }
  return { reasoning: content.slice(0, first), text: content.slice(first) };
}
