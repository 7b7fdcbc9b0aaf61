// The pieces of the decoder for compatible servers: tool calls in fragments, think tags cut
// anywhere, log probabilities, usage.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type Part, tokenLogprob } from "../../../../src/core/openai/parts.ts";
import { ProviderError } from "../../../../src/core/providers/provider-error.ts";
import { traitsOf } from "../../../../src/config/vendors.ts";
import {
  createCompatibleDecoder,
  splitLogprobs,
} from "../../../../src/extensions/providers/compatible/decoder.ts";
import { createThinkTagSplitter } from "../../../../src/extensions/providers/compatible/think-tags.ts";
import { createToolCallReader } from "../../../../src/extensions/providers/compatible/tool-calls.ts";
import { usageIn } from "../../../../src/extensions/providers/compatible/usage.ts";

describe("think tags", () => {
  /** All pieces through one splitter, joined. */
  function split(pieces: readonly string[]): readonly [text: string, reasoning: string] {
    const splitPiece = createThinkTagSplitter(true);
    const results = pieces.map((piece, at) => splitPiece(piece, at === pieces.length - 1));
    return [
      results.map(({ text }) => text).join(""),
      results.map(({ reasoning }) => reasoning).join(""),
    ];
  }

  for (const [whole, text, reasoning] of [
    ["Hello.", "Hello.", ""],
    ["<think>Hm.</think>Yes.", "Yes.", "Hm."],
    [" \n<think>Hm.</think>\n\nYes.", "\n\nYes.", "Hm."],
    ["<think>a < b </thin </think>c <think>d", "c <think>d", "a < b </thin "],
    ["<think>Never closed", "", "Never closed"],
    ["<think>Cut </thi", "", "Cut </thi"],
    ["<thin", "<thin", ""],
    ["Text <think>x</think>", "Text <think>x</think>", ""],
    ["   ", "   ", ""],
  ] as const)
    it(`split ${JSON.stringify(whole)} the same, wherever it is cut in three`, () => {
      for (let one = 0; one <= whole.length; one += 1)
        for (let two = one; two <= whole.length; two += 1) {
          const pieces = [whole.slice(0, one), whole.slice(one, two), whole.slice(two)];
          assert.deepEqual(split(pieces), [text, reasoning], JSON.stringify(pieces));
        }
    });
});

describe("tool calls in fragments", () => {
  const readAll = (fragments: readonly Record<string, unknown>[]): Part[] => {
    const { read } = createToolCallReader();
    return fragments.flatMap((fragment) => read({ calls: [fragment] }));
  };
  const names = (parts: readonly Part[]) =>
    parts.flatMap((part) => (part.type === "tool_call" ? [part.name] : []));

  it("belong together by their index, in digits too; an empty object stands before the next call", () => {
    const parts = readAll([
      { index: 0, id: "a", function: { name: "f", arguments: {} } },
      { index: "1", id: "b", function: { name: "g", arguments: "{" } },
      { index: 1, function: { arguments: "}" } },
    ]);
    assert.deepEqual(parts, [
      { type: "tool_call", call: 0, id: "a", name: "f" },
      { type: "tool_arguments", call: 0, text: "{}" },
      { type: "tool_call", call: 1, id: "b", name: "g" },
      { type: "tool_arguments", call: 1, text: "{" },
      { type: "tool_arguments", call: 1, text: "}" },
    ]);
  });

  it("without index and id belong to the call before them, unless they name another", () => {
    const parts = readAll([
      { function: { name: "f" } },
      { function: { arguments: "{ }" } },
      { function: { name: "g", arguments: "{ }" } },
    ]);
    assert.deepEqual(names(parts), ["f", "g"]);
    assert.deepEqual(parts.at(-1), { type: "tool_arguments", call: 1, text: "{ }" });
  });

  it("whose arguments begin as none have those that follow, or none", () => {
    const named = (args: unknown, id = "a") => ({
      index: 0,
      id,
      function: { name: "f", arguments: args },
    });
    const more = (text: string) => ({ index: 0, function: { arguments: text } });
    for (const [fragments, expected] of [
      [[named("{}"), more('{"a"'), more(":1}")], ['{"a":1}']],
      [[named("null"), more('{"a":1}')], ['{"a":1}']],
      [[named({}), named('{"a":1}')], ['{"a":1}']],
      [[named("{}")], ["{}"]],
      [[named("null")], ["{}"]],
      [
        [named({}), named({ a: 1 })],
        ["{}", '{"a":1}'],
      ],
      [
        [named("{}"), named('{"a":1}')],
        ["{}", '{"a":1}'],
      ],
      [[named('{"a":', "b"), named("1}", "c")], ['{"a":1}']],
      [
        [named('{"a":1}', "b"), named('{"a":2}', "c")],
        ['{"a":1}', '{"a":2}'],
      ],
    ] as const) {
      const { read, end } = createToolCallReader();
      const parts = [...fragments.flatMap((fragment) => read({ calls: [fragment] })), ...end()];
      const calls = parts.filter(({ type }) => type === "tool_call").map(() => "");
      for (const part of parts) if (part.type === "tool_arguments") calls[part.call] += part.text;
      assert.deepEqual(calls, expected, JSON.stringify(fragments));
    }
  });

  it("behind long whole arguments are others, whatever was escaped in them", () => {
    const fragments = (text: string) => [
      { index: 0, id: "a", function: { name: "f", arguments: "" } },
      ...(text.match(/[\s\S]{1,7000}/g) ?? []).map((piece) => ({
        index: 0,
        function: { arguments: piece },
      })),
      { index: 0, id: "a", function: { name: "f", arguments: "{}" } },
    ];
    const long = JSON.stringify({ path: '\\"{['.repeat(50_000) });
    assert.deepEqual(names(readAll(fragments(long))), ["f", "f"]);
    assert.deepEqual(names(readAll(fragments(long.slice(0, -1)))), ["f"]);
  });

  it("with one index for all calls are told apart by name and id", () => {
    assert.deepEqual(
      names(
        readAll([
          { index: 0, id: "a", function: { name: "f" } },
          { index: 0, id: "b", function: { name: "f" } },
          { index: 0, id: "b", function: { name: "g" } },
          { index: 0, id: "b", function: { name: "g" } },
        ]),
      ),
      ["f", "f", "g"],
    );
  });

  const call = (index: number | undefined, id: string | undefined, args: string) => ({
    index,
    id,
    function: { name: "f", arguments: args },
  });
  /** The arguments of each call, and how many different ids the calls have. */
  function argumentsIn(parts: readonly Part[]) {
    const texts: string[] = [];
    const ids = new Set<string>();
    for (const part of parts) {
      if (part.type === "tool_call") ids.add(part.id);
      if (part.type === "tool_arguments") texts[part.call] = (texts[part.call] ?? "") + part.text;
    }
    return [texts, ids.size];
  }

  const TWO = ['{"x":"}\\"{"}', '{"x":2}'] as const;
  for (const [index, id] of [
    [0, undefined],
    [0, "same"],
    [undefined, "same"],
    [undefined, undefined],
  ] as const) {
    const calls = TWO.map((text) => call(index, id, text));
    const as = `index ${index} and id ${id} for both`;

    it(`of the same tool are two calls with ids of their own in a whole reply, ${as}`, () => {
      const parts = createToolCallReader().read({ calls, isWhole: true });
      assert.deepEqual(argumentsIn(parts), [TWO, 2]);
    });

    it(`of the same tool are two calls in one delta, ${as}`, () => {
      assert.deepEqual(argumentsIn(createToolCallReader().read({ calls })), [TWO, 2]);
    });

    it(`of the same tool are two calls in a delta each, ${as}`, () => {
      assert.deepEqual(argumentsIn(readAll(calls)), [TWO, 2]);
    });
  }

  it("that repeat the name of their call begin no other, wherever the arguments are cut", () => {
    const text = TWO[0];
    for (let one = 0; one <= text.length; one += 1)
      for (let two = one; two <= text.length; two += 1) {
        const pieces = [text.slice(0, one), text.slice(one, two), text.slice(two), ""];
        const parts = readAll(pieces.map((piece) => call(0, "same", piece)));
        assert.deepEqual(argumentsIn(parts), [[text], 1], JSON.stringify(pieces));
      }
  });

  it("may have an object as arguments", () => {
    const parts = readAll([{ index: 0, id: "a", function: { name: "f", arguments: { x: 1 } } }]);
    assert.deepEqual(parts.at(-1), { type: "tool_arguments", call: 0, text: '{"x":1}' });
  });

  it("must name their call by the end of the reply", () => {
    const reader = createToolCallReader();
    reader.end();
    reader.read({ calls: [{ index: 0, function: { arguments: "{}" } }] });
    assert.throws(
      () => reader.end(),
      (error) => error instanceof ProviderError && !error.countsForBreaker,
    );
    reader.read({ calls: [{ index: 0, function: { name: "f" } }] });
    reader.end();
  });
});

describe("the pieces of a stream", () => {
  const partsOf = (traits: object, deltas: readonly object[]) => {
    const all = traitsOf({ dialect: "openai" }, { reasoning: true, ...traits });
    const { push } = createCompatibleDecoder(all);
    return deltas.flatMap((delta) => push({ choices: [{ delta }] }));
  };

  it("may come twice each: three pairs of equal pieces are three pieces", () => {
    const pieces = ["1", "1", "0", "0", "0", "0", "0", "0", " x", " x"];
    const parts = partsOf(
      { repeats_reasoning: true },
      pieces.map((reasoning_content) => ({ reasoning_content })),
    );
    assert.equal(parts.map((part) => ("text" in part ? part.text : "")).join(""), "1000 x");
  });

  it("that may begin a tag come before the call that follows them", () => {
    const call = { index: 0, id: "a", function: { name: "f", arguments: "{ }" } };
    const parts = partsOf({}, [{ content: "<" }, { tool_calls: [call] }]);
    assert.deepEqual(
      parts.map(({ type }) => type),
      ["text", "tool_call", "tool_arguments"],
    );
  });
});

describe("log probabilities", () => {
  const tokens = ["Hm", ".", "Ö", "k"].map((token) => tokenLogprob({ token, logprob: -1 }));

  it("listed together are split by the bytes of the text, from its end", () => {
    const { reasoning, text } = splitLogprobs({ content: tokens }, "Hm.", "Ök");
    assert.deepEqual([reasoning, text], [tokens.slice(0, 2), tokens.slice(2)]);
  });

  it("listed apart, or without reasoning, stay as they are", () => {
    const apart = { content: tokens, reasoning_content: tokens.slice(0, 1) };
    assert.deepEqual(splitLogprobs(apart, "Hm.", "Ök"), {
      text: tokens,
      reasoning: tokens.slice(0, 1),
    });
    assert.equal(splitLogprobs({ content: tokens }, "", "HmÖk").text, tokens);
  });
});

describe("usage", () => {
  const usage = { prompt_tokens: 10, completion_tokens: 5 };
  const report = { prompt: 10, completion: 5, cacheHit: 0, reasoning: 0 };

  for (const [place, event] of [
    ["the event", { usage }],
    ["the choice", { choices: [{ usage }] }],
    ["x_groq", { usage: null, x_groq: { usage } }],
  ] as const)
    it(`is read from ${place}`, () => assert.deepEqual(usageIn(event, false), report));

  it("of nothing but zeros is none", () =>
    assert.equal(usageIn({ usage: { prompt_tokens: 0, completion_tokens: 0 } }, false), undefined));
});
