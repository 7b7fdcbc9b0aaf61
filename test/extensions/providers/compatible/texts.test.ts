// The texts of replies in OpenAI's format, in all forms that servers use, whole and streamed:
// nothing that was paid for is lost, and nothing is duplicated.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ProviderError } from "../../../../src/core/providers/provider-error.ts";
import { call, choice, decoderWith, delta, read, streamed, whole } from "./events.ts";

const HM_HI = { reasoning: "Hm.", text: "Hi." };
const thinking = (text: string) => ({ type: "thinking", thinking: [{ type: "text", text }] });
const DETAILS = [
  { type: "reasoning.summary", summary: "H" },
  { type: "reasoning.text", text: "m." },
  { type: "reasoning.encrypted", data: "x" },
];
const XAI = { vendor: "xai" };
const BESIDE = { content: "Hi.", reasoning_content: "Hm." };
const TEXT = { type: "text", text: "Hi." };
const thoughts = (...pieces: string[]) =>
  pieces.map((reasoning_content) => ({ reasoning_content }));
/** The events of a text in these pieces. */
const said = (...pieces: string[]) => pieces.map((content) => delta({ content }));

describe("content", () => {
  const CASES: [message: unknown, expected: object, deltas?: unknown[], traits?: object][] = [
    [{ content: { answer: 42 } }, { text: '{"answer":42}' }],
    [{ content: [{ name: "a" }, 7] }, { text: '[{"name":"a"},7]' }],
    [{ content: [{ type: "cat" }] }, { text: '[{"type":"cat"}]' }],
    [{ content: [] }, {}],
    [{ content: null, refusal: null }, {}],
    [{ content: [{ type: "refusal", refusal: "No." }] }, { refusal: "No." }],
    [{ refusal: { reason: "no" } }, { refusal: '{"reason":"no"}' }],
    [{ content: [{ type: "text", text: "a" }, "b"] }, { text: "ab" }],
    [{ content: [{ type: "text", text: "a" }, { b: 1 }] }, { text: 'a{"b":1}' }],
    [{ content: "", images: [{ type: "image_url" }] }, { text: '{"type":"image_url"}' }],
    [{ content: null, audio: { id: "a", transcript: "Hi." } }, { text: "Hi." }],
    ["Hi.", { text: "Hi." }],
    // Thinking beside the text, under several names.
    [
      BESIDE,
      HM_HI,
      [{ content: "", reasoning_content: null }, ...thoughts("H", "m."), { content: "Hi." }],
    ],
    [{ content: "Hi.", reasoning: "Hm." }, HM_HI],
    [{ content: "Hi.", reasoning_text: "Hm." }, HM_HI],
    [{ content: "Hi.", reasoning: "Hm.", reasoning_content: "Hm." }, HM_HI],
    [{ content: "Hi.", reasoning: "Hm.", reasoning_details: DETAILS }, HM_HI],
    [{ content: "Hi.", reasoning_details: DETAILS }, HM_HI],
    // Thinking among the parts of the content.
    [
      { content: [thinking("H"), thinking("m."), TEXT] },
      HM_HI,
      [{ content: [thinking("Hm.")] }, { content: [{ ...TEXT, text: "H" }] }, { content: "i." }],
    ],
    [
      { content: [{ type: "thinking", thinking: [{ text: "Hm." }, { type: "reference" }] }] },
      { reasoning: "Hm." },
    ],
    [{ content: [{ type: "reasoning", summary: [{ text: "Hm." }] }, "Hi."] }, HM_HI],
    [{ content: [{ type: "thinking", thinking: "", signature: "x" }] }, {}],
    [{ content: [{ type: "redacted_thinking" }] }, {}],
    // At xAI repeated pieces count once, and only in thinking.
    [BESIDE, HM_HI, [...thoughts("H", "H", "m.", "m."), { content: "Hi." }], XAI],
    [
      { reasoning_content: "1000 x" },
      { reasoning: "1000 x" },
      thoughts(..."11000000", " x", " x"),
      XAI,
    ],
    [{ reasoning: "haha" }, { reasoning: "haha" }, [{ reasoning: "ha" }, { reasoning: "ha" }]],
    [{ content: "haha" }, { text: "haha" }, [{ content: "ha" }, { content: "ha" }], XAI],
  ];
  for (const [message, expected, deltas, traits] of CASES)
    it(`${JSON.stringify(message)}, whole and in ${deltas?.length ?? 1} deltas`, () => {
      const { usage: _, ...reply } = read(message, deltas, traits);
      assert.deepEqual(reply, { text: "", reasoning: "", calls: [], finish: "stop", ...expected });
    });

  it("comes from a choice's text without a delta, and from a message without deltas", () => {
    for (const [first, last] of [
      [{ text: "Hi" }, { text: "." }],
      [{ message: { content: "Hi" } }, { message: { content: "." } }],
    ] as const) {
      const { text, finish } = streamed([choice(first), choice(last, "stop")]);
      assert.deepEqual([text, finish], ["Hi.", "stop"]);
    }
  });

  it("of a null message is not a reply", () => assert.throws(() => read(null), ProviderError));
});

const CALL = call("a", "f");
const message = { ...BESIDE, tool_calls: [CALL] };
const details = { reasoning_details: [{ type: "reasoning.text", text: "Hm." }] };
const tagged = { content: "<think>Hm.</think>Hi." };
const begun = { role: "assistant", content: "" };
const calls = { tool_calls: [{ index: 0, ...CALL }] };
const CASES: [name: string, deltas: object[], message: object, traits?: object][] = [
  ["is repeated by it", [begun, ...thoughts("Hm."), { content: "Hi." }, calls], message],
  ["is all there is if the deltas said nothing", [begun], message],
  ["repeats details of thoughts", [details, { content: "Hi." }], { ...details, content: "Hi." }],
  ["repeats tags", [tagged], tagged, { think_tags: true }],
];
for (const [name, deltas, last, traits] of CASES)
  it(`of a whole message after deltas ${name}`, () => {
    const usage = { prompt_tokens: 3, completion_tokens: 2 };
    const finish = last === message ? "tool_calls" : "stop";
    const events = [...deltas.map((each) => delta(each)), { ...whole(last, finish), usage }];
    const { text, reasoning, calls, ...end } = streamed(events, traits);
    assert.deepEqual({ text, reasoning }, HM_HI);
    assert.deepEqual(calls, last === message ? [["a", "f", "{}"]] : []);
    assert.deepEqual([end.finish, end.usage.completion_tokens], [finish, 2]);
  });

describe("think tags", () => {
  const TAGS = { think_tags: true };
  const CASES: [all: string, text: string, reasoning: string, traits?: object][] = [
    ["Hello.", "Hello.", ""],
    ["<think>Hm.</think>Yes.", "Yes.", "Hm."],
    [" \n<think>Hm.</think>\n\nYes.", "\n\nYes.", "Hm."],
    ["<think>a < b </thin </think>c <think>d", "c <think>d", "a < b </thin "],
    ["<think>Never closed", "", "Never closed"],
    ["<think>Cut </thi", "", "Cut </thi"],
    ["<thin", "<thin", ""],
    ["Text <think>x</think>", "Text <think>x</think>", ""],
    ["   ", "   ", ""],
    ["<mm:think>a < b</mm:think><think>c", "<think>c", "a < b"],
    ["<mm:think>a < b</mm:think><think>c", "<think>c", "a < b", {}],
    ["<think>a</think>b", "<think>a</think>b", "", {}],
  ];
  for (const [all, text, reasoning, traits = TAGS] of CASES)
    it(`split ${JSON.stringify(all)} the same, wherever it is cut into three, ${JSON.stringify(traits)}`, () => {
      for (let one = 0; one <= all.length; one += 1)
        for (let two = one; two <= all.length; two += 1) {
          const pieces = [all.slice(0, one), all.slice(one, two), all.slice(two)];
          const reply = streamed([...said(...pieces), delta({}, "stop")], traits);
          assert.deepEqual([reply.text, reply.reasoning], [text, reasoning], String(pieces));
        }
      assert.equal(read({ content: all }, undefined, traits).text, text);
    });

  it("after a thousand blanks are found too, and the blanks are dropped", () => {
    const events = said(" ".repeat(1_000), "<think>", "Hm.", "</think>", "Hi.");
    const { text, reasoning } = streamed(events, TAGS);
    assert.deepEqual({ text, reasoning }, HM_HI);
  });

  it("that repeat the separate reasoning field count once", () => {
    const events = [
      delta({ content: "<think>The ", reasoning_content: "The " }),
      delta({ content: "user", reasoning_content: "user" }),
      delta({ content: "</think>Hi." }, "stop"),
    ];
    const { text, reasoning } = streamed(events, TAGS);
    assert.deepEqual([text, reasoning], ["Hi.", "The user"]);
  });

  it("that may have begun are delivered before a call that follows, and before the end", () => {
    const { push } = decoderWith();
    const tool_calls = [{ index: 0, ...call("a", "f", "{ }") }];
    const parts = [...said("<"), delta({ tool_calls })].flatMap((event) => push(event));
    const types = parts.map(({ type }) => type);
    assert.deepEqual(types, ["text", "tool_call", "tool_arguments"]);
    const held = decoderWith(TAGS);
    const usage = { prompt_tokens: 3, completion_tokens: 2 };
    held.push({ ...delta({ content: "<thin" }), usage });
    assert.deepEqual(held.done?.(), [
      { type: "text", text: "<thin" },
      { type: "finish", reason: "stop" },
    ]);
  });
});

describe("several choices", () => {
  const at = (index: number, delta: object, finish_reason: string | null = null) => ({
    choices: [{ index, delta, finish_reason }],
  });

  it("of a whole reply: no calls of another choice are lost", () => {
    const messages = [{ content: "I look." }, { tool_calls: [call("a", "f"), call("b", "g")] }];
    for (const isNumbered of [true, false]) {
      const choices = messages.map((message, index) => ({
        ...(isNumbered && { index }),
        message,
        finish_reason: "tool_calls",
      }));
      const calls = streamed([{ choices }]).calls.map(([, name]) => name);
      assert.deepEqual(calls, ["f", "g"]);
    }
  });

  it("of a stream: each numbers its own calls", () => {
    const fragment = (id: string | undefined, text: string) => ({
      tool_calls: [{ index: 0, ...call(id, id && "f", text) }],
    });
    const { text, calls, finish } = streamed([
      at(0, { content: "I look." }),
      at(1, fragment("a", "")),
      at(2, fragment("b", "")),
      at(1, fragment(undefined, '{"x"')),
      at(2, fragment(undefined, "{}")),
      at(1, fragment(undefined, ":1}")),
      at(0, {}, "stop"),
      at(1, {}, "tool_calls"),
    ]);
    assert.deepEqual([text, finish], ["I look.", "tool_calls"]);
    assert.deepEqual(calls, [
      ["a", "f", '{"x":1}'],
      ["b", "f", "{}"],
    ]);
  });

  it("with texts are alternatives: only the first one counts", () => {
    const { text } = streamed([at(0, { content: "a" }), at(1, { content: "b" })]);
    assert.equal(text, "a");
  });
});
