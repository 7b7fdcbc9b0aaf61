// The reply of a Responses API, whole or event by event. wire.md "Responses API of providers".
import { randomHex } from "../../../core/ids.ts";
import type { Part } from "../../../core/openai/parts.ts";
import type { UsageReport } from "../../../core/openai/usage.ts";
import { namelessCall, textOf, textPart, withUsage } from "../../../core/providers/decoding.ts";
import type { Decoder } from "../../../core/providers/dialect.ts";
import { ProviderError } from "../../../core/providers/provider-error.ts";
import { asArray, asObject, asString, tokenCounter } from "../../../core/schema/untrusted-json.ts";
import { finishPart, throwErrorIn } from "../provider-words/index.ts";
import type { SignatureStore } from "../turns/index.ts";

type Json = Record<string, unknown>;

/** More characters of sealed reasoning before one call are not kept. */
const MAX_THOUGHT_CHARS = 4 * 1024 * 1024;

/** Whether this JSON is a whole reply. */
export const isReply = (json: unknown): boolean => Array.isArray(asObject(json)["output"]);

/** The response that an event contains, or that is the whole reply. */
const responseIn = (event: Json): Json => asObject(event["response"] ?? event);

export function createResponsesDecoder(signatures: SignatureStore): Decoder {
  const items = createItemReader(signatures);
  let isOver = false;

  /** The last event repeats the items, which only count if none has come before. */
  function end(response: Json): Part[] {
    isOver = true;
    throwErrorIn(response);
    const output = items.hasRead() ? [] : asArray(response["output"]).map(asObject);
    const parts = output.flatMap(items.end);
    return [...parts, ...finishOf(response)];
  }

  function push(json: unknown): Part[] {
    throwErrorIn(json);
    const event = asObject(json);
    const { type, item, output_index: index } = event;
    switch (type) {
      case "response.output_item.added":
        return items.begin(asObject(item), index);
      case "response.output_item.done":
        return items.end(asObject(item), index);
      case "response.completed":
      case "response.incomplete":
      case "response.failed":
        return end(responseIn(event));
      default:
        return isReply(event) ? end(event) : items.more(event, index);
    }
  }

  return withUsage(usageIn, { push, ended: () => isOver });
}

/** Throws a ProviderError if the generation broke off. */
function finishOf({ status = "completed", incomplete_details }: Json): Part[] {
  if (status === "completed") return finishPart("stop");
  if (status !== "incomplete")
    throw new ProviderError("upstream_error", "the provider gave up: the reply is not completed");
  const reason = asObject(incomplete_details)["reason"];
  return finishPart(reason === "content_filter" ? reason : "length");
}

/** Undefined: the event states none. */
function usageIn(json: unknown): UsageReport | undefined {
  const usage = asObject(responseIn(asObject(json))["usage"]);
  const count = tokenCounter(usage);
  const prompt = count("input_tokens");
  const completion = count("output_tokens");
  if (prompt === undefined && completion === undefined) return undefined;
  const inPrompt = tokenCounter(usage["input_tokens_details"]);
  const reasoning = tokenCounter(usage["output_tokens_details"])("reasoning_tokens") ?? 0;
  const cacheWrite = inPrompt("cache_write_tokens");
  return {
    prompt,
    completion,
    cacheHit: inPrompt("cached_tokens") ?? 0,
    reasoning,
    ...(cacheWrite && { cacheWrite }),
  };
}

/** The text of each event's piece, by the type of the event. */
const TEXT_EVENTS = new Map<unknown, "text" | "refusal" | "reasoning">([
  ["response.output_text.delta", "text"],
  ["response.refusal.delta", "refusal"],
  ["response.reasoning_summary_text.delta", "reasoning"],
  ["response.reasoning_text.delta", "reasoning"],
]);

/** Stands between two texts of the model, and between two paragraphs of a summary. */
const PARAGRAPH = "\n\n";

/** Reads the items of the output. An item comes in pieces, or whole at its end. */
function createItemReader(signatures: SignatureStore) {
  /** The indexes of messages and thoughts of which a piece was read. */
  const begun = new Set<unknown>();
  /** By the index of an item that is a call: the index of its call among the calls. */
  const calls = new Map<unknown, number>();
  /** The calls of whose arguments a piece was read. */
  const withArguments = new Set<number>();
  let thoughts: Json[] = [];
  let hasText = false;
  let hasRead = false;

  function startCall({ call_id, id, name: stated }: Json, index: unknown): Part[] {
    if (calls.has(index)) return [];
    const name = asString(stated);
    if (!name) throw namelessCall();
    const call = calls.size;
    calls.set(index, call);
    const callId = asString(call_id) || asString(id) || `call_${randomHex(12)}`;
    const kept = JSON.stringify(thoughts);
    if (thoughts.length > 0 && kept.length <= MAX_THOUGHT_CHARS) signatures.set(callId, kept);
    thoughts = [];
    return [{ type: "tool_call", call, id: callId, name }];
  }

  function argumentPart(stated: unknown, index: unknown): Part[] {
    const call = calls.get(index);
    const text = textOf(stated);
    if (call === undefined || text === "") return [];
    withArguments.add(call);
    return [{ type: "tool_arguments", call, text }];
  }

  function wholeCall(item: Json, index: unknown): Part[] {
    const started = startCall(item, index);
    const isNew = !withArguments.has(calls.get(index)!);
    return isNew ? [...started, ...argumentPart(item["arguments"], index)] : started;
  }

  /** Keeps the reasoning if its provider sealed it. Only such an item can go back. */
  function keepThought({ type, id, summary, encrypted_content }: Json): void {
    if (asString(encrypted_content))
      thoughts.push({ type, id, summary: summary ?? [], encrypted_content });
  }

  /** The first parts of an item, apart from the text of an item before. */
  function firstParts(parts: Part[], index: unknown): Part[] {
    begun.add(index);
    const isText = parts.some(({ type }) => type === "text");
    const before: Part[] = hasText && isText ? [{ type: "text", text: PARAGRAPH }] : [];
    hasText ||= isText;
    return [...before, ...parts];
  }

  const read = (parts: Part[]): Part[] => {
    hasRead ||= parts.length > 0;
    return parts;
  };

  return {
    /** Whether any item had something to read. */
    hasRead: () => hasRead,
    /** The parts of the beginning of an item, which has no content yet. */
    begin: (item: Json, index: unknown): Part[] =>
      item["type"] === "function_call" ? read(startCall(item, index)) : [],
    /** The parts of a piece of an item. */
    more({ type, delta, logprobs, summary_index }: Json, index: unknown): Part[] {
      if (type === "response.function_call_arguments.delta") return argumentPart(delta, index);
      if (type === "response.reasoning_summary_part.added" && summary_index !== 0)
        return textPart("reasoning", PARAGRAPH);
      const kind = TEXT_EVENTS.get(type);
      const parts = kind ? textPart(kind, delta, logprobs) : [];
      return parts.length === 0 || begun.has(index) ? parts : read(firstParts(parts, index));
    },
    /** The parts of a whole item, unless they came in pieces. */
    end(item: Json, index: unknown): Part[] {
      if (item["type"] === "function_call") return read(wholeCall(item, index));
      if (item["type"] === "reasoning") keepThought(item);
      return begun.has(index) ? [] : read(firstParts(wholeParts(item), index));
    },
  };
}

/** The parts of a whole message, or of a whole thought. Other items are not asked for. */
function wholeParts({ type, content, summary }: Json): Part[] {
  if (type === "message") return asArray(content).map(asObject).flatMap(contentPart);
  if (type !== "reasoning") return [];
  const stated = asArray(summary).length > 0 ? summary : content;
  const texts = asArray(stated).map((part) => textOf(asObject(part)["text"]));
  return textPart("reasoning", texts.join(PARAGRAPH));
}

/** A part of a message. Others than texts and refusals are not asked for. */
const contentPart = ({ type, text, refusal, logprobs }: Json): Part[] =>
  type === "refusal" ? textPart("refusal", refusal) : textPart("text", text, logprobs);
