// The meter: which of a provider's figures count as its own and what an estimate takes from them.
// And what the client sees of a provider's counts and log probabilities.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { estimatePrompt, Meter } from "../../../src/core/ledger/meter.ts";
import { type Part, tokenLogprob } from "../../../src/core/openai/parts.ts";
import { chatRequest } from "../../../src/core/openai/request.ts";
import { makeUsage } from "../../../src/core/openai/usage.ts";

const chatOf = (content: unknown) =>
  chatRequest({ model: "m", messages: [{ role: "user", content }] }, true);
const text = (length: number): Part => ({ type: "text", text: "x".repeat(length) });
const thinking = (length: number): Part => ({ type: "reasoning", text: "x".repeat(length) });
const usage = (
  prompt: number | undefined,
  completion: number | undefined,
  { cacheHit = 0, reasoning = 0, cacheWrite = 0 } = {},
): Part => ({ type: "usage", usage: { prompt, completion, cacheHit, reasoning, cacheWrite } });
const finish: Part = { type: "finish", reason: "stop" };

/** Prompt, completion, source after these parts; the prompt itself would be estimated at 2. */
function metered(parts: readonly Part[]) {
  const meter = new Meter(chatOf("12345678"), () => 0);
  for (const part of parts) meter.observe(part);
  const { usage, source } = meter.usage();
  return [usage.prompt_tokens, usage.completion_tokens, source];
}

describe("the meter", () => {
  const STATED = [9, 7, "provider"];
  const ESTIMATED = [2, 10, "estimated"];
  const stated = usage(9, 7);
  const CASES: [name: string, parts: readonly Part[], expected: (number | string)[]][] = [
    ["nothing came", [], [0, 0, "none"]],
    ["a text without figures", [text(40), finish], ESTIMATED],
    ["a figure after the last text", [text(40), stated, finish], STATED],
    ["a figure before the text, cut", [usage(9, 1), text(400)], [9, 100, "estimated"]],
    ["an early figure, finished", [text(4), usage(9, 1), text(400), finish], [9, 101, "estimated"]],
    ["an early figure above the estimate", [usage(9, 70), text(40), finish], [9, 70, "estimated"]],
    ["a completion count alone", [text(40), usage(undefined, 7), finish], [2, 7, "estimated"]],
    ["the two counts apart", [usage(9, undefined), text(40), usage(undefined, 7)], STATED],
    ["a later prompt alone", [usage(9, 3), text(40), usage(8, undefined)], [8, 10, "estimated"]],
    ["a later prompt of 0", [usage(9, 1), text(40), usage(0, 7), finish], STATED],
    ["0 tokens for a text that is there", [text(1), usage(9, 0), finish], [9, 1, "estimated"]],
    ["0 tokens where nothing came", [usage(9, 0), finish], [9, 0, "provider"]],
    ["zeros", [text(40), usage(0, 0), finish], ESTIMATED],
    ["a figure beyond 10^9", [text(40), usage(1_000_000_001, 0)], ESTIMATED],
    ["a sum beyond 10^9", [text(40), usage(999_999_999, 2)], ESTIMATED],
    ["cache writes beyond 10^9", [text(40), usage(9, 7, { cacheWrite: 1e300 })], ESTIMATED],
    ["a cached count beyond 10^9", [text(40), usage(9, 7, { cacheHit: 1e300 })], ESTIMATED],
    ["thinking beyond 10^9", [text(40), usage(9, 7, { reasoning: 1e12 })], ESTIMATED],
    ["a good figure, then an absurd one", [text(40), stated, usage(1e10, 1)], STATED],
    ["thinking, shown or not", [thinking(40), text(40), finish], [2, 20, "estimated"]],
    [
      "thinking counted without the text",
      [text(40), usage(9, undefined, { reasoning: 30 })],
      [9, 40, "estimated"],
    ],
  ];
  for (const [name, parts, expected] of CASES)
    it(`${name}: ${expected.join(", ")}`, () => assert.deepEqual(metered(parts), expected));

  it("has the provider's figures whenever they cover all that came", () => {
    const meter = new Meter(chatOf("hi"), () => 0);
    const seen = [text(4), usage(9, 7), finish, text(4), usage(9, 9)].map((part) => {
      meter.observe(part);
      return meter.finishReason() !== null && meter.usage().source === "provider";
    });
    assert.deepEqual(seen, [false, false, true, false, true]);
  });
});

it("an estimate counts tools, earlier calls and their results, and what came, thinking and calls among it", () => {
  const called = { name: "look", arguments: '{"at":"sky"}' };
  const tools = [{ type: "function", function: { name: "look" } }];
  const messages = [
    { role: "user", content: "12345678" },
    { role: "assistant", tool_calls: [{ id: "c1", type: "function", function: called }] },
    { role: "tool", tool_call_id: "c1", content: "blue" },
    { role: "user", content: [{ type: "text", text: "1234" }] },
  ];
  const meter = new Meter(chatRequest({ model: "m", messages, tools }, true), () => 0);
  const call: Part = { type: "tool_call", call: 0, id: "c2", name: "look" };
  const args: Part = { type: "tool_arguments", call: 0, text: called.arguments };
  for (const part of [text(8), thinking(4), call, args, finish]) meter.observe(part);
  const { usage, source } = meter.usage();
  const prompt = Math.ceil((8 + 4 + 12 + 4 + 4 + JSON.stringify(tools).length) / 4);
  assert.deepEqual([usage.prompt_tokens, usage.completion_tokens], [prompt, (8 + 4 + 4 + 12) / 4]);
  assert.equal(usage.completion_tokens_details.reasoning_tokens, 1);
  assert.equal(source, "estimated");
});

it("the estimate of a prompt has the tokens of media too, and stays what can be a count of tokens", () => {
  assert.equal(
    estimatePrompt(chatOf("12345678"), () => 24),
    2 + 24,
  );
  assert.equal(
    estimatePrompt(chatOf("1"), () => 1e12),
    500_000_000,
  );
});

it("states what was written to a cache as a part of the misses, and only if something was", () => {
  const counts = { prompt: 10, completion: 5, cacheHit: 4, reasoning: 0 };
  const details = (written: object) => makeUsage({ ...counts, ...written }).prompt_tokens_details;
  assert.deepEqual(details({ cacheWrite: 5, cacheWrite1h: 2 }), {
    cached_tokens: 4,
    cache_write_tokens: 5,
    cache_write_1h_tokens: 2,
  });
  assert.deepEqual(details({ cacheWrite: 6 }), { cached_tokens: 4, cache_write_tokens: 6 });
  assert.deepEqual(details({ cacheWrite: 0, cacheWrite1h: 2 }), { cached_tokens: 4 });
  assert.deepEqual(
    details({ cacheWrite: 9, cacheWrite1h: 9 }),
    { cached_tokens: 4, cache_write_tokens: 6, cache_write_1h_tokens: 6 },
    "at most the misses",
  );
});

it("keeps what a token of log probabilities states, and fills in what is missing or of the wrong type", () => {
  const token = { token: "a", logprob: -0.5, bytes: [97] };
  const stated = { ...token, top_logprobs: [token, { ...token, logprob: -2 }] };
  assert.deepEqual(tokenLogprob(stated), stated);
  const empty = { token: "", logprob: -9999, bytes: null };
  for (const json of [undefined, null, 7, { token: 1, logprob: NaN, bytes: "x" }])
    assert.deepEqual(tokenLogprob(json), { ...empty, top_logprobs: [] });
  const { bytes } = tokenLogprob({ bytes: [1, -1, "x", 2] });
  assert.deepEqual(bytes, [1, 0, 0, 2]);
});
