// Replies of the Messages API: parts become events or one message with the same content; calls with
// interleaved arguments; ids; and a reply that another model continues.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Meter } from "../../../../src/core/ledger/meter.ts";
import type { FinishReason, Part } from "../../../../src/core/openai/parts.ts";
import { makeUsage } from "../../../../src/core/openai/usage.ts";
import type { Serving } from "../../../../src/core/routing/attempt.ts";
import { runSync } from "../../../../src/core/turns.ts";
import { createWriter } from "../../../../src/extensions/apis/messages-api/reply.ts";
import { readRequest } from "../../../../src/extensions/apis/messages-input/index.ts";
import { statedId } from "../../../../src/extensions/providers/provider-words/index.ts";
import { startEffort } from "../../../support/effort.ts";
import { eventsIn, messageIn } from "../../../support/api-events.ts";

type Json = Record<string, any>;

const USAGE = makeUsage({ prompt: 20, completion: 7, cacheHit: 8, reasoning: 3, cacheWrite: 5 });

function seal(thought: string): string {
  assert.equal(thought, "Hm.", "only thoughts are sealed");
  return `<${thought}>`;
}

function writerFor(stream: boolean, thinking: object = { type: "adaptive" }) {
  const messages = [{ role: "user", content: "Hi" }];
  const json = { model: "m", max_tokens: 100, messages, thinking, stream };
  const chat = runSync(readRequest({ json, large: false }, {}, () => undefined));
  const meter = new Meter(chat, () => 0);
  meter.observe({ type: "text", text: "x" });
  const model = { name: "m", reasoning: true } as Serving["model"];
  return createWriter(chat, { model, others: [], meter }, seal);
}

/** Ids that the gateway generates differ each time. */
const withoutOwnIds = (message: Json): Json =>
  JSON.parse(JSON.stringify(message).replace(/(msg|toolu)_([0-9a-f]{24}|[\w-]{4}(?=_))/g, "$1"));

/** The message of these parts. It must be the same streamed and whole. */
function messageOf(batches: readonly Part[][], reason: FinishReason = "stop", thinking?: object) {
  const whole = writerFor(false, thinking);
  for (const parts of batches) assert.equal(whole.add(parts), "");
  const message: Json = JSON.parse(whole.end(USAGE, reason));
  const writer = writerFor(true, thinking);
  const text = batches.map((parts) => writer.add(parts)).join("") + writer.end(USAGE, reason);
  const fromEvents = messageIn(eventsIn(text));
  assert.deepEqual(withoutOwnIds(fromEvents), withoutOwnIds(message));
  return message;
}

const call = (index: number, id = `call_0000${index}`): Part => {
  const name = `f${index}`;
  return { type: "tool_call", call: index, id, name };
};
const args = (index: number, text: string): Part => ({ type: "tool_arguments", call: index, text });
const text = (words: string): Part => ({ type: "text", text: words });
const reasoning = (words: string): Part => ({ type: "reasoning", text: words });

describe("a reply", () => {
  it("has blocks for thinking, text and calls", () => {
    const message = messageOf(
      [
        [reasoning("Hm")],
        [reasoning("."), text("Let ")],
        [text("me see."), call(0), args(0, '{"x"')],
        [args(0, ":1}"), call(1), { type: "finish", reason: "tool_calls" }],
      ],
      "tool_calls",
    );
    assert.deepEqual(message["content"], [
      { type: "thinking", thinking: "Hm.", signature: "chat-gateway" },
      { type: "text", text: "Let me see." },
      { type: "tool_use", id: "call_00000", name: "f0", input: { x: 1 } },
      { type: "tool_use", id: "call_00001", name: "f1", input: {} },
    ]);
    assert.equal(message["stop_reason"], "tool_use");
    assert.deepEqual(message["usage"], {
      input_tokens: 7,
      cache_creation_input_tokens: 5,
      cache_read_input_tokens: 8,
      output_tokens: 7,
      output_tokens_details: { thinking_tokens: 3 },
    });
  });

  it("has thinking only if requested, and in a sealed signature if it must not be shown", () => {
    const parts = [reasoning("H"), reasoning("m."), text("A"), call(0), args(0, "{}")];
    const [none, hidden] = [{ type: "disabled" }, { type: "adaptive", display: "omitted" }].map(
      (thinking) => messageOf([parts], "stop", thinking)["content"],
    );
    assert.deepEqual(none[0], text("A"));
    const signature = "chat-gateway:<Hm.>";
    assert.deepEqual(hidden[0], { type: "thinking", thinking: "", signature });
  });

  it("states its stop_reason", () => {
    const reasons = { stop: "end_turn", length: "max_tokens", content_filter: "refusal" } as const;
    for (const [reason, expected] of Object.entries(reasons))
      assert.equal(messageOf([[text("A")]], reason as FinishReason)["stop_reason"], expected);
    const { stop_reason, content } = messageOf([[{ type: "refusal", text: "No." }]]);
    assert.deepEqual([stop_reason, content], ["refusal", [{ type: "text", text: "No." }]]);
  });

  it("may be empty", () => assert.deepEqual(messageOf([[]])["content"], []));

  it("loses nothing of calls with interleaved arguments", () => {
    const message = messageOf(
      [
        [call(0), call(1), args(0, '{"a":'), args(1, '{"b":')],
        [text("So."), args(1, "2}"), args(0, "1}"), call(2), args(2, "{}")],
      ],
      "tool_calls",
    );
    const blocks = message["content"].map(({ name, input, text }: Json) => text ?? [name, input]);
    assert.deepEqual(blocks, [["f0", { a: 1 }], ["f1", { b: 2 }], "So.", ["f2", {}]]);
  });

  it("has unique ids that every provider accepts", () => {
    const ids = ["Zx9Yw8Vu7", "toolu_01ABCDEFGH", "functions.f:0", "call_0", "", "Zx9Yw8Vu7"];
    const given = messageOf(ids.map((id, index) => [call(index, id), args(index, "{}")]));
    const [first, second, ...others] = given["content"].map(({ id }: Json) => id);
    assert.deepEqual([first, second], ids.slice(0, 2));
    for (const id of others) assert.match(id, /^[\w-]{9,64}$/);
    assert.equal(new Set(others).size, 4);
    const stated = others.map(statedId).toSpliced(2, 1);
    assert.deepEqual(stated, ["functions.f:0", "call_0", "Zx9Yw8Vu7"]);
  });

  it("turns arguments that do not begin as an object into one, so that they can be sent back", () => {
    for (const pieces of [["[1]"], [" ", "[", "1", "]"], ['"x"'], ["oops"]]) {
      const message = messageOf([[call(0), ...pieces.map((piece) => args(0, piece))]]);
      assert.deepEqual(message["content"][0].input, { _raw: pieces.join("") });
    }
    const blanks = messageOf([[call(0), args(0, " "), args(0, '\n{"x":'), args(0, "1}")]]);
    assert.deepEqual(blanks["content"][0].input, { x: 1 });
    const turns = messageOf([[call(0), args(0, "[1]"), call(1), args(1, "2"), text("So.")]]);
    const inputs = turns["content"].map(({ input }: Json) => input);
    assert.deepEqual(inputs, [{ _raw: "[1]" }, { _raw: "2" }, undefined]);
    // Arguments that begin as an object and break off.
    const writer = writerFor(false);
    writer.add([call(0), args(0, "{oops")]);
    const { content } = JSON.parse(writer.end(USAGE, "tool_calls"));
    assert.deepEqual(content[0].input, { _raw: "{oops" });
  });
});

const native = (event: Json): Part => ({ type: "native", event, content: true });

it("a reply that another model continues stays in the same block", () => {
  const { add, resumed, end } = writerFor(true);
  const sent = add([text("On")]) + resumed!("two", "fp_2") + add([text("ce.")]);
  const events = eventsIn(sent.replace(": recovered\n\n", "") + end(USAGE, "stop"));
  assert.deepEqual(messageIn(events)["content"], [text("Once.")]);
});

it("passed-through events are completed even if the provider did not send the end", () => {
  const writer = writerFor(true);
  const usage = { input_tokens: 1, output_tokens: 1 };
  const message = { type: "message", role: "assistant", model: "y", content: [], usage };
  const sent = writer.add([
    native({ type: "message_start", message }),
    native({ type: "message_delta", delta: { stop_reason: "end_turn" }, usage: {} }),
  ]);
  const rest = writer.end(USAGE, "stop");
  const types = eventsIn(rest).map(({ type }) => type);
  assert.deepEqual(types, ["message_delta", "message_stop"]);
  assert.equal(messageIn(eventsIn(sent + rest))["model"], "m");
});

it("the work on a reply parses a call's arguments at most once, whatever follows them", (t) => {
  const whole = JSON.stringify({ text: "x".repeat(10_000) });
  const parse = t.mock.method(JSON, "parse");
  for (const [json, ...pieces] of [
    [whole, reasoning("Hm."), text("")],
    [whole.slice(0, -2), text("And "), args(0, "x")],
  ] as [string, ...Part[]][])
    for (const type of ["disabled", "adaptive"]) {
      const writer = writerFor(true, { type });
      parse.mock.resetCalls();
      writer.add([call(0), args(0, json)]);
      for (let round = 0; round < 100; round += 1) for (const piece of pieces) writer.add([piece]);
      const lengths = parse.mock.calls.map(({ arguments: [text] }) => text.length);
      const parsed = lengths.reduce((sum, length) => sum + length, 0);
      assert.ok(parsed <= json.length, `${parsed} characters were parsed, of ${json.length}`);
      const texts = eventsIn(writer.end(USAGE, "tool_calls")).map(({ delta }) => delta?.text);
      const expected = pieces.map((piece) => (piece.type === "text" ? piece.text : "")).join("");
      assert.equal(texts.join(""), expected.repeat(100));
    }
});

it("the work on a reply is linear in the provider's passed-through events", () => {
  const [pieces, members] = [20_000, 3_000];
  const delta = (more: object): Part =>
    native({ type: "content_block_delta", index: 0, delta: more });
  const writer = writerFor(false);
  const effort = startEffort();
  writer.add([native({ type: "message_start", message: { content: [] } })]);
  const content_block = { type: "text", text: "", citations: [-1] };
  writer.add([native({ type: "content_block_start", index: 0, content_block })]);
  const text = delta({ type: "text_delta", text: "a" });
  for (let place = 0; place < pieces; place += 1)
    writer.add([text, delta({ type: "citations_delta", citation: place })]);
  for (let place = 0; place < members; place += 1)
    writer.add([delta({ type: "new", [`member_${place}`]: place })]);
  for (let place = 0; place < members; place += 1) {
    const more = { [`member_${place}`]: place, usage: { [place]: place } };
    writer.add([native({ type: "message_delta", delta: {}, ...more })]);
  }
  const message: Json = JSON.parse(writer.end(USAGE, "stop"));
  const took = effort();
  const [block] = message["content"];
  assert.equal(block.text, "a".repeat(pieces));
  assert.deepEqual([block.citations.length, block.citations[0]], [pieces + 1, -1]);
  const last = `member_${members - 1}`;
  assert.deepEqual([block[last], message[last]], [members - 1, members - 1]);
  assert.equal(Object.keys(message["usage"]).length, members);
  assert.ok(took < 200, `it took ${took} units`);
});
