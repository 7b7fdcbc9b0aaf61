// The message that the gateway's own events make.
import { asObject } from "../../../core/schema/untrusted-json.ts";
import type { ReplyEvent } from "../client-apis/index.ts";
import { createTextCounter, objectIn } from "../../providers/turns/index.ts";

type Json = Record<string, unknown>;

export function messageOf(events: readonly ReplyEvent[]): Json {
  let message: Json = {};
  const blocks: Json[] = [];
  for (const { type, delta, ...event } of events) {
    if (type === "message_start") message = { ...asObject(event["message"]) };
    if (type === "content_block_start") blocks.push({ ...asObject(event["content_block"]) });
    if (type === "content_block_delta") grow(blocks.at(-1)!, asObject(delta));
    if (type === "message_delta") message = { ...message, ...asObject(delta), ...event };
  }
  const texts = createTextCounter();
  const content = blocks.map(({ partial_json: json, ...block }) => {
    // The arguments of a call come as text, which a model wrote: it need not be JSON.
    if (typeof json !== "string") return block;
    return { ...block, input: objectIn(json, texts) ?? { _raw: json } };
  });
  return { ...message, content };
}

/** Adds the texts of a delta to those of its block. */
function grow(block: Json, { type: _, ...texts }: Json): void {
  for (const [name, text] of Object.entries(texts)) block[name] = `${block[name] ?? ""}${text}`;
}
