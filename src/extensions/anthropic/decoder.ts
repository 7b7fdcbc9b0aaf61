// Anthropic's reply, whole or event by event. WIRE.md 7.2.
import { randomHex } from "../../core/ids.ts";
import type { NativePart, Part } from "../../core/openai/parts.ts";
import { namelessCall, textPart, withUsage } from "../../core/providers/decoding.ts";
import type { Decoder } from "../../core/providers/dialect.ts";
import { ProviderError } from "../../core/providers/provider-error.ts";
import { asArray, asObject, asString } from "../../core/schema/untrusted-json.ts";
import { finishPart, throwErrorIn } from "../provider-words/index.ts";
import type { SignatureStore } from "../turns/index.ts";
import { createThoughtCollector } from "./thoughts.ts";
import { createUsageReader } from "./usage.ts";

/** `isNative`: the client speaks this format too, so each event also passes as it came. */
export function createAnthropicDecoder(signatures: SignatureStore, isNative = false): Decoder {
  const blocks = createBlockReader(signatures);
  const usageIn = createUsageReader();
  let isOver = false;
  let replyId: unknown;
  let hasBegun = false;

  /**
   * A second beginning with another id is another reply: a proxy that asked twice joined the two.
   */
  function begin(id: unknown): void {
    if (hasBegun && id !== replyId) {
      isOver = true; // neither its content nor its figures belong to this reply
      throw new ProviderError("upstream_error", "another reply begins inside this one");
    }
    hasBegun = true;
    replyId = id;
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
    // Content that is there from the start has no events of its own.
    const parts = asArray(content).flatMap((block, at) =>
      blocks.read(asObject(block), `start ${at}`),
    );
    return [...parts, ...finishPart(stop_reason)];
  }

  const pushBoth = (json: unknown): Part[] => {
    const parts = push(json);
    const event = asObject(json);
    // What has no type is no event of this format.
    return isNative && asString(event["type"]) ? [nativePart(event), ...parts] : parts;
  };

  const decoder: Decoder = { push: pushBoth, ended: () => isOver };
  return withUsage((json) => (isOver ? undefined : usageIn(json)), decoder);
}

/** An event as it came. Only what a client would miss is content. */
function nativePart(event: Record<string, unknown>): NativePart {
  const { type, content_block: block } = event;
  const isEmptyBlock = ["text", "thinking"].includes(String(asObject(block)["type"]));
  const startsContent = type === "content_block_start" && !isEmptyBlock;
  const content = type === "content_block_delta" || type === "message" || startsContent;
  return { type: "native", event, content };
}

interface BlockReader {
  /** The parts of a block's beginning, of the whole block, or of more of it (a delta). */
  read(piece: Record<string, unknown>, index: unknown): Part[];
}

function createBlockReader(signatures: SignatureStore): BlockReader {
  const thoughts = createThoughtCollector();
  /** The indexes of tool calls in the reply, by their blocks' indexes. */
  const calls = new Map<unknown, number>();

  function startCall(piece: Record<string, unknown>, index: unknown): Part[] {
    const id = asString(piece["id"]) || `call_${randomHex(12)}`;
    const name = asString(piece["name"]);
    if (!name) throw namelessCall();
    const call = calls.size;
    calls.set(index, call);
    const led = thoughts.take();
    if (led !== undefined) signatures.set(id, led);
    const { input } = piece;
    const parts: Part[] = [{ type: "tool_call", call, id, name }];
    if (Object.keys(asObject(input)).length > 0)
      parts.push({ type: "tool_arguments", call, text: JSON.stringify(input) });
    return parts;
  }

  return {
    read(piece, index) {
      thoughts.read(piece);
      switch (piece["type"]) {
        case "text":
        case "text_delta":
          return textPart("text", piece["text"]);
        case "thinking":
        case "thinking_delta":
          return textPart("reasoning", piece["thinking"]);
        case "tool_use":
          return startCall(piece, index);
        case "input_json_delta": {
          const call = calls.get(index);
          const text = asString(piece["partial_json"]) ?? "";
          return call === undefined ? [] : [{ type: "tool_arguments", call, text }];
        }
        default:
          return [];
      }
    },
  };
}
