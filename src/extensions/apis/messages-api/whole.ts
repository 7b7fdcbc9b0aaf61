// Converts between a whole message and its events, for clients that want the other form.
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

/** The events of a whole message. */
export function eventsOf(whole: ReplyEvent): readonly ReplyEvent[] {
  const { content, stop_reason, stop_sequence, usage } = whole;
  const ending = { stop_reason: null, stop_sequence: null };
  const delta = { stop_reason: stop_reason ?? "end_turn", stop_sequence: stop_sequence ?? null };
  return [
    { type: "message_start", message: { ...whole, content: [], ...ending } },
    ...asArray(content).flatMap((block, index) => blockEvents(asObject(block), index)),
    { type: "message_delta", delta, usage: asObject(usage) },
    { type: "message_stop" },
  ];
}

/** By type of block: the members that its deltas carry. */
const DELTA_MEMBERS: ReadonlyMap<unknown, readonly string[]> = new Map([
  ["text", ["text"]],
  ["thinking", ["thinking", "signature"]],
]);

/** The events of a block. Deltas carry its texts and arguments, its first event all else. */
function blockEvents(block: Json, index: number): readonly ReplyEvent[] {
  const { type, input } = block;
  const content_block = { ...block };
  const deltas: object[] = [];
  for (const member of DELTA_MEMBERS.get(type) ?? []) {
    content_block[member] = "";
    deltas.push({ type: `${member}_delta`, [member]: block[member] });
  }
  if (input !== undefined) {
    content_block["input"] = {};
    deltas.push({ type: "input_json_delta", partial_json: JSON.stringify(input) });
  }
  return [
    { type: "content_block_start", index, content_block },
    ...deltas.map((delta) => ({ type: "content_block_delta", index, delta })),
    { type: "content_block_stop", index },
  ];
}
