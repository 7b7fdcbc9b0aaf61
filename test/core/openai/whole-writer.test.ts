// The whole reply, as the writer makes it of parts.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type FinishReason, type Part, tokenLogprob } from "../../../src/core/openai/parts.ts";
import { makeUsage } from "../../../src/core/openai/usage.ts";
import { createWholeWriter } from "../../../src/core/openai/reply.ts";

const HEAD = { id: "chatcmpl-1", created: 7, model: "m", system_fingerprint: "fp" };
const USAGE = makeUsage({ prompt: 3, completion: 2, cacheHit: 1, reasoning: 1 });

function write(parts: readonly Part[], showReasoning = true, reason: FinishReason = "stop") {
  const options = { showReasoning, showLogprobs: true, includeUsage: false };
  const writer = createWholeWriter(HEAD, options);
  assert.equal(writer.add(parts), "");
  return JSON.parse(writer.end(USAGE, reason));
}
const choiceOf = (parts: readonly Part[], showReasoning = true) =>
  write(parts, showReasoning).choices[0];

describe("the whole writer", () => {
  it("writes head, one choice and usage, in the order of the contract", () => {
    const reply = write([{ type: "text", text: "Hello" }]);
    assert.deepEqual(Object.entries(reply), [
      ["id", "chatcmpl-1"],
      ["object", "chat.completion"],
      ["created", 7],
      ["model", "m"],
      ["system_fingerprint", "fp"],
      ["choices", reply.choices],
      ["usage", USAGE],
    ]);
    assert.deepEqual(reply.choices, [
      {
        index: 0,
        message: { role: "assistant", content: "Hello", reasoning_content: "" },
        logprobs: null,
        finish_reason: "stop",
      },
    ]);
  });

  it("joins the pieces of each kind of text", () => {
    const { message } = choiceOf([
      { type: "reasoning", text: "H" },
      { type: "text", text: "a" },
      { type: "reasoning", text: "m." },
      { type: "text", text: "b" },
    ]);
    assert.deepEqual(message, { role: "assistant", content: "ab", reasoning_content: "Hm." });
  });

  it("leaves reasoning out if it is not shown", () => {
    const { message } = choiceOf([{ type: "reasoning", text: "Hm." }], false);
    assert.deepEqual(message, { role: "assistant", content: "" });
  });

  it("writes content null beside a refusal or tool calls, and empty arguments as an object", () => {
    assert.equal(choiceOf([{ type: "refusal", text: "No." }]).message.content, null);
    const { message } = choiceOf([
      { type: "tool_call", call: 0, id: "a", name: "f" },
      { type: "tool_call", call: 1, id: "b", name: "g" },
      { type: "tool_arguments", call: 1, text: '{"x"' },
      { type: "tool_arguments", call: 1, text: ":1}" },
    ]);
    assert.equal(message.content, null);
    assert.deepEqual(message.tool_calls, [
      { id: "a", type: "function", function: { name: "f", arguments: "{}" } },
      { id: "b", type: "function", function: { name: "g", arguments: '{"x":1}' } },
    ]);
  });

  it("gathers log probabilities by the kind of text", () => {
    const logprob = (token: string) => tokenLogprob({ token, logprob: -1 });
    const { logprobs } = choiceOf([
      { type: "text", text: "a", logprobs: [logprob("a")] },
      { type: "text", text: "b", logprobs: [logprob("b")] },
      { type: "refusal", text: "c", logprobs: [] },
    ]);
    assert.deepEqual(logprobs, { content: [logprob("a"), logprob("b")], refusal: null });
  });
});
