// The reply of an OpenAI-compatible provider, event by event. This is the hot path of a stream.
import { tokenLogprob } from "../../openai/logprobs.ts";
import type { Part, TextPart } from "../../openai/parts.ts";
import { asArray, asObject, asString } from "../../schema/untrusted-json.ts";
import { withUsage } from "../decoding.ts";
import type { Decoder } from "../dialect.ts";
import { finishPart } from "../finish-reasons.ts";
import { throwErrorIn } from "../refusal.ts";
import type { Traits } from "../traits.ts";
import { splitLogprobs } from "./logprobs.ts";
import { createThinkTagSplitter } from "./think-tags.ts";
import { createToolCallReader } from "./tool-calls.ts";
import { usageIn } from "./usage.ts";

/** The first choice. The gateway never asks for a second one. */
export const choiceIn = (json: unknown) => asObject(asArray(asObject(json)["choices"])[0]);

export function createOpenaiDecoder(traits: Traits): Decoder {
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
