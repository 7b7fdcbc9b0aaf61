// Tool calls in replies of OpenAI-compatible servers, which disagree on which fragments belong to
// one call.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setImmediate as turnEnd } from "node:timers/promises";
import { ProviderError } from "../../../../src/core/providers/provider-error.ts";
import { createToolCallReader } from "../../../../src/extensions/providers/compatible/tool-calls.ts";
import { collectGarbage } from "../../../support/effort.ts";
import { call, decoderWith, delta, read, streamed } from "./events.ts";

type Json = Record<string, any>;

const fragment = (index: unknown, id: unknown, name: string | undefined, args: unknown) => ({
  index,
  ...call(id, name, args),
});
const events = (fragments: readonly object[]) => [
  ...fragments.map((each) => delta({ tool_calls: [each] })),
  delta({}, "tool_calls"),
];
/** The calls in a stream of these fragments, each in its own delta. */
const callsIn = (fragments: readonly object[]) => streamed(events(fragments)).calls;

describe("calls in a vendor's reply", () => {
  const ARGS = '{"city": "\u00d8sl\u00f8"}';
  const two = (id: unknown) => [call(id && "a", "f", ARGS), call(id && "b", "g", "{}")];
  const at0 = (calls: readonly object[]) => calls.map((each) => ({ index: 0, ...each }));
  const numbered = (calls: readonly object[]) => calls.map((each, index) => ({ index, ...each }));
  const known = ["a", "b"];
  const unknown = ["generated", "generated"];
  type Case = [name: string, whole: Json[], fragments: Json[], ids: string[], args?: string[]];
  const CASES: Case[] = [
    ["all with index 0 and without ids", at0(two(undefined)), at0(two(undefined)), unknown],
    ["with ids that are null", two(null), numbered(two(null)), unknown],
    [
      "without ids and indexes",
      two(undefined),
      [
        fragment(undefined, undefined, "f", ARGS.slice(0, 9)),
        fragment(undefined, undefined, undefined, ARGS.slice(9)),
        fragment(undefined, undefined, "g", "{}"),
      ],
      unknown,
    ],
    [
      "arguments that are empty, null or missing",
      [call("a", "f", null), { id: "b", function: { name: "g" } }],
      [fragment(0, "a", "f", ""), fragment(1, "b", "g", null)],
      known,
      ["{}", "{}"],
    ],
    [
      "indexes in digits, and an empty object before the next call",
      [call("a", "f", {}), call("b", "g", "{}")],
      [
        fragment(0, "a", "f", {}),
        fragment("1", "b", "g", "{"),
        fragment(1, undefined, undefined, "}"),
      ],
      known,
      ["{}", "{}"],
    ],
  ];
  for (const [name, whole, fragments, ids, args = [ARGS, "{}"]] of CASES)
    it(`${name}, whole and streamed`, () => {
      const deltas = fragments.map((each) => ({ tool_calls: [each] }));
      assert.deepEqual(read({ tool_calls: whole }, deltas).calls, [
        [ids[0], "f", args[0]],
        [ids[1], "g", args[1]],
      ]);
    });

  it("may be a single object instead of a list, or in the older format", () => {
    for (const message of [
      { tool_calls: call("a", "f", { x: 1 }) },
      { function_call: { name: "f", arguments: { x: 1 } } },
    ]) {
      const [[, ...rest] = []] = read(message).calls;
      assert.deepEqual(rest, ["f", '{"x":1}']);
    }
  });
});

describe("fragments with a repeated index", () => {
  const named = (args: unknown, id = "a", name = "f") => fragment(0, id, name, args);
  const more = (text: string) => fragment(0, undefined, undefined, text);
  const CASES: [name: string, fragments: object[], args: string[]][] = [
    ["a text follows an empty one", [named("{}"), more('{"a"'), more(":1}")], ['{"a":1}']],
    ["a text follows null", [named("null"), more('{"a":1}')], ['{"a":1}']],
    ["a text with the name follows an empty object", [named({}), named('{"a":1}')], ['{"a":1}']],
    ["nothing follows an empty text", [named("{}")], ["{}"]],
    ["nothing follows null", [named("null")], ["{}"]],
    ["an object follows an empty one", [named({}), named({ a: 1 })], ["{}", '{"a":1}']],
    ["a text with the name follows an empty one", [named("{}"), named("{}")], ["{}", "{}"]],
    ["another id, in open arguments", [named('{"a":', "b"), named("1}", "c")], ['{"a":1}']],
    ["another id, behind whole ones", [named("{ }", "b"), named("{ }", "c")], ["{ }", "{ }"]],
    ["another id, and no arguments yet", [named("", "b"), named("", "c")], ["{}", "{}"]],
    ["another name", [named("", "b", "f"), named("", "b", "g")], ["{}", "{}"]],
    ["the same name and id", [named("", "b"), named("", "b")], ["{}"]],
  ];
  for (const [name, fragments, args] of CASES)
    it(`${name}: ${args.length === 1 ? "one call" : "two calls"}`, () =>
      assert.deepEqual(
        callsIn(fragments).map((each) => each[2]),
        args,
      ));

  const TWO = ['{"x":"}\\"{"}', '{"x":2}'] as const;
  for (const [index, id] of [
    [0, undefined],
    [0, "same"],
    [undefined, "same"],
    [undefined, undefined],
  ] as const)
    it(`two calls of one tool, index ${index} and id ${id} for both, get separate ids in either form`, () => {
      const calls = TWO.map((text) => fragment(index, id, "f", text));
      for (const pieces of [
        [{ calls }],
        calls.map((each) => ({ calls: [each] })),
        [{ calls, isWhole: true }],
      ]) {
        const { read } = createToolCallReader();
        const parts: readonly Json[] = pieces.flatMap((piece) => read(piece));
        const ids = parts.flatMap(({ type, id }) => (type === "tool_call" ? [id] : []));
        assert.equal(new Set(ids).size, 2);
        const texts = parts.flatMap(({ type, text }) => (type === "tool_arguments" ? [text] : []));
        assert.deepEqual(texts, TWO);
      }
    });

  it("that repeat the name of their call begin no other, wherever the arguments are split", () => {
    const text = TWO[0];
    for (let one = 0; one <= text.length; one += 1)
      for (let two = one; two <= text.length; two += 1) {
        const pieces = [text.slice(0, one), text.slice(one, two), text.slice(two), ""];
        const calls = callsIn(pieces.map((piece) => named(piece, "same")));
        assert.deepEqual(calls, [["same", "f", text]], JSON.stringify(pieces));
      }
  });

  it("after long complete arguments begin another call, whatever the arguments escape", () => {
    const long = JSON.stringify({ path: '\\"{['.repeat(50_000) });
    for (const [text, count] of [
      [long, 2],
      [long.slice(0, -1), 1],
    ] as const) {
      const pieces = (text.match(/[\s\S]{1,7000}/g) ?? []).map((piece) => more(piece));
      assert.equal(callsIn([named(""), ...pieces, named("{}")]).length, count);
    }
  });
});

it("are not retained with their event in memory", async () => {
  const { read } = createToolCallReader();
  const held = new WeakRef([fragment(0, "a", "f", "{}")]);
  read({ calls: held.deref()! });
  await turnEnd();
  collectGarbage();
  assert.deepEqual([held.deref(), read({ calls: [] })], [undefined, []]);
});

describe("a call without a name", () => {
  const isFault = (error: unknown): boolean =>
    error instanceof ProviderError && error.code === "upstream_error" && !error.countsForBreaker;
  const nameless = (index: number, args = "{") => fragment(index, "a", undefined, args);

  it("is dropped at the end of a reply", () =>
    assert.throws(() => callsIn([nameless(0)]), isFault));

  it("is complete when its name follows the arguments", () =>
    assert.deepEqual(callsIn([nameless(0), fragment(0, undefined, "f", "}")]), [["a", "f", "{}"]]));

  it("is kept a thousand times, with a megabyte of arguments", () => {
    const { push } = decoderWith();
    const asDelta = (index: number, args = "") => delta({ tool_calls: [nameless(index, args)] });
    for (let index = 0; index < 1_000; index += 1) push(asDelta(index));
    assert.throws(() => push(asDelta(1_000)), ProviderError);
    const other = decoderWith();
    const half = asDelta(0, "x".repeat(512 * 1024));
    for (let times = 0; times < 2; times += 1) other.push(half);
    assert.throws(() => other.push(half), ProviderError);
  });
});
