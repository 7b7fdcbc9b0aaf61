// What a provider requires back with its tool calls, although clients do not see it.

import assert from "node:assert/strict";
import { it } from "node:test";
import type { Dialect } from "../../../../src/core/providers/dialect.ts";
import { compatibleDialect } from "../../../../src/extensions/providers/compatible/index.ts";
import { keepingDetails } from "../../../../src/extensions/providers/kept-details/index.ts";
import { createSignatureStore } from "../../../../src/extensions/providers/turns/index.ts";
import { askedBy, calledOf, callOf, targetOf } from "../dialect-bench.ts";

type Json = Record<string, any>;

const TARGET = targetOf({ vendor: "openrouter" }, { reasoning: true });
const delta = (fields: object, finish_reason: string | null = null) => ({
  choices: [{ index: 0, delta: fields, finish_reason }],
});
const reasoned = (...reasoning_details: object[]) => delta({ reasoning_details });
const text = (fields: object) => ({ type: "reasoning.text", format: "x", index: 0, ...fields });
const encrypted = (data: string, more: object = {}) => ({
  type: "reasoning.encrypted",
  data,
  ...more,
});
const signed = (thought_signature: string) => ({ google: { thought_signature } });
const tool_calls = ["a", "b"].map((id, index) => ({ index, ...callOf(id) }));
const CALLED = delta({ tool_calls }, "tool_calls");

/** What the provider gets back with the calls of a reply that it streamed in these events. */
function back(events: readonly object[], ids = ["a", "b"], target = TARGET): Json {
  const dialect: Dialect = keepingDetails(compatibleDialect, createSignatureStore());
  const decoder = dialect.decoder(target);
  for (const event of events) decoder.push(event);
  const messages = [{ role: "user", content: "hi" }, ...calledOf(...ids)];
  return askedBy(dialect, { messages }, target).body["messages"][1];
}

it("the reasoning details before the calls, reassembled", () => {
  const message = back([
    reasoned(text({ text: "Hm" })),
    reasoned(text({ text: "m.", signature: null })),
    reasoned(text({ text: "", signature: "sig" })),
    reasoned(encrypted("abc", { index: 1 })),
    CALLED,
  ]);
  const whole = text({ text: "Hmm.", signature: "sig" });
  assert.deepEqual(message["reasoning_details"], [whole, encrypted("abc", { index: 1 })]);
});

it("the details before calls that get other ids, as Mistral demands", () => {
  const target = targetOf({ vendor: "openrouter", alternates: true }, { reasoning: true });
  const message = back([reasoned(encrypted("abc")), CALLED], ["a", "b"], target);
  assert.notEqual(message["tool_calls"][0].id, "a");
  assert.deepEqual(message["reasoning_details"], [encrypted("abc")]);
});

it("the details of a whole reply, unchanged", () => {
  const reasoning_details = [encrypted("abc"), encrypted("de")];
  const message = { content: null, tool_calls, reasoning_details };
  const reply = { choices: [{ index: 0, message, finish_reason: "tool_calls" }] };
  assert.deepEqual(back([reply])["reasoning_details"], reasoning_details);
});

it("the signature of each call", () => {
  const [first, second] = tool_calls;
  const message = back([
    delta({ tool_calls: [{ ...first, extra_content: signed("sig") }] }),
    delta({ tool_calls: [second] }, "tool_calls"),
  ]);
  const signatures = message["tool_calls"].map((each: Json) => each["extra_content"]);
  assert.deepEqual(signatures, [signed("sig"), undefined]);
  assert.ok(!("reasoning_details" in message));
});

it("at most 4 MiB of signatures per reply", () => {
  const kept: string[] = [];
  const store = { get: () => undefined, set: (id: string) => kept.push(id) };
  const { push } = keepingDetails(compatibleDialect, store).decoder(TARGET);
  const extra_content = signed("x".repeat(4 * 1024 * 1024));
  const calls = tool_calls.map((each) => ({ ...each, extra_content }));
  push(delta({ tool_calls: calls }, "tool_calls"));
  assert.equal(kept.length, 1);
});

it("details that are encrypted one by one, although they have the same index", () => {
  const [one, two] = ["AAA", "BBB"].map((data) => encrypted(data, { id: data, index: 0 }));
  const message = back([reasoned(one!), reasoned(two!), CALLED]);
  assert.deepEqual(message["reasoning_details"], [one, two]);
});

it("the signature of a call whose id differs for the client", () => {
  const both = [signed("S1"), signed("S2")];
  const dialect = keepingDetails(compatibleDialect, createSignatureStore());
  const calls = both.map((extra_content, index) => ({ index, ...callOf("a"), extra_content }));
  const parts = dialect.decoder(TARGET).push(delta({ tool_calls: calls }, "tool_calls"));
  const ids = parts.flatMap((part) => (part.type === "tool_call" ? [part.id] : []));
  const asked = (target = TARGET, times = 1) => {
    const messages = Array.from({ length: times }, () => calledOf(...ids)).flat();
    return askedBy(dialect, { messages }, target)
      .body["messages"].filter(({ role }: Json) => role === "assistant")
      .map((message: Json) => message["tool_calls"].map((each: Json) => each["extra_content"]));
  };
  assert.deepEqual(asked(), [both]);
  const none = [undefined, undefined];
  assert.deepEqual(asked(TARGET, 3), [none, none, both], "once in a request");
  assert.deepEqual(asked({ ...TARGET, upstreamModel: "another" }), [none]);
});

it("nothing of a reply that broke off, or of other calls", () => {
  const details = reasoned(text({ text: "Hm." }));
  for (const message of [back([details, delta({ tool_calls })]), back([details, CALLED], ["c"])])
    assert.deepEqual(Object.keys(message), ["role", "content", "tool_calls"]);
});

for (const words of [
  "messages.7.content.2: Invalid `signature` in `thinking` block",
  "Corrupted thought signature.",
  "Referenced reasoning item rs_1 was not found or has expired.",
])
  it(`no details that the provider could not open: ${words}`, () => {
    const dialect = keepingDetails(compatibleDialect, createSignatureStore());
    const { push } = dialect.decoder(TARGET);
    for (const event of [reasoned(encrypted("abc")), CALLED]) push(event);
    const sent = (): unknown =>
      askedBy(dialect, { messages: calledOf("a", "b") }, TARGET).body["messages"][0][
        "reasoning_details"
      ];
    const raw = JSON.stringify({ error: { code: 400, message: words } });
    const error = { code: 400, message: "Provider returned error", metadata: { raw } };
    const refused = () => dialect.refusal(400, { get: () => null }, { error }).code;
    assert.equal(refused(), "upstream_rejected", "none was sent");
    assert.deepEqual(sent(), [encrypted("abc")]);
    assert.equal(refused(), "upstream_error", "the gateway asks again");
    assert.equal(sent(), undefined);
  });
