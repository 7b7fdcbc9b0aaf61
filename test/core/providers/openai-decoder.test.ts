// The core's decoder of OpenAI's format: replies, usage and errors as documented.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Part } from "../../../src/core/openai/parts.ts";
import { wholeReply } from "../../../src/core/providers/decoding.ts";
import type { Target } from "../../../src/core/providers/dialect.ts";
import { createOpenaiDecoder } from "../../../src/core/providers/openai/decoder.ts";
import { openaiDialect } from "../../../src/core/providers/openai/index.ts";
import { refusal } from "../../../src/core/providers/openai/refusal.ts";
import { ProviderError } from "../../../src/core/providers/provider-error.ts";
import { thrownBy } from "../../support/wait.ts";

const NO_HEADERS = { get: () => null };

/** The parts of these events, in order. */
function partsOf(...events: readonly object[]): Part[] {
  const decoder = createOpenaiDecoder();
  return events.flatMap((event) => decoder.push(event));
}
const delta = (fields: object, finish_reason: string | null = null) => ({
  choices: [{ index: 0, delta: fields, finish_reason }],
});

describe("the core's decoder", () => {
  it("reads reasoning, text, refusal, log probabilities and the finish of a stream, in order", () => {
    const token = { token: "Yes", logprob: -0.5, bytes: [89, 101, 115], top_logprobs: [] };
    const logprobs = { content: [token], refusal: null };
    assert.deepEqual(
      partsOf(
        delta({ role: "assistant", content: "" }),
        delta({ reasoning_content: "Hm." }),
        { choices: [{ delta: { content: "Yes", refusal: "No." }, logprobs }] },
        delta({}, "stop"),
      ),
      [
        { type: "reasoning", text: "Hm." },
        { type: "text", text: "Yes", logprobs: [token] },
        { type: "refusal", text: "No." },
        { type: "finish", reason: "stop" },
      ],
    );
  });

  it("reads every finish reason, and an unknown one as stop", () => {
    const reasons = ["length", "tool_calls", "function_call", "content_filter", "a new word"];
    const read = reasons.flatMap((word) => partsOf(delta({}, word)));
    assert.deepEqual(
      read.map((part) => part.type === "finish" && part.reason),
      ["length", "tool_calls", "tool_calls", "content_filter", "stop"],
    );
  });

  it("numbers tool calls in the order of their first fragments, whatever index the provider states", () => {
    const call = (index: number, fields: object) => delta({ tool_calls: [{ index, ...fields }] });
    assert.deepEqual(
      partsOf(
        call(900_000, { id: "call_a", function: { name: "f", arguments: "" } }),
        call(5, { id: "call_b", function: { name: "g", arguments: "{" } }),
        call(5, { function: { arguments: "}" } }),
        call(900_000, { function: { arguments: "{}" } }),
      ),
      [
        { type: "tool_call", call: 0, id: "call_a", name: "f" },
        { type: "tool_call", call: 1, id: "call_b", name: "g" },
        { type: "tool_arguments", call: 1, text: "{" },
        { type: "tool_arguments", call: 1, text: "}" },
        { type: "tool_arguments", call: 0, text: "{}" },
      ],
    );
  });

  it("reads the tool calls of a whole reply, which have no index", () => {
    const tool_calls = ["f", "g"].map((name) => ({ id: `call_${name}`, function: { name } }));
    const message = { content: null, tool_calls };
    assert.deepEqual(partsOf({ choices: [{ message, finish_reason: "tool_calls" }] }), [
      { type: "tool_call", call: 0, id: "call_f", name: "f" },
      { type: "tool_call", call: 1, id: "call_g", name: "g" },
      { type: "finish", reason: "tool_calls" },
    ]);
  });

  it("reads content that is not text as JSON, so that nothing is lost", () => {
    const tool_calls = [{ index: 0, id: "call_a", function: { name: "f", arguments: { x: 1 } } }];
    assert.deepEqual(partsOf(delta({ content: { answer: 42 }, tool_calls })), [
      { type: "text", text: '{"answer":42}' },
      { type: "tool_call", call: 0, id: "call_a", name: "f" },
      { type: "tool_arguments", call: 0, text: '{"x":1}' },
    ]);
  });

  it("rejects a tool call whose first fragment has no name", () =>
    assert.throws(
      () => partsOf(delta({ tool_calls: [{ index: 0, function: { arguments: "{}" } }] })),
      { message: "a tool call without a name" },
    ));

  it("reads usage, with cached and reasoning tokens if they are stated", () => {
    const usage = {
      prompt_tokens: 10,
      completion_tokens: 5,
      prompt_tokens_details: { cached_tokens: 4 },
      completion_tokens_details: { reasoning_tokens: 3 },
    };
    assert.deepEqual(partsOf({ choices: [], usage }), [
      { type: "usage", usage: { prompt: 10, completion: 5, cacheHit: 4, reasoning: 3 } },
    ]);
    assert.deepEqual(partsOf({ choices: [], usage: null }), []);
  });

  it("throws the error of an error event, with the usage that it states", () => {
    const event = { error: { code: 429, message: "slow down" }, usage: { prompt_tokens: 7 } };
    const { code, usage } = thrownBy(ProviderError, () => partsOf(event));
    assert.deepEqual([code, usage?.prompt], ["model_overloaded", 7]);
  });

  it("ignores events that it does not know", () => {
    const calls = { choices: [{ delta: { tool_calls: 7 } }] };
    for (const json of [null, 7, "x", [], { choices: 7 }, calls])
      assert.deepEqual(createOpenaiDecoder().push(json), [], JSON.stringify(json));
  });
});

it("the core takes a body with a message for a whole reply", () => {
  for (const [json, isReply] of [
    [{ choices: [{ message: { content: "Hi" } }] }, true],
    [{ choices: [{}] }, false],
    [{ choices: [{ message: null }] }, false],
    [{ object: "list" }, false],
  ] as const)
    assert.equal(openaiDialect.isReply(json), isReply);
});

it("a whole reply without a finish reason is finished", () => {
  const json = { choices: [{ message: { content: "Hi." } }] };
  assert.deepEqual(wholeReply(openaiDialect, json, {} as Target), [
    { type: "text", text: "Hi." },
    { type: "finish", reason: "stop" },
  ]);
});

describe("the core's reading of an error response", () => {
  for (const [status, code, expected, blame] of [
    [400, null, "upstream_rejected", "client"],
    [400, "context_length_exceeded", "context_length_exceeded", "client"],
    [400, "content_filter", "content_filter", "client"],
    [401, null, "model_unavailable", "operator"],
    [404, null, "model_unavailable", "operator"],
    [429, null, "model_overloaded", "provider"],
    [429, "insufficient_quota", "model_unavailable", "operator"],
    [500, null, "upstream_error", "provider"],
    [503, null, "model_overloaded", "provider"],
    [302, null, "upstream_error", "provider"],
  ] as const)
    it(`${status} with the code ${code} is ${expected}, blamed on the ${blame}`, () => {
      const typed = { error: { code: "project_spend_limit_exceeded", type: code } };
      assert.equal(refusal(status, NO_HEADERS, typed).code, expected);
      const error = refusal(status, NO_HEADERS, { error: { code, message: "sk-secret" } });
      assert.deepEqual([error.code, error.blame], [expected, blame]);
      assert.equal(error.detail.status, status);
      assert.equal(error.detail.providerMessage, "sk-secret");
      assert.ok(!error.message.includes("sk-secret"));
    });

  it("reads Retry-After", () =>
    assert.equal(refusal(429, { get: () => "17" }, "").detail.retryAfterMs, 17_000));

  it("accepts a body that is not a JSON object", () =>
    assert.equal(refusal(502, NO_HEADERS, "<html>").code, "upstream_error"));
});
