// The events of a reply in the Messages API. A provider of the same format has said them: they
// pass, and only the model's name is the gateway's. The parts of any other reply become events.
import { randomHex } from "../../../core/ids.ts";
import type { FinishReason, NativePart, Part } from "../../../core/openai/parts.ts";
import type { ChatRequest } from "../../../core/openai/request.ts";
import type { Usage } from "../../../core/openai/usage.ts";
import type { Serving } from "../../../core/routing/attempt.ts";
import { asObject } from "../../../core/schema/untrusted-json.ts";
import { createBlocks, type Emit, type ReplyEvent } from "./blocks.ts";
import { eventsOf } from "./whole.ts";

export const PING: ReplyEvent = { type: "ping" };

const STOP: ReplyEvent = { type: "message_stop" };

/** What the client is told of the tokens. What the cache had nothing to do with is the input. */
function usageFields(usage: Usage) {
  const { cache_write_tokens = 0 } = usage.prompt_tokens_details;
  return {
    input_tokens: usage.prompt_cache_miss_tokens - cache_write_tokens,
    cache_creation_input_tokens: cache_write_tokens,
    cache_read_input_tokens: usage.prompt_cache_hit_tokens,
    output_tokens: usage.completion_tokens,
  };
}

/** The message before it has content. The id is the gateway's own. */
const emptyMessage = ({ model, meter }: Serving) => ({
  id: `msg_${randomHex(12)}`,
  type: "message",
  role: "assistant",
  model: model.name,
  content: [],
  stop_reason: null,
  stop_sequence: null,
  // Nothing has been put out when the message begins.
  usage: { ...usageFields(meter.usage().usage), output_tokens: 0 },
});

const STOP_REASONS: Readonly<Record<FinishReason, string>> = {
  stop: "end_turn",
  length: "max_tokens",
  tool_calls: "tool_use",
  content_filter: "refusal",
};

export function createEventMaker(chat: ChatRequest, serving: Serving, emit: Emit) {
  const { model } = serving;
  const showThinking = chat.showThinking && model.reasoning;
  const blocks = createBlocks(emit);
  /** Whether a provider's own events pass. Undefined: the reply has not begun. */
  let passes: boolean | undefined;
  /** The end of these. It leaves when the request is settled: a client then has its reply. */
  const last: ReplyEvent[] = [];
  let hasCalled = false;
  let hasRefused = false;

  function begin(parts: readonly Part[]): void {
    passes = nativeEvents(parts).some(({ type }) => type === "message_start");
    if (passes) return;
    emit({ type: "message_start", message: emptyMessage(serving) });
    emit(PING);
  }

  function pass(event: ReplyEvent): void {
    const isLast = event.type === "message_delta" || event.type === "message_stop";
    // What comes after an event that is kept must not overtake it.
    if (isLast || last.length > 0) last.push(event);
    else emit(renamed(event, model.name));
  }

  /** What the client does not see ends no block. */
  function translate(part: Part): void {
    if (part.type === "tool_arguments") blocks.addArguments(part.call, part.text);
    if (part.type === "tool_call") {
      hasCalled = true;
      blocks.add(part);
    } else if (part.type === "text" || part.type === "reasoning" || part.type === "refusal") {
      if (part.text === "" || (part.type === "reasoning" && !showThinking)) return;
      if (part.type === "refusal") hasRefused = true;
      blocks.add(part);
    }
  }

  function endTranslated(usage: Usage, reason: FinishReason): void {
    blocks.end();
    // Some providers say that a text ends with calls. A client would look for them.
    const stated = reason === "tool_calls" && !hasCalled ? "stop" : reason;
    const stop_reason = hasRefused ? "refusal" : STOP_REASONS[stated];
    const delta = { stop_reason, stop_sequence: null };
    emit({ type: "message_delta", delta, usage: usageFields(usage) });
  }

  return {
    add(parts: readonly Part[]): void {
      if (passes === undefined) begin(parts);
      if (passes) for (const event of nativeEvents(parts)) pass(event);
      else for (const part of parts) translate(part);
    },
    /** The rest of the reply, also where a provider of the same format did not send all of it. */
    end(usage: Usage, reason: FinishReason): void {
      if (passes === undefined) begin([]);
      if (passes) for (const event of last) emit(event);
      else endTranslated(usage, reason);
      if (last.at(-1)?.type !== STOP.type) emit(STOP);
    },
  };
}

/** The provider's own events among the parts, also where its reply came whole. */
const nativeEvents = (parts: readonly Part[]): readonly ReplyEvent[] =>
  parts
    .filter((part): part is NativePart => part.type === "native")
    .map(({ event }) => event as ReplyEvent)
    .flatMap((event) => (event.type === "message" ? eventsOf(event) : [event]));

/** Under the gateway's name of the model. The id stays: the provider takes it in later requests. */
function renamed(event: ReplyEvent, model: string): ReplyEvent {
  if (event.type !== "message_start") return event;
  return { ...event, message: { ...asObject(event["message"]), model } };
}
