// The reply of a Responses API, whole or event by event. wire.md "Responses API of providers".
import type { Part, TextPart } from "../../../core/openai/parts.ts";
import type { UsageReport } from "../../../core/openai/usage.ts";
import { textOf, textPart, withUsage } from "../../../core/providers/decoding.ts";
import type { Decoder } from "../../../core/providers/dialect.ts";
import { ProviderError } from "../../../core/providers/provider-error.ts";
import { asArray, asObject, asString, tokenCounter } from "../../../core/schema/untrusted-json.ts";
import { finishPart, startedCall, throwErrorIn } from "../provider-words/index.ts";
import type { SignatureStore } from "../turns/index.ts";

type Json = Record<string, unknown>;

/** More characters of sealed reasoning before one call are not kept. */
const MAX_SEALED_CHARS = 4 * 1024 * 1024;

/** Whether this JSON is a whole reply. */
export const isReply = (json: unknown): boolean => Array.isArray(asObject(json)["output"]);

/** The response that an event contains, or that is the whole reply. */
const responseIn = (event: Json): Json => asObject(event["response"] ?? event);

/** What the events of one item share. llama.cpp states no index, and no other id of a call. */
function keyOf({ output_index, item_id, item }: Json): unknown {
  const { id, call_id } = asObject(item);
  return output_index ?? item_id ?? id ?? call_id;
}

export function createResponsesDecoder(signatures: SignatureStore): Decoder {
  const items = createItemReader(signatures);
  let isOver = false;

  /** The last event repeats the items. Only what has not come before counts. */
  function end(response: Json): Part[] {
    isOver = true;
    throwErrorIn(response);
    const output = asArray(response["output"]).map(asObject);
    const others = output.filter((item) => !items.hasRead(item));
    const parts = [
      ...output.flatMap(items.late),
      ...others.flatMap((item) => items.end(item, item)),
    ];
    return [...parts, ...finishOf(response)];
  }

  function push(json: unknown): Part[] {
    throwErrorIn(json);
    const event = asObject(json);
    const { type, item } = event;
    switch (type) {
      case "response.output_item.added":
        return items.begin(asObject(item), keyOf(event));
      case "response.output_item.done":
        return items.end(asObject(item), keyOf(event));
      case "response.completed":
      case "response.incomplete":
      case "response.failed":
        return end({ status: type.slice("response.".length), ...responseIn(event) });
      default:
        return isReply(event) ? end(event) : items.more(event, keyOf(event));
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

const SUMMARY_EVENT = "response.reasoning_summary_text.delta";

/** The text of each event's piece, by the type of the event. */
const TEXT_EVENTS = new Map<unknown, "text" | "refusal" | "reasoning">([
  ["response.output_text.delta", "text"],
  ["response.refusal.delta", "refusal"],
  [SUMMARY_EVENT, "reasoning"],
  ["response.reasoning_text.delta", "reasoning"],
]);

/** Stands between two texts of the model, and between two paragraphs of a summary. */
const PARAGRAPH = "\n\n";

/**
 * Reads the items of the output. An item comes in pieces, or whole at its end. `key` is the same in
 * all events of an item.
 */
function createItemReader(signatures: SignatureStore) {
  /** The keys of messages and thoughts of which a piece was read. */
  const begun = new Set<unknown>();
  /** The kinds of the texts that were read. */
  const kinds = new Set<TextPart["type"]>();
  /** By the key of an item that is a call: the index of its call among the calls. */
  const calls = new Map<unknown, number>();
  /** The calls of whose arguments a piece was read. */
  const withArguments = new Set<number>();
  /** The sealed reasoning since the last call. */
  let sealed: Json[] = [];
  /** The type of the events with thoughts. SGLang, for one, writes them again in the other type. */
  let thoughtEvent: unknown;

  function startCall({ call_id, id, name }: Json, key: unknown): Part[] {
    if (calls.has(key)) return [];
    const started = startedCall(calls.size, name, asString(call_id) || id);
    calls.set(key, started.call);
    const kept = JSON.stringify(sealed);
    if (sealed.length > 0 && kept.length <= MAX_SEALED_CHARS) signatures.set(started.id, kept);
    sealed = [];
    return [started];
  }

  function argumentPart(stated: unknown, key: unknown): Part[] {
    const call = calls.get(key);
    const text = textOf(stated);
    if (call === undefined || text === "") return [];
    withArguments.add(call);
    return [{ type: "tool_arguments", call, text }];
  }

  /** All arguments of a call, unless they came in pieces. */
  const wholeArguments = (stated: unknown, key: unknown): Part[] =>
    withArguments.has(calls.get(key)!) ? [] : argumentPart(stated, key);

  /** Keeps the reasoning if its provider sealed it. Only such an item can go back. */
  function keepSealed({ type, id, summary, encrypted_content }: Json): void {
    if (asString(encrypted_content))
      sealed.push({ type, id, summary: summary ?? [], encrypted_content });
  }

  /** Whether events of this type have the thoughts: the type of the first such event does. */
  function isThoughtEvent(type: unknown): boolean {
    thoughtEvent ??= type;
    return thoughtEvent === type;
  }

  /** The parts of an item. The first are apart from a text of the same kind in an item before. */
  function read(parts: TextPart[], key: unknown): Part[] {
    const isFirst = !begun.has(key);
    const before = parts.slice(0, isFirst ? 1 : 0).filter(({ type }) => kinds.has(type));
    if (parts.length > 0) begun.add(key);
    for (const { type } of parts) kinds.add(type);
    return [...before.flatMap(({ type }) => textPart(type, PARAGRAPH)), ...parts];
  }

  return {
    /** Whether an item of the same type had something to read. */
    hasRead({ type }: Json): boolean {
      if (type === "function_call") return calls.size > 0;
      return type === "message"
        ? kinds.has("text") || kinds.has("refusal")
        : kinds.has("reasoning");
    },
    /** The parts of the beginning of an item, which has no content yet. */
    begin: (item: Json, key: unknown): Part[] =>
      item["type"] === "function_call" ? startCall(item, key) : [],
    /** The parts of a piece of an item. */
    more({ type, delta, logprobs, summary_index, arguments: all }: Json, key: unknown): Part[] {
      if (type === "response.function_call_arguments.delta") return argumentPart(delta, key);
      if (type === "response.function_call_arguments.done") return wholeArguments(all, key);
      const isNextPart = type === "response.reasoning_summary_part.added" && summary_index !== 0;
      if (isNextPart && thoughtEvent === SUMMARY_EVENT) return textPart("reasoning", PARAGRAPH);
      const kind = TEXT_EVENTS.get(type);
      const isRead = kind !== "reasoning" || isThoughtEvent(type);
      return kind && isRead ? read(textPart(kind, delta, logprobs), key) : [];
    },
    /** The arguments in a repeated item, whose call came without any. */
    late({ type, id, call_id, arguments: all }: Json, index: number): Part[] {
      const key = [id, call_id, index].find((each) => calls.has(each));
      return type === "function_call" ? wholeArguments(all, key) : [];
    },
    /** The parts of a whole item, unless they came in pieces. */
    end(item: Json, key: unknown): Part[] {
      if (item["type"] === "function_call")
        return [...startCall(item, key), ...wholeArguments(item["arguments"], key)];
      if (item["type"] === "reasoning") keepSealed(item);
      return begun.has(key) ? [] : read(wholeParts(item), key);
    },
  };
}

/** The parts of a whole message, or of a whole thought. Other items are not asked for. */
function wholeParts({ type, content, summary }: Json): TextPart[] {
  if (type === "message") return asArray(content).map(asObject).flatMap(contentPart);
  if (type !== "reasoning") return [];
  const stated = asArray(summary).length > 0 ? summary : content;
  const texts = asArray(stated).map((part) => textOf(asObject(part)["text"]));
  return textPart("reasoning", texts.join(PARAGRAPH));
}

/** A part of a message. Others than texts and refusals are not asked for. */
const contentPart = ({ type, text, refusal, logprobs }: Json): TextPart[] =>
  type === "refusal" ? textPart("refusal", refusal) : textPart("text", text, logprobs);
