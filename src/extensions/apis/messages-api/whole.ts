// Builds a whole message from its events, for clients that do not stream.
import { asArray, asObject, asString } from "../../../core/schema/untrusted-json.ts";
import type { ReplyEvent } from "../client-apis/index.ts";
import { createTextCounter, objectIn, type TextCounter } from "../../providers/turns/index.ts";

type Json = Record<string, unknown>;

/** Builds a message from its events. Texts grow in place: copies would take quadratic time. */
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

/** Adds a delta to a block: appends texts and citations, and replaces all else. */
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

/**
 * Parses a call's arguments into `input`. A text that is no JSON object becomes its member `_raw`.
 */
function blockOf({ partial_json, ...block }: Json, texts: TextCounter): Json {
  const json = asString(partial_json) ?? "";
  return json === "" ? block : { ...block, input: objectIn(json, texts) ?? { _raw: json } };
}
