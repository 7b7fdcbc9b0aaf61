// Anthropic's Messages API. WIRE.md 7.
import { createHash } from "node:crypto";
import type { ChatRequest } from "../../core/openai/request.ts";
import {
  asArray,
  asObject,
  asString,
  parseJson,
  tokenCounter,
} from "../../core/schema/untrusted-json.ts";
import { randomHex } from "../../core/ids.ts";
import type { Part } from "../../core/openai/parts.ts";
import type { UsageReport } from "../../core/openai/usage.ts";
import {
  finishPart,
  ProviderError,
  textPart,
  throwErrorIn,
  withUsage,
  type Decoder,
  type Dialect,
  type Target,
} from "../../core/providers/dialect.ts";
import keywords from "./schema-keywords.json" with { type: "json" };
import { effortOf, parametersOf } from "../../core/providers/traits.ts";
import {
  mediaOf,
  turnsOf,
  type Item,
  type Signatures,
  type Turn,
} from "../../core/providers/turns.ts";
import { sumOf } from "../turns/token-sums.ts";

const MIN_BUDGET = 1_024; // the least that a model may be given to think, in tokens
const SHARES: { readonly [effort: string]: number } = {
  low: 0.2,
  medium: 0.5,
  high: 0.8,
  xhigh: 0.9,
  max: 0.95,
}; // of a reply, for thinking
const JSON_ONLY =
  "Answer with one JSON object and nothing else: no prose around it, no code fence.";

export const createAnthropicDialect = (signatures: Signatures): Dialect => ({
  auth: (key) => ({ "x-api-key": key }),
  request: (chat, target) => ({
    path: "/v1/messages",
    headers: { "anthropic-version": "2023-06-01" },
    body: requestBody(chat, target, signatures),
  }),
  isReply: (json) => asObject(json)["type"] === "message",
  decoder: () => createDecoder(signatures),
});

function requestBody(
  chat: ChatRequest,
  { upstreamModel, reasoning, traits }: Target,
  signatures: Signatures,
): object {
  const { system, turns } = turnsOf(chat.messages);
  const given = parametersOf(chat, traits);
  const schema = closedSchema(
    chat.response_format?.type === "json_schema"
      ? chat.response_format.json_schema.schema
      : undefined,
  );
  if (chat.response_format && !schema) system.push(JSON_ONLY);
  // Calls that have just been answered must come with the thoughts that led to them, or thinking is off for this once.
  const answered = turns.at(-1)?.items[0]?.type === "result" ? turns.at(-2) : undefined;
  const switchable = reasoning && traits.thinking !== "none";
  const thinking =
    switchable &&
    chat.wantsThinking &&
    (!answered ||
      thoughtsOf(
        answered.items.find(({ type }) => type === "call"),
        signatures,
      ).length > 0);
  const thinks = thinking || (switchable && !traits.thinking_off);
  const budgeted = thinking && traits.thinking === "budget";
  const limit = given.max_tokens ?? traits.max_output_tokens ?? MIN_BUDGET;
  const max_tokens = budgeted && limit <= MIN_BUDGET ? limit + MIN_BUDGET : limit; // so that the client's tokens are left for the answer
  const effort = thinking ? effortOf(chat.effort, traits) : undefined;
  const budget_tokens = Math.max(MIN_BUDGET, Math.floor(limit * (SHARES[effort ?? ""] ?? 0.5)));
  const on = budgeted
    ? { type: "enabled", budget_tokens }
    : { type: "adaptive", display: "summarized" };
  let mode: object | undefined;
  if (thinking) mode = on;
  else if (switchable && traits.thinking_off) mode = { type: "disabled" };
  const output_config = {
    effort: budgeted ? undefined : effort,
    format: schema && { type: "json_schema", schema },
  };
  return {
    model: upstreamModel,
    max_tokens,
    system: system.join("\n\n") || undefined,
    messages: turns.map((turn) => ({
      role: turn.role,
      content: blocksOf(turn, turn === turns.at(-1), thinks, signatures),
    })),
    stream: chat.stream || undefined,
    // Neither is taken while the model thinks.
    temperature: thinks ? undefined : given.temperature,
    top_p: thinks ? undefined : given.top_p,
    stop_sequences: given.stop?.filter((sequence) => sequence.trim() !== ""),
    metadata: given.user && { user_id: given.user },
    ...toolFields(chat, turns, thinks, given.parallel_tool_calls === false),
    thinking: mode,
    output_config: output_config.effort || schema ? output_config : undefined,
  };
}

/** While thinking a tool cannot be forced. Tools that were called must be declared, although they may not be called any more. */
function toolFields(
  { tools, tool_choice: choice = "none" }: ChatRequest,
  turns: readonly Turn[],
  thinking: boolean,
  oneOnly: boolean,
): object {
  const called = new Set(
    turns.flatMap(({ items }) =>
      items.flatMap((item) => (item.type === "call" ? [item.name] : [])),
    ),
  );
  const declared = tools?.map(({ function: { name, description, parameters, strict } }) => {
    const input_schema = { ...parameters, type: "object" };
    return {
      name,
      description,
      input_schema: strict ? closedSchema(input_schema) : input_schema,
      strict: strict || undefined,
    };
  });
  const known = declared ?? [...called].map((name) => ({ name, input_schema: { type: "object" } }));
  if (known.length === 0) return {};
  if (choice === "none") return { tools: known, tool_choice: { type: "none" } };
  const named =
    typeof choice === "object"
      ? { type: "tool", name: choice.function.name }
      : { type: choice === "auto" ? "auto" : "any" };
  return {
    tools: known,
    tool_choice: {
      ...(thinking ? { type: "auto" } : named),
      ...(oneOnly && { disable_parallel_tool_use: true }),
    },
  };
}

/** A schema as it is taken where an answer has to keep to it: its objects closed, its bounds, which are refused there, told in words, its
 * `values` as they are. `byName`: an object of schemas by their names, whatever these are. */
function closedSchema(schema: unknown, byName = false): unknown {
  if (Array.isArray(schema)) return schema.map((each) => closedSchema(each));
  if (typeof schema !== "object" || schema === null) return schema;
  const entries: [string, unknown][] = Object.entries(schema);
  if (byName)
    return Object.fromEntries(entries.map(([name, value]) => [name, closedSchema(value)]));
  const inner = (name: string, value: unknown) =>
    keywords.values.includes(name)
      ? value
      : closedSchema(value, keywords.schemasByName.includes(name));
  const closed: Record<string, unknown> = Object.fromEntries(
    entries.map(([name, value]) => [name, inner(name, value)]),
  );
  const bounds = entries.filter(
    ([name, value]) => keywords.bounds.includes(name) && typeof value !== "object",
  );
  for (const [name] of bounds) delete closed[name];
  if (bounds.length > 0)
    closed["description"] = [closed["description"] ?? [], bounds.map((bound) => bound.join(": "))]
      .flat()
      .join("; ");
  return [closed["type"]].flat().includes("object")
    ? { ...closed, additionalProperties: false }
    : closed;
}

/** The thoughts before one tool call that are kept, in characters: a provider may think without end. */
const MAX_THOUGHT_CHARS = 4 * 1024 * 1024;

/** What a provider counts. Other fields are not kept: a provider may send new ones in each event. */
const COUNTS: readonly string[] = [
  "input_tokens",
  "cache_creation_input_tokens",
  "cache_read_input_tokens",
  "output_tokens",
  "output_tokens_details",
];

/** The thoughts that came before a tool call, as they came; none if they are not known (any more). */
const thoughtsOf = (item: Item | undefined, signatures: Signatures): readonly unknown[] =>
  item?.type === "call" ? asArray(parseJson(signatures.get(item.id) ?? "")) : [];

/** A turn begins with its first thoughts, whatever was said between them and the call. */
function blocksOf(
  { role, items }: Turn,
  isLast: boolean,
  thinking: boolean,
  signatures: Signatures,
): unknown[] {
  const first = items.find(({ type }) => type === "call");
  const blocks = items.flatMap((item) => [
    ...(thinking && item !== first ? thoughtsOf(item, signatures) : []),
    blockOf(item),
  ]);
  // The beginning of an answer must not end in blanks.
  const begun = isLast && role === "assistant" ? items.at(-1) : undefined;
  if (begun?.type === "text") blocks.splice(-1, 1, { type: "text", text: begun.text.trimEnd() });
  return thinking ? [...thoughtsOf(first, signatures), ...blocks] : blocks;
}

function blockOf(item: Item): object {
  if (item.type === "text") return item;
  if (item.type === "call")
    return { type: "tool_use", id: safeId(item.id), name: item.name, input: item.args };
  if (item.type === "result")
    return {
      type: "tool_result",
      tool_use_id: safeId(item.id),
      content: item.content.trim() === "" ? "" : item.content,
    };
  const { url, mediaType, data } = mediaOf(item);
  const source = mediaType ? { type: "base64", media_type: mediaType, data } : { type: "url", url };
  return { type: item.type === "image_url" ? "image" : "document", source };
}

/** Ids that another provider made may have characters that this one refuses. */
const safeId = (id: string): string =>
  /^[\w-]+$/.test(id) ? id : `call_${createHash("sha256").update(id).digest("hex").slice(0, 24)}`;

function createDecoder(signatures: Signatures): Decoder {
  const calls = new Map<unknown, number>(); // a block's index to our own
  let thoughts: Record<string, unknown>[] = []; // since the last call, as they must come back
  let thoughtChars = 0; // of their JSON; beyond MAX_THOUGHT_CHARS they are not kept
  let usage: Record<string, unknown> = {};
  let over = false;
  let replyId: unknown;
  let begun = false;

  /** A second beginning with another id is another reply: a proxy that asked twice has joined the two. */
  function begin(id: unknown): void {
    if (begun && id !== replyId) {
      over = true; // neither its content nor its figures are those of this reply
      throw new ProviderError("upstream_error", "another reply begins inside this one");
    }
    begun = true;
    replyId = id;
  }

  /** A block's beginning, or all of it, or more of it (a delta). */
  function read(piece: Record<string, unknown>, index: unknown): Part[] {
    const { type, text, thinking, input, partial_json } = piece;
    const thought = thoughts.at(-1);
    let field: "thinking" | "signature" | undefined;
    if (type === "thinking_delta") field = "thinking";
    else if (type === "signature_delta") field = "signature";
    if (type === "thinking" || type === "redacted_thinking") {
      thoughtChars += JSON.stringify(piece).length;
      thoughts.push({ ...piece });
    } else if (thought && field) {
      const more = asString(piece[field]) ?? "";
      thoughtChars += more.length;
      thought[field] = `${asString(thought[field]) ?? ""}${more}`;
    }
    if (thoughtChars > MAX_THOUGHT_CHARS) thoughts = [];
    if (type === "text" || type === "text_delta") return textPart("text", text);
    if (type === "thinking" || type === "thinking_delta") return textPart("reasoning", thinking);
    const known = calls.get(index);
    if (type === "input_json_delta" && known !== undefined)
      return [{ type: "tool_arguments", call: known, text: asString(partial_json) ?? "" }];
    if (type !== "tool_use") return [];
    const id = asString(piece["id"]) || `call_${randomHex(12)}`;
    const name = asString(piece["name"]);
    if (!name)
      throw new ProviderError("upstream_error", "a tool call without a name", {
        fromContent: true,
      });
    const call = calls.size;
    calls.set(index, call);
    if (thoughts.length > 0) signatures.set(id, JSON.stringify(thoughts.splice(0)));
    thoughtChars = 0;
    const opening: Part = { type: "tool_call", call, id, name };
    return Object.keys(asObject(input)).length === 0
      ? [opening]
      : [opening, { type: "tool_arguments", call, text: JSON.stringify(input) }];
  }

  /** The figures are cumulative; a later one takes the place of an earlier, unless it is null. An event that does not count the
   * output says nothing of it: what message_start counted is not repeated as if it were the end's. */
  function usageIn(json: unknown): UsageReport | undefined {
    if (over) return undefined;
    const event = asObject(json);
    const later = asObject(event["usage"] ?? asObject(event["message"])["usage"]);
    const stated = COUNTS.filter((name) => (later[name] ?? null) !== null);
    if (stated.length === 0) return undefined;
    usage = { ...usage, ...Object.fromEntries(stated.map((name) => [name, later[name]])) };
    const count = tokenCounter(usage);
    const cacheHit = count("cache_read_input_tokens");
    return {
      prompt: sumOf(count("input_tokens"), count("cache_creation_input_tokens"), cacheHit),
      completion: tokenCounter(later)("output_tokens"),
      cacheHit: cacheHit ?? 0,
      reasoning: tokenCounter(usage["output_tokens_details"])("thinking_tokens") ?? 0,
    };
  }

  return withUsage(usageIn, {
    ended: () => over,
    push(json) {
      const { type, index, message = json, content_block, delta, stop_reason } = asObject(json);
      throwErrorIn(json);
      if (type === "content_block_start" || type === "content_block_delta")
        return read(asObject(content_block ?? delta), index);
      if (type === "message_delta") return finishPart(asObject(delta)["stop_reason"]);
      over = type === "message_stop";
      if (type !== "message_start" && type !== "message") return [];
      const { id, content } = asObject(message); // content that is there already has no events of its own
      begin(id);
      return [
        ...asArray(content).flatMap((block, at) => read(asObject(block), `start ${at}`)),
        ...finishPart(stop_reason),
      ];
    },
  });
}
