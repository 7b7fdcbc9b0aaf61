// Anthropic's Messages API. WIRE.md 7.
import { createHash } from "node:crypto";
import type { ChatRequest } from "../protocol/chat-request.ts";
import { asArray, asCount, asObject, asString, parseJson } from "../protocol/foreign.ts";
import { makeUsage, type Part } from "../protocol/reply.ts";
import { finishPart, ProviderFault, type Decoder, type Dialect, type Target } from "./dialect.ts";
import { errorIn } from "./faults.ts";
import type { Signatures } from "./signatures.ts";
import { effortOf, parametersOf } from "./traits.ts";
import { dataOf, turnsOf, type Item, type Turn } from "./turns.ts";

/** The least that a model may be given to think, in tokens; and the share of a reply that goes to thinking. */
const MIN_BUDGET = 1_024;
const SHARES: { readonly [effort: string]: number } = { low: 0.2, medium: 0.5, high: 0.8, xhigh: 0.9, max: 0.95 };
const JSON_ONLY = "Answer with one JSON object and nothing else: no prose around it, no code fence.";

export const createAnthropicDialect = (signatures: Signatures): Dialect => ({
  auth: (key) => ({ "x-api-key": key }),
  request: (chat, target) => ({ path: "/v1/messages", headers: { "anthropic-version": "2023-06-01" }, body: requestBody(chat, target, signatures) }),
  reply(json) {
    const { type, content, usage, stop_reason } = asObject(json);
    if (type !== "message") throw errorIn(json) ?? new ProviderFault("upstream_error", "the reply is no message");
    const { push } = createDecoder(signatures);
    const blocks = asArray(content).map((content_block, index) => ({ type: "content_block_start", index, content_block }));
    return [...blocks, { type: "message_delta", usage, delta: { stop_reason: stop_reason ?? "end_turn" } }].flatMap(push);
  },
  decoder: () => createDecoder(signatures),
});

function requestBody(chat: ChatRequest, { upstreamModel, reasoning, traits }: Target, signatures: Signatures): object {
  const { system, turns } = turnsOf(chat.messages);
  const given = parametersOf(chat, traits);
  const schema = chat.response_format?.type === "json_schema" ? chat.response_format.json_schema.schema : undefined;
  if (chat.response_format && !schema) system.push(JSON_ONLY);
  // A turn that calls tools must come back with its thoughts while thinking is on. If they have been forgotten, it is off.
  const lastCalls = turns.findLast(({ items }) => items.some(({ type }) => type === "call"));
  const thinking = reasoning && chat.thinking && traits.thinking !== "none" && (!lastCalls || thoughtsOf(lastCalls, signatures).length > 0);
  const limit = given.max_tokens ?? traits.max_output_tokens ?? MIN_BUDGET;
  const budgeted = thinking && traits.thinking === "budget";
  const max_tokens = budgeted && limit <= MIN_BUDGET ? limit + MIN_BUDGET : limit;
  const effort = thinking ? effortOf(chat.effort, traits) : undefined;
  const budget_tokens = Math.min(max_tokens - 1, Math.max(MIN_BUDGET, Math.floor(max_tokens * (SHARES[effort ?? ""] ?? 0.5))));
  const off = reasoning && traits.thinking_off && traits.thinking !== "none" ? { type: "disabled" } : undefined;
  const on = budgeted ? { type: "enabled", budget_tokens } : { type: "adaptive", display: "summarized" };
  const output_config = { effort: budgeted ? undefined : effort, format: schema && { type: "json_schema", schema } };
  return {
    model: upstreamModel, max_tokens,
    system: system.join("\n\n") || undefined,
    messages: turns.map((turn, at) => ({ role: turn.role, content: blocksOf(turn, at === turns.length - 1, thinking, signatures) })),
    stream: chat.stream || undefined,
    // Of the two one is taken, and neither while thinking.
    temperature: thinking ? undefined : given.temperature,
    top_p: thinking || given.temperature !== undefined ? undefined : given.top_p,
    stop_sequences: given.stop?.filter((sequence) => sequence.trim() !== ""),
    metadata: given.user && { user_id: given.user },
    tools: chat.tools?.map(({ function: { name, description, parameters, strict } }) =>
      ({ name, description, input_schema: { type: "object", ...parameters }, strict: strict || undefined })),
    tool_choice: chat.tools && toolChoice(chat, thinking),
    thinking: thinking ? on : off,
    output_config: output_config.effort || schema ? output_config : undefined,
  };
}

/** While thinking a tool cannot be forced. */
function toolChoice({ tool_choice: choice = "none", parallel_tool_calls }: ChatRequest, thinking: boolean): object {
  if (choice === "none") return { type: "none" };
  const one = parallel_tool_calls === false ? { disable_parallel_tool_use: true } : {};
  if (choice === "auto" || thinking) return { type: "auto", ...one };
  return choice === "required" ? { type: "any", ...one } : { type: "tool", name: choice.function.name, ...one };
}

/** The thoughts that led to a turn's tool calls, as they came; none if they are not known (any more). */
function thoughtsOf({ items }: Turn, signatures: Signatures): readonly unknown[] {
  const call = items.find((item) => item.type === "call");
  return asArray(parseJson((call && signatures.get(call.id)) ?? ""));
}

function blocksOf(turn: Turn, isLast: boolean, thinking: boolean, signatures: Signatures): unknown[] {
  const blocks: unknown[] = turn.items.map(blockOf);
  const last = turn.items.at(-1);
  // The beginning of an answer must not end in blanks.
  if (isLast && turn.role === "assistant" && last?.type === "text") blocks.splice(-1, 1, { type: "text", text: last.text.trimEnd() });
  return thinking ? [...thoughtsOf(turn, signatures), ...blocks] : blocks;
}

function blockOf(item: Item): object {
  switch (item.type) {
    case "text": return { type: "text", text: item.text };
    case "image_url": {
      const { url } = item.image_url;
      const image = dataOf(url);
      return { type: "image", source: image ? { type: "base64", media_type: image.mediaType, data: image.data } : { type: "url", url } };
    }
    case "call": return { type: "tool_use", id: safeId(item.id), name: item.name, input: item.args };
    case "result": return { type: "tool_result", tool_use_id: safeId(item.id), content: item.content };
    default: {
      const file = item.type === "file" ? dataOf(asString(item.file["file_data"]) ?? "") : undefined;
      if (!file) throw new ProviderFault("upstream_rejected", `a part of type ${item.type} that cannot be said in this format`);
      return { type: "document", source: { type: "base64", media_type: file.mediaType, data: file.data } };
    }
  }
}

/** Ids that another provider made may have characters that this one refuses. */
const safeId = (id: string): string => (/^[\w-]+$/.test(id) ? id : `call_${createHash("sha256").update(id).digest("hex").slice(0, 24)}`);

function createDecoder(signatures: Signatures): Decoder {
  const calls = new Map<unknown, number>(); // a block's index to our own
  const thoughts: Record<string, unknown>[] = []; // as they must come back
  let usage: Record<string, unknown> = {};

  /** A block's beginning; in a whole reply all of it. */
  function begin(index: unknown, block: Record<string, unknown>): Part[] {
    const { type, id, name, input } = block;
    if (type === "text") return textPart("text", block["text"]);
    if (type === "thinking" || type === "redacted_thinking") thoughts.push({ ...block });
    if (type === "thinking") return textPart("reasoning", block["thinking"]);
    if (type !== "tool_use") return [];
    const call = calls.size;
    calls.set(index, call);
    if (thoughts.length > 0) signatures.set(String(id), JSON.stringify(thoughts));
    const begun: Part = { type: "tool_call", call, id: String(id), name: String(name) };
    return Object.keys(asObject(input)).length === 0 ? [begun] : [begun, { type: "tool_arguments", call, text: JSON.stringify(input) }];
  }

  function more(index: unknown, { type, text, thinking, signature, partial_json }: Record<string, unknown>): Part[] {
    const thought = thoughts.at(-1) ?? {};
    if (type === "text_delta") return textPart("text", text);
    if (type === "signature_delta") thought["signature"] = `${asString(thought["signature"]) ?? ""}${asString(signature) ?? ""}`;
    if (type === "thinking_delta") thought["thinking"] = `${asString(thought["thinking"]) ?? ""}${asString(thinking) ?? ""}`;
    if (type === "thinking_delta") return textPart("reasoning", thinking);
    const call = calls.get(index);
    const known = type === "input_json_delta" && call !== undefined && partial_json !== "";
    return known ? [{ type: "tool_arguments", call, text: asString(partial_json) ?? "" }] : [];
  }

  /** The figures are cumulative; a later one takes the place of an earlier, unless it is null. */
  function counted(later: unknown): Part[] {
    usage = { ...usage, ...Object.fromEntries(Object.entries(asObject(later)).filter(([, value]) => value !== null)) };
    const count = (name: string) => asCount(usage[name]) ?? 0;
    const cacheHit = count("cache_read_input_tokens");
    const prompt = count("input_tokens") + count("cache_creation_input_tokens") + cacheHit;
    const reasoning = asCount(asObject(usage["output_tokens_details"])["thinking_tokens"]) ?? 0;
    return [{ type: "usage", usage: makeUsage({ prompt, completion: count("output_tokens"), cacheHit, reasoning }) }];
  }

  return {
    push(json) {
      const { type, index, message, content_block, delta, usage: later } = asObject(json);
      const error = errorIn(json);
      if (error) throw error;
      if (type === "message_start") {
        const { usage, content } = asObject(message); // content that is there already has no events of its own
        return [...counted(usage), ...asArray(content).flatMap((block, at) => begin(`0.${at}`, asObject(block)))];
      }
      if (type === "content_block_start") return begin(index, asObject(content_block));
      if (type === "content_block_delta") return more(index, asObject(delta));
      return type === "message_delta" ? [...counted(later), ...finishPart(asObject(delta)["stop_reason"])] : [];
    },
  };
}

const textPart = (type: "text" | "reasoning", text: unknown): Part[] => (asString(text) ? [{ type, text: asString(text)! }] : []);
