// Conversations in turns, as the native formats require: the ids of tool calls, texts that become
// objects, image URLs.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  createTextCounter,
  objectIn,
  turnsOf,
  type Turn,
} from "../../../../src/extensions/providers/turns/index.ts";
import { mediaOf } from "../../../../src/extensions/providers/turns/media.ts";
import type { Message } from "../../../../src/core/openai/request.ts";
import { createRandom } from "../../../support/random.ts";
import { startEffort } from "../../../support/effort.ts";

const calls = (ids: readonly string[], args = "{}"): Message => ({
  role: "assistant",
  content: null,
  reasoning_content: undefined,
  tool_calls: ids.map((id) => ({ id, type: "function", function: { name: "f", arguments: args } })),
});
const user = (content: string): Message => ({ role: "user", content });
const says = (content: string): Message => ({ ...calls([]), content }) as Message;
const result = (tool_call_id: string, content: string): Message => ({
  role: "tool",
  tool_call_id,
  content,
});
/** The turns with their contents: texts, calls by id, and results. */
const wordsOf = (turns: readonly Turn[]) =>
  turns.map(({ role, items }) => [
    role,
    ...items.map((item) => {
      if (item.type === "call") return `call ${item.id}`;
      if (item.type === "result") return `${item.id}: ${item.content}`;
      return item.type === "text" ? item.text : item.type;
    }),
  ]);
const items = (messages: readonly Message[]) =>
  turnsOf({ messages }).turns.flatMap(({ role, items }) => (role === "assistant" ? items : []));
const idsOf = (given: readonly string[]): string[] =>
  items([calls(given)]).map((item) => (item.type === "call" ? item.id : ""));

for (const [stated, name] of [
  ["$READFILE", "_READFILE"],
  ["exchange_items<|channel|>", "exchange_items__channel__"],
  ["é".repeat(65), "_".repeat(64)],
  ["f-2", "f-2"],
])
  it(`a call of a tool that does not exist, ${stated}, has a name that providers accept`, () => {
    const call = { id: "a", type: "function", function: { name: stated!, arguments: "" } } as const;
    const [called] = items([{ ...calls([]), tool_calls: [call] } as Message]);
    assert.equal(called?.type === "call" && called.name, name);
  });

describe("repeated ids of tool calls", () => {
  it("become different ones, the same in each request of the conversation", () => {
    const ids = idsOf(["a", "b", "a", "a"]);
    assert.deepEqual(ids, ["a", "b", "repeated_1", "repeated_2"]);
    assert.deepEqual(idsOf(["a", "b", "a", "a", "a"]).slice(0, 4), ids);
  });

  it("become ones that the client has not used", () => {
    assert.deepEqual(idsOf(["a", "repeated_1", "a"]), ["a", "repeated_1", "repeated_2"]);
    const { pick, between } = createRandom(7);
    const names = ["a", "b", ...[1, 2, 3, 4, 5, 6].map((count) => `repeated_${count}`)];
    for (let round = 0; round < 500; round += 1) {
      const ids = Array.from({ length: between(1, 40) }, () => pick(names));
      assert.equal(new Set(idsOf(ids)).size, ids.length);
    }
  });

  it("take linear time, even if the client has used 30,000 of their replacements", () => {
    const count = 30_000;
    const taken = Array.from({ length: count }, (_, index) => `repeated_${index + 1}`);
    const given = [...taken, ...Array.from({ length: count }, () => "a")];
    const effort = startEffort();
    const ids = idsOf(given);
    const took = effort();
    assert.equal(new Set(ids).size, 2 * count);
    assert.ok(took < 1_300, `it took ${took.toFixed(0)} units`); // by trying each number: 10,000
  });
});

it("results stand directly after their calls, in the calls' order, including late and missing ones", () => {
  const late = [user("wait"), says("Yes."), result("x", "1"), user("well?")];
  const messages = [user("hi"), calls(["x", "y", "z"]), result("y", "2"), ...late];
  assert.deepEqual(wordsOf(turnsOf({ messages }).turns), [
    ["user", "hi"],
    ["assistant", "call x", "call y", "call z"],
    ["user", "x: 1", "y: 2", "z: ", "wait"],
    ["assistant", "Yes."],
    ["user", "well?"],
  ]);
});

it("results of two calls with one id follow their order, and a further one belongs to the last call", () => {
  const answers = ["a", "b", "c"].map((content) => result("0", content));
  const messages = [user("hi"), calls(["0", "0"]), ...answers];
  const last = wordsOf(turnsOf({ messages }).turns).at(-1);
  assert.deepEqual(last, ["user", "0: a", "repeated_1: b\nc"]);
});

describe("system texts", () => {
  const system = (content: string): Message => ({ role: "system", content });
  const messages = [
    ...[system("First."), system("Second."), user("hi"), calls(["a"]), result("a", "1")],
    ...[system(" "), system("Hurry."), user("go on")],
    ...[calls(["b"]), system("Stop."), result("b", "2")],
  ];
  const native = { dialect: "anthropic", body: {}, headers: {} };

  it("leave the last message to the user, as do empty texts, unless the client begins the answer", () => {
    const answer = says("A.");
    const last = (...tail: Message[]) =>
      turnsOf({ messages: [user("hi"), answer, ...tail] }).turns.at(-1);
    for (const tail of [system("Stop."), user(" ")])
      assert.deepEqual(last(tail)!.items, [{ type: "text", text: "(Please go on.)" }]);
    assert.equal(last()!.role, "assistant");
    // The next turn begins in the same way.
    const { turns } = turnsOf({
      messages: [user("hi"), answer, system("Stop."), answer, user("?")],
    });
    const texts = wordsOf(turns).map(([, text]) => text);
    assert.deepEqual(texts, ["hi", "A.", "(Please go on.)", "A.", "?"]);
  });

  it("of a native request stay in place after the first turn, after results of calls, and are labelled", () => {
    const heading = "(What follows is an instruction of the system.)\n";
    const told = turnsOf({ messages, native });
    assert.deepEqual(told.system, [system("First."), system("Second.")]);
    assert.deepEqual(wordsOf(told.turns), [
      ["user", "hi"],
      ["assistant", "call a"],
      ["user", "a: 1", `${heading}Hurry.`, "go on"],
      ["assistant", "call b"],
      ["user", "b: 2", `${heading}Stop.`],
    ]);
    const part = { type: "text" as const, text: "Stop.", cache_control: { type: "ephemeral" } };
    const marked: Message = { role: "system", content: "Stop.", marked: [part] };
    const { turns } = turnsOf({ messages: [user("hi"), marked], native });
    assert.deepEqual(turns[0]!.items[1], { ...part, text: `${heading}Stop.` });
  });
});

describe("texts that become objects", () => {
  /** These texts as the arguments of calls in one conversation. */
  const argsOf = (...texts: string[]) =>
    items(texts.map((text) => calls(["a"], text))).map((item) => item.type === "call" && item.args);

  it("are kept in a separate field if they are not objects", () => {
    const raw = ['{"a":', "[1]", "null", '"x"'];
    const kept = raw.map((_raw) => ({ _raw }));
    assert.deepEqual(argsOf('{"a":[1]}', "", ...raw), [{ a: [1] }, {}, ...kept]);
  });

  it("up to a number of values per request; a text beyond it stays a text", () => {
    const large = JSON.stringify({ a: Array.from({ length: 150_000 }, () => 1) });
    const args = argsOf(large, large, '{"x":1}');
    assert.deepEqual(args, [JSON.parse(large), { _raw: large }, { x: 1 }]);
  });

  it("unless they are nested too deeply, as in a call's arguments too", () => {
    const deep = `{"a":${"[".repeat(6_000)}${"]".repeat(6_000)}}`;
    assert.equal(objectIn(deep, createTextCounter()), undefined);
    assert.deepEqual(argsOf(deep), [{ _raw: deep }]);
  });

  it("up to a number of different names", () => {
    const wide = (from: number) => {
      const names = Array.from({ length: 15_000 }, (_, index) => [`n${from + index}`, 1]);
      return JSON.stringify(Object.fromEntries(names));
    };
    const texts = createTextCounter();
    assert.ok(objectIn(wide(0), texts));
    assert.equal(objectIn(wide(15_000), texts), undefined);
  });

  it("and other texts are not parsed, and do not count", () => {
    const texts = createTextCounter();
    for (const text of [`[${"1,".repeat(300_000)}1]`, "plain words, with commas,", "", '"{"'])
      assert.equal(objectIn(text, texts), undefined);
    assert.deepEqual(objectIn(' \n{"a":1}', texts), { a: 1 });
  });
});

describe("image URLs", () => {
  const image = (url: string) =>
    mediaOf({ type: "image_url", image_url: { url, detail: undefined } });
  const long = ";a".repeat(4_000_000);
  for (const [url, expected] of [
    ["data:image/png;base64,AA==", ["image/png", "AA=="]],
    ["DATA:image/png;BASE64,AA==", ["image/png", "AA=="]],
    ["data:image/png;charset=x;a=b;base64,AA,==", ["image/png", "AA,=="]],
    ["data:x;base64,", ["x", ""]],
    ["data:image/jpg;base64,/9j/4AAQ", ["image/jpeg", "/9j/4AAQ"]],
    ["data:image/jpeg;base64,iVBORw0KGgoAAAAN", ["image/png", "iVBORw0KGgoAAAAN"]],
    ["data:image/png;base64,R0lGODlh", ["image/gif", "R0lGODlh"]],
    ["data:image/png;base64,UklGRhoAAABXRUJQ", ["image/webp", "UklGRhoAAABXRUJQ"]],
    ["data:audio/wav;base64,UklGRiQAAABXQVZF", ["audio/wav", "UklGRiQAAABXQVZF"]],
    [`data:x${long};base64,AA`, ["x", "AA"]],
  ] as const)
    it(`${url.slice(0, 40)} has two halves`, () => {
      const media = image(url);
      assert.deepEqual([media?.mediaType, media?.data], expected);
    });

  for (const url of ["https://example.com/a.png", "http://a/data:x,y", "x"])
    it(`${url} is sent unchanged`, () =>
      assert.deepEqual([image(url)?.url, image(url)?.mediaType], [url, undefined]));

  for (const url of [
    "data:",
    "data:,",
    "data:;base64,AA",
    "data:image/png,AA",
    "data:image/png;base64",
    "data:image/png;;base64,AA",
    "data:image/png;base64;x,AA",
    "data:base64,AA",
    "DATA:image/png,AA",
    `data:x${long}`,
    `data:x${long},AA`,
  ])
    it(`${url.slice(0, 40)} (${url.length} characters) is malformed`, () =>
      assert.equal(image(url), undefined));
});
