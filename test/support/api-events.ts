// Reads streams of the Messages API and of the Responses API as their clients do, and asserts the
// order of events on which clients rely.

import assert from "node:assert/strict";

type Json = Record<string, any>;

/** The events of a stream. Asserts strict framing: each event has a name and one line of data. */
export function eventsIn(text: string): Json[] {
  assert.ok(text.endsWith("\n\n"), `a stream ends with a blank line: ${text.slice(-80)}`);
  return text
    .slice(0, -2)
    .split("\n\n")
    .map((block) => {
      const [, name, data] = /^event: ([\w.]+)\ndata: (\{.*\})$/.exec(block) ?? assert.fail(block);
      const event: Json = JSON.parse(data!);
      assert.equal(event["type"], name);
      return event;
    });
}

const GROWTH: Readonly<Record<string, readonly [block: string, member: string]>> = {
  text_delta: ["text", "text"],
  thinking_delta: ["thinking", "thinking"],
  signature_delta: ["thinking", "signature"],
  input_json_delta: ["tool_use", "partial_json"],
};

function grow(block: Json, delta: Json): void {
  const [type, member] = GROWTH[delta["type"]] ?? assert.fail(`delta ${delta["type"]}`);
  // A call of one of the provider's own tools has arguments, too.
  const types = type === "tool_use" ? [type, "server_tool_use"] : [type];
  assert.ok(types.includes(block["type"]), `a ${delta["type"]} in a block of ${block["type"]}`);
  block[member] = (block[member] ?? "") + delta[member];
}

/** Assembles the message of a complete stream. Each block must end before the next one begins. */
export function messageIn(events: readonly Json[]): Json {
  const [start, ...rest] = events.filter(({ type }) => type !== "ping");
  assert.equal(start?.["type"], "message_start");
  const message: Json = structuredClone(start!["message"]);
  assert.deepEqual(
    [message["type"], message["role"], message["content"]],
    ["message", "assistant", []],
  );
  assert.equal(typeof message["usage"].input_tokens, "number");
  let open = -1;
  let hasEnded = false;
  for (const event of rest) {
    assert.ok(!hasEnded, `something follows message_stop: ${JSON.stringify(event)}`);
    const { type, index } = event;
    if (type === "content_block_start") {
      assert.deepEqual([open, index], [-1, message["content"].length]);
      message["content"].push(structuredClone(event["content_block"]));
      open = index;
    } else if (type === "content_block_delta") {
      assert.equal(index, open);
      grow(message["content"][index], event["delta"]);
    } else if (type === "content_block_stop") {
      assert.equal(index, open);
      open = -1;
    } else if (type === "message_delta") {
      assert.equal(open, -1);
      Object.assign(message, event["delta"]);
      Object.assign(message["usage"], event["usage"]);
    } else {
      assert.equal(type, "message_stop");
      hasEnded = true;
    }
  }
  assert.ok(hasEnded && message["stop_reason"] !== null, "the stream has no end");
  message["content"].forEach(parseInput);
  return message;
}

/** Parses the arguments of a call, which a stream sends as text. */
function parseInput(block: Json): void {
  if (block["partial_json"]) block["input"] = JSON.parse(block["partial_json"]);
  delete block["partial_json"];
}

// ---- the Responses API

export interface ResponseEvent extends Json {
  readonly type: string;
  readonly sequence_number: number;
}

/** The events of a stream. Asserts that each states its type twice, and consecutive numbers. */
export function readEvents(text: string): ResponseEvent[] {
  const events = eventsIn(text.replaceAll(/^: .*\n\n/gm, "")) as ResponseEvent[];
  assert.deepEqual(
    events.map(({ sequence_number }) => sequence_number),
    [...events.keys()],
  );
  return events;
}

/** The field of an item, or of its part, to which a delta is appended, by the type of the event. */
const DELTAS: Readonly<Record<string, string>> = {
  "response.output_text.delta": "text",
  "response.refusal.delta": "refusal",
  "response.reasoning_summary_text.delta": "text",
  "response.function_call_arguments.delta": "arguments",
  "response.custom_tool_call_input.delta": "input",
};

/** The fields that are added to an item, or that change, when it ends. */
const LATE = ["status", "encrypted_content"];

function endItem(item: Json, whole: Json): void {
  for (const field of LATE) if (field in whole) item[field] = whole[field];
  // Only the last event of a tool search has its arguments.
  if (typeof whole["arguments"] === "object") item["arguments"] = whole["arguments"];
  assert.deepEqual(item, whole);
}

function growItem(item: Json, event: ResponseEvent): void {
  const parts = item["summary"] ?? item["content"];
  const part = parts?.[event["content_index"] ?? event["summary_index"]];
  const field = DELTAS[event.type];
  if (field !== undefined) (part ?? item)[field] += event["delta"];
  else if (event.type.endsWith("part.added")) parts.push(event["part"]);
  else if (event.type.endsWith("part.done")) assert.deepEqual(part, event["part"]);
}

/** Assembles the output from the deltas. Asserts that each item's last event states the same. */
export function assembleResponse(events: readonly ResponseEvent[]): object[] {
  const items: Json[] = [];
  for (const event of events) {
    const { type, item_id, output_index, item } = event;
    if (type === "response.output_item.added") assert.equal(items.push(item), output_index + 1);
    else if (type === "response.output_item.done") endItem(items[output_index]!, item);
    else if (item_id !== undefined) {
      assert.equal(item_id, items[output_index]?.["id"], type);
      growItem(items[output_index]!, event);
    }
  }
  return items;
}
