// Reads a stream of the Messages API as its clients do, and holds it to the order that they count
// on: the message begins, each block begins, grows and ends before the next, the message ends.

import assert from "node:assert/strict";

type Json = Record<string, any>;

/** The events of a stream. Its framing is strict: a name and one line of data each. */
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
  const types = [type, `server_${type}`]; // a call of the provider's own tools has arguments too
  assert.ok(types.includes(block["type"]), `a ${delta["type"]} in a block of ${block["type"]}`);
  block[member] = (block[member] ?? "") + delta[member];
}

/** The message that the events of a complete stream make. */
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

/** The arguments of a call have come as text. */
function parseInput(block: Json): void {
  if (block["partial_json"]) block["input"] = JSON.parse(block["partial_json"]);
  delete block["partial_json"];
}
