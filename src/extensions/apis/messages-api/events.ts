// The events of a reply in the Messages API, as a model of another format gives them: the parts of
// a reply in, events out. Blocks follow each other: each begins, grows and ends before the next.
import { randomHex } from "../../../core/ids.ts";
import type { FinishReason, Part, TextPart, ToolCallPart } from "../../../core/openai/parts.ts";
import type { Usage } from "../../../core/openai/usage.ts";
import { parseJson } from "../../../core/schema/untrusted-json.ts";
import { OWN_SIGNATURE } from "../messages-input/index.ts";
import { isUsableId } from "../../providers/provider-words/index.ts";

/** An event as it is sent. */
export interface ReplyEvent {
  readonly type: string;
  readonly [member: string]: unknown;
}

export const PING: ReplyEvent = { type: "ping" };

/** What the client is told of the tokens. What the cache had nothing to do with is the input. */
export function usageFields(usage: Usage) {
  const { cache_write_tokens = 0 } = usage.prompt_tokens_details;
  return {
    input_tokens: usage.prompt_cache_miss_tokens - cache_write_tokens,
    cache_creation_input_tokens: cache_write_tokens,
    cache_read_input_tokens: usage.prompt_cache_hit_tokens,
    output_tokens: usage.completion_tokens,
  };
}

/** The message before it has content. */
export const emptyMessage = (id: string, model: string, usage: Usage) => ({
  id,
  type: "message",
  role: "assistant",
  model,
  content: [] as unknown[],
  stop_reason: null,
  stop_sequence: null,
  // Nothing has been put out when the message begins.
  usage: { ...usageFields(usage), output_tokens: 0 },
});

const STOP_REASONS: Readonly<Record<FinishReason, string>> = {
  stop: "end_turn",
  length: "max_tokens",
  tool_calls: "tool_use",
  content_filter: "refusal",
};

export interface EventMaker {
  /** The events of these parts, in their order. */
  add(parts: readonly Part[]): ReplyEvent[];
  /** The rest of the reply. */
  end(usage: Usage, reason: FinishReason): ReplyEvent[];
}

interface OpenBlock {
  readonly type: "text" | "thinking" | "tool_use";
  readonly index: number;
  /** The call of a block that is one. */
  readonly call: number | undefined;
  /** What has come of its arguments. */
  json: string;
  /** Whether they begin as an object does. Others are kept until all are there. */
  isObject: boolean | undefined;
}

/** The ids of calls as the client gets them: each is usable in later turns, and there once. */
function createIds(): (id: string) => string {
  const taken = new Set<string>();
  return (id) => {
    const usable = isUsableId(id) && !taken.has(id) ? id : `toolu_${randomHex(12)}`;
    taken.add(usable);
    return usable;
  };
}

/** A part that came before the call that is open had ended, with the arguments of a call. */
interface Waiting {
  readonly part: ContentPart;
  json: string;
}

/** A part that a block begins with, or goes on with. */
type ContentPart = TextPart | ToolCallPart;

/** Writes blocks, one after the other. */
function createBlockWriter(firstIndex: number) {
  let nextIndex = firstIndex;
  let open: OpenBlock | undefined;
  let hasCalled = false;
  const idOf = createIds();

  function start(type: OpenBlock["type"], content_block: object, call?: number): ReplyEvent[] {
    const events = close();
    open = { type, index: nextIndex, call, json: "", isObject: undefined };
    nextIndex += 1;
    return [...events, { type: "content_block_start", index: open.index, content_block }];
  }

  function close(): ReplyEvent[] {
    if (!open) return [];
    const { index } = open;
    const last = lastDelta(open);
    open = undefined;
    return [...(last ? [deltaEvent(index, last)] : []), { type: "content_block_stop", index }];
  }

  function writeText(text: string): ReplyEvent[] {
    const started = open?.type === "text" ? [] : start("text", { type: "text", text: "" });
    return [...started, deltaEvent(open!.index, { type: "text_delta", text })];
  }

  function writeThinking(thinking: string): ReplyEvent[] {
    const block = { type: "thinking", thinking: "", signature: "" };
    const started = open?.type === "thinking" ? [] : start("thinking", block);
    return [...started, deltaEvent(open!.index, { type: "thinking_delta", thinking })];
  }

  return {
    /** The events of a part. A part of another kind than the block that is open ends that. */
    write(part: ContentPart): ReplyEvent[] {
      if (part.type === "reasoning") return writeThinking(part.text);
      if (part.type !== "tool_call") return writeText(part.text);
      const { name, call } = part;
      const id = idOf(part.id);
      hasCalled = true;
      return start("tool_use", { type: "tool_use", id, name, input: {} }, call);
    },
    /** A piece of the arguments of the call that is open. None if another one is. */
    writeArguments(call: number, partial_json: string): ReplyEvent[] {
      if (open?.call !== call || partial_json === "") return [];
      open.json += partial_json;
      const begins = open.isObject === undefined ? partial_json.trimStart() : "";
      if (begins !== "") open.isObject = begins.startsWith("{");
      if (!open.isObject) return [];
      return [deltaEvent(open.index, argumentsDelta(begins === "" ? partial_json : open.json))];
    },
    /** Whether a call was written. */
    hasCalled: () => hasCalled,
    /** Whether the arguments of the call that is open are not all there. Parses all of them. */
    isWithinCall: () => open?.type === "tool_use" && parseJson(open.json) === undefined,
    close,
  };
}

const argumentsDelta = (partial_json: string) => ({ type: "input_json_delta", partial_json });

/**
 * What ends a block. Arguments that do not begin as an object become one, as in a whole reply: what
 * a client makes of others, it could not send back.
 */
function lastDelta({ type, json, isObject }: OpenBlock): object | undefined {
  if (type === "thinking") return { type: "signature_delta", signature: OWN_SIGNATURE };
  if (type !== "tool_use" || isObject || json.trim() === "") return undefined;
  return argumentsDelta(JSON.stringify({ _raw: json }));
}

/** `firstIndex`: that of the first block. */
export function createEventMaker(showThinking: boolean, firstIndex: number): EventMaker {
  const blocks = createBlockWriter(firstIndex);
  /** They follow at the end: some providers send the arguments of several calls in turns. */
  const waiting: Waiting[] = [];
  const waitingCalls = new Map<number, Waiting>();
  let hasRefused = false;

  function addArguments(call: number, json: string): ReplyEvent[] {
    const later = waitingCalls.get(call);
    if (!later) return blocks.writeArguments(call, json);
    later.json += json;
    return [];
  }

  /** Whether the client is to see something of a part. What it does not see ends no block. */
  function isShown(part: Part): part is ContentPart {
    if (part.type === "reasoning") return showThinking && part.text !== "";
    if (part.type === "text" || part.type === "refusal") return part.text !== "";
    return part.type === "tool_call";
  }

  function add(part: Part): ReplyEvent[] {
    if (part.type === "tool_arguments") return addArguments(part.call, part.text);
    if (!isShown(part)) return [];
    if (part.type === "refusal") hasRefused = true;
    // The arguments of a call are parsed once: this part ends the call, or waits with all others.
    if (waiting.length === 0 && !blocks.isWithinCall()) return blocks.write(part);
    const later = { part, json: "" };
    waiting.push(later);
    if (part.type === "tool_call") waitingCalls.set(part.call, later);
    return [];
  }

  const writeWaiting = ({ part, json }: Waiting): ReplyEvent[] => [
    ...blocks.write(part),
    ...(part.type === "tool_call" ? blocks.writeArguments(part.call, json) : []),
  ];

  return {
    add: (parts) => parts.flatMap(add),
    end(usage, reason) {
      const rest = [...waiting.flatMap(writeWaiting), ...blocks.close()];
      // Some providers say that a text ends with calls. A client would look for them.
      const stated = reason === "tool_calls" && !blocks.hasCalled() ? "stop" : reason;
      const stop_reason = hasRefused ? "refusal" : STOP_REASONS[stated];
      const delta = { stop_reason, stop_sequence: null };
      const last = { type: "message_delta", delta, usage: usageFields(usage) };
      return [...rest, last, { type: "message_stop" }];
    },
  };
}

const deltaEvent = (index: number, delta: object): ReplyEvent => ({
  type: "content_block_delta",
  index,
  delta,
});
