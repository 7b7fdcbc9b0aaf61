// The reply of an OpenAI-compatible provider, event by event. This is the hot path of a stream.
import { randomHex } from "../../ids.ts";
import { type Part, type TextPart, tokenLogprob } from "../../openai/parts.ts";
import type { UsageReport } from "../../openai/usage.ts";
import {
  asArray,
  asCount,
  asObject,
  asString,
  asTokenCount,
  tokenCounter,
} from "../../schema/untrusted-json.ts";
import { finishPart, namelessCall, withUsage } from "../decoding.ts";
import type { Decoder } from "../dialect.ts";
import { ProviderError, throwErrorIn } from "../provider-error.ts";
import type { Traits } from "../traits.ts";
import { createThinkTagSplitter } from "./think-tags.ts";

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

/** The most calls whose name has not arrived: a stream may never end. */
const MAX_NAMELESS = 1_000;
/** The most characters of arguments that are held back until their call has a name. */
const MAX_HELD_CHARS = 1024 * 1024;

interface OpenCall {
  readonly id: string;
  name?: string;
  /** The call's index in the reply. Absent until its name has arrived. */
  index?: number;
  /** Arguments that have not become a part: all of them until the name has arrived. */
  held: string;
}

/** Reads tool calls from fragments. Providers disagree on which fragments belong to one call. */
export function createToolCallReader() {
  /** By the index that the provider states, else by its id. */
  const openCalls = new Map<unknown, OpenCall>();
  let nameless = 0;
  let named = 0;
  /**
   * The key of the latest fragment. A fragment without index, id and name belongs to the same call.
   */
  let lastKey: unknown;

  /** The call that a fragment belongs to. */
  function callOf(index: number | undefined, id: string | undefined, name: string | undefined) {
    lastKey = index ?? id ?? (name === undefined ? lastKey : Symbol());
    const current = openCalls.get(lastKey);
    if (current && !startsAnother(current, id, name)) return current;
    const started: OpenCall = { id: id ?? `call_${randomHex(12)}`, held: "" };
    openCalls.set(lastKey, started);
    nameless += 1;
    if (nameless > MAX_NAMELESS)
      throw new ProviderError("upstream_error", `more than ${MAX_NAMELESS} calls without a name`);
    return started;
  }

  /** The parts of one fragment. Throws a ProviderError if the bounds are exceeded. */
  function read(fragment: Record<string, unknown>): Part[] {
    const { name: statedName, arguments: piece } = asObject(fragment["function"]);
    const id = asString(fragment["id"]) || undefined;
    const name = asString(statedName) || undefined;
    const current = callOf(asCount(fragment["index"]), id, name);
    current.held += argumentsText(piece);
    const parts: Part[] = [];
    if (name !== undefined && current.index === undefined) {
      current.name = name;
      current.index = named;
      named += 1;
      nameless -= 1;
      parts.push({ type: "tool_call", call: current.index, id: current.id, name });
    }
    if (current.index === undefined) {
      if (current.held.length <= MAX_HELD_CHARS) return parts;
      throw new ProviderError("upstream_error", "arguments without end before a call's name");
    }
    if (current.held !== "") {
      parts.push({ type: "tool_arguments", call: current.index, text: current.held });
      current.held = "";
    }
    return parts;
  }

  /** Throws a ProviderError if a call has no name although the reply is complete. */
  function end(): void {
    if (nameless > 0) throw namelessCall();
  }

  return { read, end };
}

/**
 * Some providers give all parallel calls the index 0. Another name, or a name with another id,
 * starts another call.
 */
function startsAnother({ id, name }: OpenCall, otherId?: string, otherName?: string): boolean {
  if (name === undefined || otherName === undefined) return false;
  return otherName !== name || (otherId !== undefined && otherId !== id);
}

/** Some servers send the arguments as an object. */
function argumentsText(piece: unknown): string {
  if (piece === undefined || piece === null) return "";
  return asString(piece) ?? JSON.stringify(piece);
}

/**
 * The usage of an event, in any of the three places where providers put it. Undefined: it states
 * none.
 */
export function usageIn(json: unknown, hiddenThinkingInTotal: boolean): UsageReport | undefined {
  const event = asObject(json);
  for (const holder of [event, choiceIn(event), asObject(event["x_groq"])]) {
    const usage = readUsage(holder["usage"], hiddenThinkingInTotal);
    if (usage) return usage;
  }
  return undefined;
}

function readUsage(stated: unknown, hiddenThinkingInTotal: boolean): UsageReport | undefined {
  const usage = asObject(stated);
  const count = tokenCounter(usage);
  const prompt = count("prompt_tokens");
  const completion = count("completion_tokens");
  if ((prompt ?? 0) + (completion ?? 0) === 0) return undefined;
  const cacheHit = cacheHitIn(usage);
  const reasoning = tokenCounter(usage["completion_tokens_details"])("reasoning_tokens") ?? 0;
  if (prompt === undefined || completion === undefined)
    return { prompt, completion, cacheHit, reasoning };
  const total = count("total_tokens") ?? 0;
  // xAI counts reasoning beside completion_tokens, all others inside. xAI's total shows the
  // difference.
  const isBeside = reasoning > 0 && total === prompt + completion + reasoning;
  const counted = completion + (isBeside ? reasoning : 0);
  const hidden = hiddenThinkingInTotal ? Math.max(0, total - prompt - counted) : 0;
  return { prompt, completion: counted + hidden, cacheHit, reasoning: reasoning + hidden };
}

/** The cached part of the prompt, in the first of the fields that states it. */
function cacheHitIn(usage: Record<string, unknown>): number {
  const details = asObject(usage["prompt_tokens_details"] ?? usage["prompt_token_details"]);
  const counts = [
    usage["prompt_cache_hit_tokens"],
    usage["num_cached_tokens"],
    details["cached_tokens"],
    usage["cached_tokens"],
  ].map(asTokenCount);
  return counts.find((count) => count !== undefined) ?? 0;
}
