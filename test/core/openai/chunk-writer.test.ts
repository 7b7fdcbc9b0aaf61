// The chunks of a stream, as the writer makes them of parts.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createChunkWriter } from "../../../src/core/openai/reply.ts";
import { type Part, tokenLogprob } from "../../../src/core/openai/parts.ts";
import { makeUsage } from "../../../src/core/openai/usage.ts";

const HEAD = { id: "chatcmpl-1", created: 7, model: "m", system_fingerprint: "fp" };
const SHOW_ALL = { showReasoning: true, showLogprobs: true, includeUsage: true };
const SHOW_TEXT = { showReasoning: false, showLogprobs: false, includeUsage: false };
const USAGE = makeUsage({ prompt: 3, completion: 2, cacheHit: 0, reasoning: 0 });

/** The JSON of each event. */
const eventsIn = (text: string) =>
  text
    .split("\n\n")
    .filter((event) => event !== "")
    .map((event) => {
      assert.ok(event.startsWith("data: "), event);
      const data = event.slice("data: ".length);
      return data === "[DONE]" ? data : JSON.parse(data);
    });
const deltasIn = (text: string) => eventsIn(text).map((event) => event.choices?.[0]?.delta);

describe("the chunk writer", () => {
  it("begins every chunk with the same head, and puts usage null into each if usage is included", () => {
    const [first] = eventsIn(createChunkWriter(HEAD, SHOW_ALL).add([{ type: "text", text: "a" }]));
    assert.equal(
      JSON.stringify(first),
      '{"id":"chatcmpl-1","object":"chat.completion.chunk","created":7,"model":"m","system_fingerprint":"fp",' +
        '"choices":[{"index":0,"delta":{"role":"assistant","content":"","reasoning_content":""},"logprobs":null,' +
        '"finish_reason":null}],"usage":null}',
    );
  });

  it("sends the role once, in a chunk of its own before the first delta", () => {
    const writer = createChunkWriter(HEAD, SHOW_TEXT);
    assert.deepEqual(deltasIn(writer.add([{ type: "text", text: "a" }])), [
      { role: "assistant", content: "" },
      { content: "a" },
    ]);
    assert.deepEqual(deltasIn(writer.add([{ type: "text", text: "b" }])), [{ content: "b" }]);
  });

  it("sends nothing for hidden reasoning, empty texts, usage and the finish", () => {
    const writer = createChunkWriter(HEAD, SHOW_TEXT);
    const parts: Part[] = [
      { type: "reasoning", text: "Hm." },
      { type: "text", text: "" },
      { type: "text", text: "", logprobs: [tokenLogprob({})] },
      {
        type: "usage",
        usage: { prompt: 1, completion: 1, cacheHit: 0, reasoning: 0 },
      },
      { type: "finish", reason: "stop" },
    ];
    assert.equal(writer.add(parts), "");
  });

  it("sends log probabilities under the field of their text, even without text", () => {
    const logprobs = [tokenLogprob({ token: "a", logprob: -1 })];
    const writer = createChunkWriter(HEAD, SHOW_ALL);
    const [, chunk] = eventsIn(writer.add([{ type: "text", text: "", logprobs }]));
    assert.deepEqual(chunk.choices[0].logprobs, { content: logprobs, refusal: null });
  });

  it("sends a tool call's id and name once, then its arguments in pieces", () => {
    const writer = createChunkWriter(HEAD, SHOW_TEXT);
    const text = writer.add([
      { type: "tool_call", call: 0, id: "a", name: "f" },
      { type: "tool_arguments", call: 0, text: "" },
      { type: "tool_arguments", call: 0, text: "{" },
      { type: "tool_arguments", call: 0, text: "}" },
    ]);
    const started = { index: 0, id: "a", type: "function", function: { name: "f", arguments: "" } };
    assert.deepEqual(deltasIn(text), [
      { role: "assistant", content: null },
      { tool_calls: [started] },
      { tool_calls: [{ index: 0, function: { arguments: "{" } }] },
      { tool_calls: [{ index: 0, function: { arguments: "}" } }] },
    ]);
  });

  it("ends with empty arguments as an object, the finish, usage if included, and [DONE]", () => {
    const writer = createChunkWriter(HEAD, SHOW_ALL);
    writer.add([
      { type: "tool_call", call: 0, id: "a", name: "f" },
      { type: "tool_call", call: 1, id: "b", name: "g" },
      { type: "tool_arguments", call: 0, text: "{}" },
    ]);
    const [emptyArguments, finish, usage, done, ...rest] = eventsIn(
      writer.end(USAGE, "tool_calls"),
    );
    assert.deepEqual(emptyArguments.choices[0].delta, {
      tool_calls: [{ index: 1, function: { arguments: "{}" } }],
    });
    assert.deepEqual(finish.choices[0].finish_reason, "tool_calls");
    assert.deepEqual(finish.choices[0].delta, {});
    assert.deepEqual([usage.choices, usage.usage], [[], USAGE]);
    assert.deepEqual([done, rest], ["[DONE]", []]);
  });

  it("sends the role even if the reply is empty", () => {
    const deltas = deltasIn(createChunkWriter(HEAD, SHOW_TEXT).end(USAGE, "stop")).slice(0, 2);
    assert.deepEqual(deltas, [{ role: "assistant", content: "" }, {}]);
  });
});
