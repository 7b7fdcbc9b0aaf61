// Writes a reply of the Messages API: as a stream of events, or as one message. The reply of a
// provider of the same format passes unchanged, except for the model's name. The parts of any other
// reply become events.
import { randomHex } from "../../../core/ids.ts";
import type { FinishReason, Part } from "../../../core/openai/parts.ts";
import { RECOVERED, type ReplyWriter } from "../../../core/openai/reply.ts";
import type { ChatRequest } from "../../../core/openai/request.ts";
import type { Usage } from "../../../core/openai/usage.ts";
import type { Serving } from "../../../core/routing/attempt.ts";
import { asObject } from "../../../core/schema/untrusted-json.ts";
import { eventText, type ReplyEvent, type Sealer } from "../client-apis/index.ts";
import { createBlocks } from "./blocks.ts";
import { messageOf } from "./whole.ts";

export const PING: ReplyEvent = { type: "ping" };

const STOP: ReplyEvent = { type: "message_stop" };

/** This API's token counts. `input_tokens` excludes tokens read from or written to the cache. */
function usageFields(usage: Usage) {
  const { cache_write_tokens = 0 } = usage.prompt_tokens_details;
  return {
    input_tokens: usage.prompt_cache_miss_tokens - cache_write_tokens,
    cache_creation_input_tokens: cache_write_tokens,
    cache_read_input_tokens: usage.prompt_cache_hit_tokens,
    output_tokens: usage.completion_tokens,
    output_tokens_details: { thinking_tokens: usage.completion_tokens_details.reasoning_tokens },
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
  // When the message begins, there is no output yet.
  usage: { ...usageFields(meter.usage().usage), output_tokens: 0, output_tokens_details: null },
});

const STOP_REASONS: Readonly<Record<FinishReason, string>> = {
  stop: "end_turn",
  length: "max_tokens",
  tool_calls: "tool_use",
  content_filter: "refusal",
};

/** The provider's own events. */
const nativeEvents = (parts: readonly Part[]): readonly ReplyEvent[] =>
  parts.flatMap((part) => (part.type === "native" ? [part.event as ReplyEvent] : []));

/** As ClientApi.writer. */
export function createWriter(
  chat: ChatRequest,
  serving: Serving,
  seal: Sealer["seal"],
): Required<ReplyWriter> {
  const { model } = serving;
  const hasThoughts = chat.wantsThinking && model.reasoning;
  let events: ReplyEvent[] = [];
  const emit = (event: ReplyEvent): unknown => events.push(event);
  const blocks = createBlocks(emit, chat.showThinking ? undefined : seal);
  /** Whether the provider's own events are passed on. Undefined: the reply has not begun. */
  let isNative: boolean | undefined;
  /** The last events, which are sent when the request is settled. */
  const heldBack: ReplyEvent[] = [];
  let hasRefused = false;

  /** A whole reply of the provider is no stream: its parts become events if the client streams. */
  function begin(native: readonly ReplyEvent[]): void {
    isNative = native.some(
      ({ type }) => type === "message_start" || (type === "message" && !chat.stream),
    );
    if (isNative) return;
    emit({ type: "message_start", message: emptyMessage(serving) });
    emit(PING);
  }

  /** Passes on an event. A message keeps its id: the provider accepts it in later requests. */
  function passOn(event: ReplyEvent): void {
    const isLast = event.type === "message_delta" || event.type === "message_stop";
    // Later events must not overtake an event that is held back.
    if (isLast || heldBack.length > 0) heldBack.push(event);
    else if (event.type === "message_start")
      emit({ ...event, message: { ...asObject(event["message"]), model: model.name } });
    else emit(event);
  }

  /** Writes a part. A part that the client does not get leaves the open block open. */
  function translate(part: Part): void {
    if (part.type === "tool_arguments") blocks.addArguments(part.call, part.text);
    else if (part.type === "tool_call") blocks.add(part);
    else if ("text" in part && part.text !== "" && (part.type !== "reasoning" || hasThoughts)) {
      hasRefused ||= part.type === "refusal";
      blocks.add(part);
    }
  }

  function endTranslated(usage: Usage, reason: FinishReason): void {
    blocks.end();
    const stop_reason = hasRefused ? "refusal" : STOP_REASONS[reason];
    const delta = { stop_reason, stop_sequence: null };
    emit({ type: "message_delta", delta, usage: usageFields(usage) });
  }

  /** The events since the last call. */
  function take(): string {
    const text = events.map(eventText).join("");
    events = [];
    return text;
  }

  return {
    add(parts) {
      const native = nativeEvents(parts);
      if (isNative === undefined) begin(native);
      if (isNative) for (const event of native) passOn(event);
      else for (const part of parts) translate(part);
      return chat.stream ? take() : "";
    },
    end(usage, reason) {
      if (events[0]?.type === "message") return JSON.stringify({ ...events[0], model: model.name });
      if (isNative === undefined) begin([]);
      if (isNative) for (const event of heldBack) emit(event);
      else endTranslated(usage, reason);
      // A provider of the same format may omit message_stop.
      if (heldBack.at(-1)?.type !== STOP.type) emit(STOP);
      return chat.stream ? take() : JSON.stringify(messageOf(events));
    },
    // The resumed text continues in the same block. Native replies are never resumed.
    resumed: () => RECOVERED,
  };
}
