// A message as a whole, of the events that tell of it: the gateway's own, or a provider's.
import { asArray, asObject, asString } from "../../../core/schema/untrusted-json.ts";
import type { ReplyEvent } from "../client-apis/index.ts";
import { createTextCounter, objectIn, type TextCounter } from "../../providers/turns/index.ts";

type Json = Record<string, unknown>;

/**
 * The message that events make. It grows in place: a copy for each piece would take quadratic
 * time.
 */
export function messageOf(events: readonly ReplyEvent[]): Json {
  const message: Json = {};
  const usage: Json = {};
  const blocks = new Map<unknown, Json>();
  for (const { type, index, content_block, delta, ...rest } of events) {
    if (type === "message_start") {
      Object.assign(message, rest["message"]);
      Object.assign(usage, message["usage"]);
    } else if (type === "content_block_start")
      blocks.set(index, structuredClone(asObject(content_block)));
    else if (type === "content_block_delta") grow(blocks.get(index) ?? {}, asObject(delta));
    else if (type === "message_delta") {
      Object.assign(message, delta, rest);
      Object.assign(usage, rest["usage"]);
    }
  }
  const texts = createTextCounter();
  const grown = [...blocks.values()].map((block) => blockOf(block, texts));
  const content = [...asArray(message["content"]), ...grown];
  return { ...message, content, usage };
}

/** Texts grow. What else there is of a delta takes its place in the block. */
function grow(block: Json, { type, citation, ...more }: Json): void {
  if (type === "citations_delta") {
    const { citations } = block;
    if (Array.isArray(citations)) citations.push(citation);
    else block["citations"] = [citation];
  }
  for (const [name, value] of Object.entries(more)) {
    const before = asString(block[name]);
    const isMore = before !== undefined && typeof value === "string";
    block[name] = isMore ? before + value : value;
  }
}

/** The arguments of a call come as text, which a model wrote: it need not be JSON. */
function blockOf({ partial_json, ...block }: Json, texts: TextCounter): Json {
  const json = asString(partial_json) ?? "";
  return json === "" ? block : { ...block, input: objectIn(json, texts) ?? { _raw: json } };
}
