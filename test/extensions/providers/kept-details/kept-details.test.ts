// What a provider wants back with its tool calls, though clients do not see it.

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
const call = (id: string, more: object = {}) => ({ ...callOf(id), ...more });
const detail = (fields: object) => ({ reasoning_details: [{ format: "x", index: 0, ...fields }] });

/** What the provider gets of the calls of a reply that it streamed so. */
function back(events: readonly object[], ids = ["a", "b"]): Json {
  const dialect: Dialect = keepingDetails(compatibleDialect, createSignatureStore());
  const decoder = dialect.decoder(TARGET);
  for (const event of events) decoder.push(event);
  const messages = [{ role: "user", content: "hi" }, ...calledOf(...ids)];
  return askedBy(dialect, { messages }, TARGET).body["messages"][1];
}

const calls = { tool_calls: [call("a"), call("b")].map((each, index) => ({ index, ...each })) };

it("the details of the reasoning before the calls, whole again", () => {
  const message = back([
    delta(detail({ type: "reasoning.text", text: "Hm" })),
    delta(detail({ type: "reasoning.text", text: "m.", signature: null })),
    delta(detail({ type: "reasoning.text", text: "", signature: "sig" })),
    delta({ reasoning_details: [{ type: "reasoning.encrypted", data: "abc", index: 1 }] }),
    delta(calls, "tool_calls"),
  ]);
  assert.deepEqual(message["reasoning_details"], [
    { type: "reasoning.text", text: "Hmm.", format: "x", index: 0, signature: "sig" },
    { type: "reasoning.encrypted", data: "abc", index: 1 },
  ]);
});

it("the details of a whole reply, as they came", () => {
  const reasoning_details = [
    { type: "reasoning.encrypted", data: "abc" },
    { type: "reasoning.encrypted", data: "de" },
  ];
  const message = { content: null, ...calls, reasoning_details };
  const reply = { choices: [{ index: 0, message, finish_reason: "tool_calls" }] };
  assert.deepEqual(back([reply])["reasoning_details"], reasoning_details);
});

it("the signature of each call", () => {
  const extra_content = { google: { thought_signature: "sig" } };
  const message = back([
    delta({ tool_calls: [{ index: 0, ...call("a", { extra_content }) }] }),
    delta({ tool_calls: [{ index: 1, ...call("b") }] }, "tool_calls"),
  ]);
  assert.deepEqual(
    message["tool_calls"].map((each: Json) => each["extra_content"]),
    [extra_content, undefined],
  );
  assert.ok(!("reasoning_details" in message));
});

it("details that are encrypted one by one, though they have the same index", () => {
  const [one, two] = ["AAA", "BBB"].map((data, at) => ({
    type: "reasoning.encrypted",
    id: `r${at}`,
    index: 0,
    data,
  }));
  const message = back([
    delta({ reasoning_details: [one] }),
    delta({ reasoning_details: [two] }),
    delta(calls, "tool_calls"),
  ]);
  assert.deepEqual(message["reasoning_details"], [one, two]);
});

it("the signature of a call whose id is another one for the client", () => {
  const [first, second] = ["S1", "S2"].map((sig) => ({ google: { thought_signature: sig } }));
  const dialect = keepingDetails(compatibleDialect, createSignatureStore());
  const tool_calls = [first, second].map((extra_content, index) => ({
    index,
    ...call("a", { extra_content }),
  }));
  const parts = dialect.decoder(TARGET).push(delta({ tool_calls }, "tool_calls"));
  const ids = parts.flatMap((part) => (part.type === "tool_call" ? [part.id] : []));
  const asked = (target = TARGET, times = 1) => {
    const turn = calledOf(...ids);
    const messages = Array.from({ length: times }, () => turn).flat();
    return askedBy(dialect, { messages }, target)
      .body["messages"].filter(({ role }: Json) => role === "assistant")
      .map(({ tool_calls }: Json) => tool_calls.map((each: Json) => each["extra_content"]));
  };
  assert.deepEqual(asked(), [[first, second]]);
  const none = [undefined, undefined];
  assert.deepEqual(asked(TARGET, 3), [none, none, [first, second]], "once in a request");
  assert.deepEqual(asked({ ...TARGET, upstreamModel: "another" }), [none]);
});

it("nothing of a reply that broke off, or of other calls", () => {
  const details = delta(detail({ type: "reasoning.text", text: "Hm." }));
  for (const message of [
    back([details, delta(calls)]),
    back([details, delta(calls, "stop")], ["c"]),
  ])
    assert.deepEqual(Object.keys(message), ["role", "content", "tool_calls"]);
});
