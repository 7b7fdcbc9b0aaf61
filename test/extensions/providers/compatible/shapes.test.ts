// Replies in the shapes that servers have beside OpenAI's: nothing of them is lost, and nothing
// comes twice.

import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { traitsOf } from "../../../../src/config/vendors.ts";
import type { Part } from "../../../../src/core/openai/parts.ts";
import { wholeReply } from "../../../../src/core/providers/decoding.ts";
import type { Decoder, Target } from "../../../../src/core/providers/dialect.ts";
import { ProviderError } from "../../../../src/core/providers/provider-error.ts";
import { compatibleDialect } from "../../../../src/extensions/providers/compatible/index.ts";
import { configFor, json, readStream, user } from "../../../support/gateway.ts";
import { createMemoryGateway, memoryProvider } from "../../../support/memory.ts";
import { rawStream } from "../../../support/provider.ts";

type Json = Record<string, unknown>;

const targetWith = (traits: Json = {}): Target => ({
  upstreamModel: "m",
  reasoning: true,
  traits: traitsOf({ vendor: "generic" }, { reasoning: true, ...traits }),
});
const decoderWith = (traits?: Json): Decoder => compatibleDialect.decoder(targetWith(traits));
const choice = (fields: object, finish_reason: string | null = null) => ({
  choices: [{ index: 0, ...fields, finish_reason }],
});
const delta = (fields: unknown, finish?: string) => choice({ delta: fields }, finish);
const whole = (message: unknown, finish = "stop") => choice({ message }, finish);
const call = (id: string, name: string, args: unknown = "{}") => ({
  id,
  type: "function",
  function: { name, arguments: args },
});

/** The texts, calls and finish of these parts, joined. */
function summary(parts: readonly Part[]) {
  const text = (type: Part["type"]) =>
    parts.map((part) => (part.type === type && "text" in part ? part.text : "")).join("");
  const argumentsOf = (call: number) =>
    parts
      .map((part) => (part.type === "tool_arguments" && part.call === call ? part.text : ""))
      .join("");
  return {
    text: text("text"),
    reasoning: text("reasoning"),
    refusal: text("refusal"),
    calls: parts.flatMap((part) =>
      part.type === "tool_call" ? [`${part.name}(${argumentsOf(part.call)})`] : [],
    ),
    finish: parts.flatMap((part) => (part.type === "finish" ? [part.reason] : [])).at(-1),
  };
}
const NOTHING = { text: "", reasoning: "", refusal: "", calls: [] as string[] };

const streamed = (events: readonly object[], traits?: Json) => {
  const decoder = decoderWith(traits);
  return summary(events.flatMap((event) => decoder.push(event)));
};
const read = (reply: object, traits?: Json) =>
  summary(wholeReply(compatibleDialect, reply, targetWith(traits)));

describe("a whole message after deltas", () => {
  const message = { content: "Hi.", reasoning_content: "Hm.", tool_calls: [call("a", "f")] };
  const usage = { prompt_tokens: 3, completion_tokens: 2 };
  const fragments = [
    delta({ role: "assistant", content: "" }),
    delta({ reasoning_content: "Hm." }),
    delta({ content: "Hi." }),
    delta({ tool_calls: [{ index: 0, ...call("a", "f", "{ }") }] }),
  ];

  it("gives only its finish and usage", () => {
    const decoder = decoderWith();
    for (const event of fragments) decoder.push(event);
    assert.deepEqual(decoder.push({ ...whole(message, "tool_calls"), usage }), [
      { type: "finish", reason: "tool_calls" },
      { type: "usage", usage: { prompt: 3, completion: 2, cacheHit: 0, reasoning: 0 } },
    ]);
  });

  it("repeats nothing in thoughts, in tags, and in reasoning_details", () => {
    const details = { reasoning_details: [{ type: "reasoning.text", text: "Hm." }] };
    const events = [
      delta(details),
      delta({ content: "Hi." }),
      whole({ ...details, content: "Hi." }),
    ];
    assert.deepEqual(streamed(events), {
      ...NOTHING,
      text: "Hi.",
      reasoning: "Hm.",
      finish: "stop",
    });
    const tagged = [
      delta({ content: "<think>Hm.</think>Hi." }),
      whole({ content: "<think>Hm.</think>Hi." }),
    ];
    assert.deepEqual(streamed(tagged, { think_tags: true }), {
      ...NOTHING,
      text: "Hi.",
      reasoning: "Hm.",
      finish: "stop",
    });
  });

  it("is read where the deltas said nothing", () =>
    assert.deepEqual(
      streamed([delta({ role: "assistant", content: "" }), whole(message, "tool_calls")]),
      {
        ...NOTHING,
        text: "Hi.",
        reasoning: "Hm.",
        calls: ["f({})"],
        finish: "tool_calls",
      },
    ));

  it("is read where the stream has no deltas", () =>
    assert.deepEqual(
      streamed([
        choice({ message: { content: "Hi" } }),
        choice({ message: { content: "." } }, "stop"),
      ]),
      { ...NOTHING, text: "Hi.", finish: "stop" },
    ));
});

describe("content", () => {
  for (const [message, expected] of [
    [{ content: { answer: 42 } }, { text: '{"answer":42}' }],
    [{ content: [{ name: "a" }, 7] }, { text: '[{"name":"a"},7]' }],
    [{ content: [{ type: "cat" }, { type: "dog" }] }, { text: '[{"type":"cat"},{"type":"dog"}]' }],
    [{ content: [] }, {}],
    [{ content: null, refusal: null }, {}],
    [{ content: [{ type: "refusal", refusal: "No." }] }, { refusal: "No." }],
    [{ refusal: { reason: "no" } }, { refusal: '{"reason":"no"}' }],
    [{ content: [{ type: "text", text: "a" }, "b"] }, { text: "ab" }],
    [
      {
        content: [
          { type: "text", text: "a" },
          { type: "json", json: { b: 1 } },
        ],
      },
      { text: 'a{"type":"json","json":{"b":1}}' },
    ],
    [{ content: "", images: [{ type: "image_url" }] }, { text: '{"type":"image_url"}' }],
    [{ content: null, audio: { id: "a", transcript: "Hi." } }, { text: "Hi." }],
    [
      {
        content: [
          { type: "thinking", thinking: [{ type: "text", text: "Hm." }, { type: "reference" }] },
        ],
      },
      { reasoning: "Hm." },
    ],
    [
      {
        content: [
          { type: "reasoning", summary: [{ type: "summary_text", text: "Hm." }] },
          { type: "text", text: "Hi." },
        ],
      },
      { reasoning: "Hm.", text: "Hi." },
    ],
    [
      {
        content: [
          { type: "thinking", thinking: "", signature: "c2ln" },
          { type: "redacted_thinking" },
        ],
      },
      {},
    ],
    ["Hi.", { text: "Hi." }],
    [
      {
        content: "Hi.",
        reasoning_details: [
          { type: "reasoning.summary", summary: "H" },
          { type: "reasoning.text", text: "m." },
          { type: "reasoning.encrypted", data: "x" },
        ],
      },
      { reasoning: "Hm.", text: "Hi." },
    ],
    [
      { reasoning_text: "Hm.", content: "Hi." },
      { reasoning: "Hm.", text: "Hi." },
    ],
    [{ content: "<mm:think>Hm.</mm:think>Hi." }, { reasoning: "Hm.", text: "Hi." }],
    [{ tool_calls: call("a", "f", { x: 1 }) }, { calls: ['f({"x":1})'] }],
    [{ function_call: { name: "f", arguments: "{}" } }, { calls: ["f({})"] }],
  ] as const)
    it(`${JSON.stringify(message)}, whole and streamed`, () => {
      assert.deepEqual(read(whole(message)), { ...NOTHING, ...expected, finish: "stop" });
      assert.deepEqual(streamed([delta(message), delta({}, "stop")]), {
        ...NOTHING,
        ...expected,
        finish: "stop",
      });
    });

  it("is a choice's text where it has no delta", () =>
    assert.equal(streamed([choice({ text: "Hi" }), choice({ text: "." }, "stop")]).text, "Hi."));

  it("in a message of null is no reply", () =>
    assert.throws(() => read(whole(null)), ProviderError));

  it("too deep to be written as JSON is left to the guard of dialects", () => {
    let deep: unknown = "x";
    for (let level = 0; level < 100_000; level += 1) deep = [deep];
    assert.throws(() => read(whole({ content: { deep } })), RangeError);
  });
});

describe("<mm:think>", () => {
  it("is split wherever it is cut, and <think> only where the trait says so", () => {
    const text = " <mm:think>a < b</mm:think><think>c";
    for (let at = 0; at <= text.length; at += 1)
      for (const think_tags of [true, false]) {
        const events = [text.slice(0, at), text.slice(at)].map((content) => delta({ content }));
        const { text: shown, reasoning } = streamed([...events, delta({}, "stop")], { think_tags });
        // A blank is held back only where the model is said to think in tags.
        const visible = think_tags ? shown : shown.trimStart();
        assert.deepEqual([visible, reasoning], ["<think>c", "a < b"], `cut at ${at}`);
      }
    assert.equal(read(whole({ content: "<think>a</think>b" })).text, "<think>a</think>b");
  });

  it("that repeats what stands beside the text is thought once", () => {
    const events = [
      delta({ content: "<think>The ", reasoning_content: "The " }),
      delta({ content: "user", reasoning_content: "user" }),
      delta({ content: "</think>Hi." }),
      delta({}, "stop"),
    ];
    const { text, reasoning } = streamed(events, { think_tags: true });
    assert.deepEqual([text, reasoning], ["Hi.", "The user"]);
  });
});

describe("several choices", () => {
  const TEXT = { content: "I look." };

  it("of a whole reply: calls of another one are not lost", () => {
    const choices = [
      { index: 0, message: TEXT, finish_reason: "tool_calls" },
      {
        index: 1,
        message: { tool_calls: [call("a", "f"), call("b", "g")] },
        finish_reason: "tool_calls",
      },
    ];
    const expected = {
      ...NOTHING,
      text: "I look.",
      calls: ["f({})", "g({})"],
      finish: "tool_calls",
    };
    assert.deepEqual(read({ choices }), expected);
    const unnumbered = choices.map(({ index: _, ...rest }) => rest);
    assert.deepEqual(read({ choices: unnumbered }), expected);
  });

  it("of a stream: each numbers its own calls", () => {
    const piece = (index: number, delta: object, finish_reason: string | null = null) => ({
      choices: [{ index, delta, finish_reason }],
    });
    const fragment = (text: string) => ({
      tool_calls: [{ index: 0, function: { arguments: text } }],
    });
    const begin = (id: string, name: string) => ({
      tool_calls: [{ index: 0, ...call(id, name, "") }],
    });
    const events = [
      piece(0, TEXT),
      piece(1, begin("a", "f")),
      piece(2, begin("b", "f")),
      piece(1, fragment('{"x"')),
      piece(2, fragment("{}")),
      piece(1, fragment(":1}")),
      piece(0, {}, "stop"),
      piece(1, {}, "tool_calls"),
    ];
    assert.deepEqual(streamed(events), {
      ...NOTHING,
      text: "I look.",
      calls: ['f({"x":1})', "f({})"],
      finish: "tool_calls",
    });
  });

  it("with texts are alternatives: the first one counts", () => {
    const choices = ["a", "b"].map((content, index) => ({ index, message: { content } }));
    assert.equal(read({ choices }).text, "a");
  });
});

describe("a stream that ends with [DONE] and states no finish_reason", () => {
  const USAGE = { usage: { prompt_tokens: 3, completion_tokens: 2 } };
  const SAID = [delta({ content: "Hi" }), delta({ content: "." })];
  const FIGURES = { choices: [], ...USAGE };
  const CALLS = [delta({ tool_calls: [{ index: 0, ...call("call_12345", "f") }] })];
  const DONE = "[DONE]";

  /** How a client sees it: its finish reason, or the code of its error. */
  async function outcome(t: TestContext, events: readonly (object | string)[], traits: Json = {}) {
    const sse = events
      .map((event) => `data: ${typeof event === "string" ? event : JSON.stringify(event)}\n\n`)
      .join("");
    const provider = memoryProvider(t, { m: rawStream(sse) });
    const gw = createMemoryGateway(configFor(provider.url, ["m"], { models: { m: traits } }));
    const response = await gw.chat({ model: "m", stream: true, messages: user("hi") });
    if (response.status !== 200) return (await json(response)).error.code;
    const { chunks, done, error } = await readStream(response);
    const finish = chunks.map(({ choices }) => choices[0]?.finish_reason).find(Boolean);
    return done ? finish : error?.code;
  }

  for (const [name, events, traits, expected] of [
    ["with usage is complete", [...SAID, FIGURES, DONE], {}, "stop"],
    [
      "with usage in its last chunk is complete",
      [...SAID, { ...SAID[0], ...USAGE }, DONE],
      {},
      "stop",
    ],
    ["with usage and calls ends in them", [...CALLS, FIGURES, DONE], {}, "tool_calls"],
    ["without usage is cut off", [...SAID, DONE], {}, "upstream_error"],
    ["without [DONE] is cut off", [...SAID, FIGURES], {}, "upstream_error"],
    ["and says nothing is no reply", [FIGURES, DONE], {}, "upstream_error"],
    [
      "without usage is complete if the trait says so",
      [...SAID, DONE],
      { done_without_finish: true },
      "stop",
    ],
    [
      "without [DONE] is cut off whatever the trait says",
      SAID,
      { done_without_finish: true },
      "upstream_error",
    ],
    [
      "with usage is cut off if the trait says so",
      [...SAID, FIGURES, DONE],
      { done_without_finish: false },
      "upstream_error",
    ],
    [
      "with a call that has no name is a failure",
      [
        delta({ tool_calls: [{ index: 0, function: { arguments: "{}" } }] }),
        ...SAID,
        FIGURES,
        DONE,
      ],
      {},
      "upstream_error",
    ],
  ] as const)
    it(name, async (t) => assert.equal(await outcome(t, events, traits), expected));

  it("keeps the reason that came, and what was held back", () => {
    const finished = decoderWith();
    finished.push({ ...delta({ content: "Hi." }, "length"), ...USAGE });
    assert.deepEqual(finished.done?.(), []);
    const held = decoderWith({ think_tags: true });
    held.push({ ...delta({ content: "<thin" }), ...USAGE });
    assert.deepEqual(held.done?.(), [
      { type: "text", text: "<thin" },
      { type: "finish", reason: "stop" },
    ]);
  });
});

describe("a stream of Azure OpenAI", () => {
  const filtered = { hate: { filtered: false, severity: "safe" } };
  const prompt = { prompt_index: 0, content_filter_results: filtered };
  const first = { id: "", model: "", choices: [], prompt_filter_results: [prompt] };
  /** What an asynchronous filter says of text that has come: no id, and no delta. */
  const later = {
    id: "",
    ...choice({ content_filter_results: filtered, content_filter_offsets: { check_offset: 44 } }),
  };
  const words = [delta({ role: "assistant", content: "" }), delta({ content: "Hi" }), later];

  it("begins with what the filter says of the prompt, which is nothing of the reply", () => {
    assert.deepEqual(decoderWith().push(first), []);
    const events = [first, ...words, delta({ content: "!" }), later, delta({}, "stop"), later];
    assert.deepEqual(streamed(events), { ...NOTHING, text: "Hi!", finish: "stop" });
  });

  it("that the filter cuts ends with its finish", () => {
    const events = [first, ...words, delta({}, "content_filter")];
    assert.deepEqual(streamed(events), { ...NOTHING, text: "Hi", finish: "content_filter" });
  });
});
