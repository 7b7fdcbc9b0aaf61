// Anthropic's reply, whole or event by event. wire.md "Anthropic replies".
import type { NativePart, Part } from "../../../core/openai/parts.ts";
import type { UsageReport } from "../../../core/openai/usage.ts";
import { textOf, textPart, withUsage } from "../../../core/providers/decoding.ts";
import type { Decoder } from "../../../core/providers/dialect.ts";
import { ProviderError } from "../../../core/providers/provider-error.ts";
import { asArray, asObject, asString, tokenCounter } from "../../../core/schema/untrusted-json.ts";
import { finishPart, startedCall, throwErrorIn } from "../provider-words/index.ts";
import { type SignatureStore, sumOf } from "../turns/index.ts";

/**
 * `reasoning`: the model can think. `isNative`: the client speaks this format too, so each event
 * also passes as it came.
 */
export function createAnthropicDecoder(
  signatures: SignatureStore,
  reasoning: boolean,
  isNative: boolean,
): Decoder {
  const blocks = createBlockReader(signatures, reasoning);
  const usageIn = createUsageReader();
  let isOver = false;
  let replyId: unknown;
  let hasBegun = false;

  /** A second message_start with another id begins another reply, such as after a proxy's retry. */
  function begin(id: unknown): void {
    if (hasBegun && id !== replyId) {
      isOver = true; // neither its content nor its figures belong to this reply
      throw new ProviderError("upstream_error", "another reply begins inside this one");
    }
    hasBegun = true;
    replyId = id;
  }

  /** The first event may contain the content itself. After content events it only repeats them. */
  function contentParts(content: unknown): Part[] {
    if (blocks.hasRead()) return [];
    if (!Array.isArray(content)) return textPart("text", content);
    return content.flatMap((block: unknown, at) =>
      typeof block === "object"
        ? blocks.read(asObject(block), `start ${at}`)
        : textPart("text", block),
    );
  }

  function push(json: unknown): Part[] {
    throwErrorIn(json);
    const { type, index, message = json, content_block, delta, stop_reason } = asObject(json);
    if (type === "content_block_start" || type === "content_block_delta")
      return blocks.read(asObject(content_block ?? delta), index);
    if (type === "message_delta") return finishPart(asObject(delta)["stop_reason"]);
    isOver = type === "message_stop";
    if (type !== "message_start" && type !== "message") return [];
    const { id, content } = asObject(message);
    begin(id);
    return [...contentParts(content), ...finishPart(stop_reason)];
  }

  const pushBoth = (json: unknown): Part[] => {
    const isRepetition = asObject(json)["type"] === "message" && blocks.hasRead();
    const parts = push(json);
    const event: Record<string, unknown> = isRepetition ? endOf(asObject(json)) : asObject(json);
    return isNative && isEventType(event["type"]) ? [nativePart(event), ...parts] : parts;
  };

  const decoder: Decoder = { push: pushBoth, ended: () => isOver };
  return withUsage((json) => (isOver ? undefined : usageIn(json)), decoder);
}

/** Whether an event has a type, as every event of this format does. */
const isEventType = (type: unknown): boolean => /^\w{1,64}$/.test(asString(type) ?? "");

/** The part of a whole message that repeats no earlier event: its end, and its figures. */
const endOf = ({ stop_reason, stop_sequence = null, usage }: Record<string, unknown>) => ({
  type: "message_delta",
  delta: { stop_reason, stop_sequence },
  usage,
});

/** An unchanged event. Frames, such as the start of a text and stops, do not count as content. */
function nativePart(event: Record<string, unknown>): NativePart {
  const { type, content_block: block } = event;
  const startsContent = type === "content_block_start" && asObject(block)["type"] !== "text";
  const content = type === "content_block_delta" || type === "message" || startsContent;
  return { type: "native", event, content };
}

/**
 * Blocks outside the answer: encrypted ones, the place where another of the provider's models goes
 * on, and the provider's own tools, whose results have types that end in `_tool_result`.
 */
const NO_ANSWER = new RegExp(
  "^(redacted_thinking|server_tool_use|mcp_tool_use|mcp_tool_listing|container_upload" +
    "|compaction|fallback)$|_tool_result$",
);

/** `reasoning`: the model can think. */
function createBlockReader(signatures: SignatureStore, reasoning: boolean) {
  const thoughts = createThoughtCollector();
  /** The indexes of tool calls that take deltas, by their blocks' indexes. */
  const openCalls = new Map<unknown, number>();
  /** The indexes of blocks of unknown types. */
  const unknownBlocks = new Set<unknown>();
  let calls = 0;
  let hasRead = false;

  function startCall(piece: Record<string, unknown>, index: unknown): Part[] {
    const started = startedCall(calls, piece["name"], piece["id"]);
    const { call, id } = started;
    calls += 1;
    const before = thoughts.take();
    // An empty list says that a model that can think did not, which differs from a forgotten call.
    if (before && (reasoning || before.length > 0)) signatures.set(id, JSON.stringify(before));
    const { input } = piece;
    const isEmpty = typeof input === "object" && Object.keys(asObject(input)).length === 0;
    const text = isEmpty ? "" : textOf(input);
    // Deltas after the complete arguments repeat them.
    if (text === "") openCalls.set(index, call);
    else openCalls.delete(index);
    return text === "" ? [started] : [started, { type: "tool_arguments", call, text }];
  }

  /**
   * A block of an unknown type is written as its JSON, and so are its deltas: it was paid for, and
   * must not vanish. Other unknown deltas are notes on their blocks.
   */
  function unknownPiece(piece: Record<string, unknown>, index: unknown): Part[] {
    const type = asString(piece["type"]) ?? "";
    const isDelta = type.endsWith("_delta");
    if (Object.keys(piece).length === 0 || NO_ANSWER.test(type)) return [];
    if (isDelta && !unknownBlocks.has(index)) return [];
    unknownBlocks.add(index);
    return textPart("text", piece);
  }

  function readPiece(piece: Record<string, unknown>, index: unknown): Part[] {
    switch (piece["type"]) {
      case "text":
      case "text_delta":
        return textPart("text", piece["text"]);
      case "thinking":
        // The provider may withhold the text. Then only this part shows that the model has begun.
        return [{ type: "reasoning", text: textOf(piece["thinking"]) }];
      case "thinking_delta":
        return textPart("reasoning", piece["thinking"]);
      case "tool_use":
        return startCall(piece, index);
      case "input_json_delta": {
        const call = openCalls.get(index);
        const text = textOf(piece["partial_json"]);
        return call === undefined ? [] : [{ type: "tool_arguments", call, text }];
      }
      default:
        return unknownPiece(piece, index);
    }
  }

  return {
    /** The parts of a block's beginning, of the whole block, or of more of it (a delta). */
    read(piece: Record<string, unknown>, index: unknown): Part[] {
      thoughts.read(piece);
      const parts = readPiece(piece, index);
      hasRead ||= parts.length > 0;
      return parts;
    },
    /** Whether any piece had something to read. */
    hasRead: (): boolean => hasRead,
  };
}

/**
 * The most characters of the thoughts before one call: a provider may think without end. More are
 * not kept.
 */
const MAX_THOUGHT_CHARS = 4 * 1024 * 1024;

/**
 * Collects the thinking blocks before each call, so that they can be sent back unchanged with the
 * call that they led to.
 */
function createThoughtCollector() {
  let thoughts: Record<string, unknown>[] = [];
  let chars = 0; // of their JSON

  function extend(field: "thinking" | "signature", more: string): void {
    const thought = thoughts.at(-1);
    if (!thought) return;
    thought[field] = `${asString(thought[field]) ?? ""}${more}`;
    chars += more.length;
  }

  return {
    /** Reads a content block or a delta. Ignores all but thoughts. */
    read(piece: Record<string, unknown>): void {
      const { type, thinking, signature } = piece;
      if (type === "thinking" || type === "redacted_thinking") {
        thoughts.push({ ...piece });
        chars += JSON.stringify(piece).length;
      }
      if (type === "thinking_delta") extend("thinking", asString(thinking) ?? "");
      if (type === "signature_delta") extend("signature", asString(signature) ?? "");
      if (chars > MAX_THOUGHT_CHARS) thoughts = [];
    },
    /** Removes and returns the thoughts so far. Undefined: they exceed the bound. */
    take(): readonly object[] | undefined {
      const taken = chars > MAX_THOUGHT_CHARS ? undefined : thoughts;
      thoughts = [];
      chars = 0;
      return taken;
    },
  };
}

/** Other fields are not kept: a provider may send new ones in each event. */
const TOKEN_COUNTS: readonly string[] = [
  "input_tokens",
  "cache_creation_input_tokens",
  "ephemeral_5m_input_tokens",
  "ephemeral_1h_input_tokens",
  "cache_read_input_tokens",
  "output_tokens",
  "thinking_tokens",
];

/** The token count of this name. Undefined: it is not stated. */
type Counter = (name: string) => number | undefined;

/**
 * Reads the usage of each event. wire.md "Anthropic replies". Counts are cumulative: a later one
 * replaces an earlier one, unless it is null or 0. An event that does not count the output says
 * nothing of it: the count of message_start is not repeated as if it were the final one.
 */
function createUsageReader(): (json: unknown) => UsageReport | undefined {
  let usage: Record<string, unknown> = {};
  let compacted: Counter = () => undefined;
  return (json) => {
    const event = asObject(json);
    const given = asObject(event["usage"] ?? asObject(event["message"])["usage"]);
    const latest = withDetails(given);
    const stated = TOKEN_COUNTS.filter((name) => (latest[name] ?? null) !== null);
    if (stated.length === 0) return undefined;
    const counted = (name: string) => latest[name] || (usage[name] ?? 0);
    usage = { ...usage, ...Object.fromEntries(stated.map((name) => [name, counted(name)])) };
    if (given["iterations"]) compacted = compactionsIn(given["iterations"]);
    const count: Counter = (name) => sumOf(tokenCounter(usage)(name), compacted(name));
    const completion = tokenCounter(latest)("output_tokens");
    const cacheHit = count("cache_read_input_tokens");
    const { cacheWrite, cacheWrite1h } = writtenIn(count);
    return {
      prompt: sumOf(count("input_tokens"), cacheWrite, cacheHit),
      completion:
        completion === undefined ? completion : sumOf(completion, compacted("output_tokens")),
      cacheHit: cacheHit ?? 0,
      reasoning: count("thinking_tokens") ?? 0,
      ...(cacheWrite ? { cacheWrite, cacheWrite1h } : {}),
    };
  };
}

/** The counts of a usage, those of its details among them. */
function withDetails(usage: Record<string, unknown>): Record<string, unknown> {
  const { cache_creation, output_tokens_details, ...others } = usage;
  return { ...asObject(cache_creation), ...asObject(output_tokens_details), ...others };
}

/** What the provider's summaries of the conversation took. Its other counts do not include it. */
function compactionsIn(iterations: unknown): Counter {
  const counters = asArray(iterations)
    .map(asObject)
    .filter(({ type }) => type === "compaction")
    .map((iteration) => tokenCounter(withDetails(iteration)));
  return (name) => sumOf(...counters.map((count) => count(name)));
}

/**
 * The tokens that were written to the cache: for five minutes and for an hour together, and for an
 * hour alone. The sum is stated by itself; an answer that states only its parts means their sum.
 * The end of a stream states a sum that may have grown since its parts were stated. Undefined:
 * nothing is stated.
 */
function writtenIn(count: Counter) {
  const minutes = count("ephemeral_5m_input_tokens");
  const hour = count("ephemeral_1h_input_tokens");
  const cacheWrite = count("cache_creation_input_tokens") ?? sumOf(minutes, hour);
  return { cacheWrite, cacheWrite1h: (minutes === 0 && hour ? cacheWrite : hour) ?? 0 };
}
