// The demo model through the gateway: every feature that a client can request, answered offline and
// deterministically. Then example values: what is taken from a schema, and that a hostile schema
// costs no time.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { exampleOf } from "../../../../src/extensions/providers/demo/example.ts";
import { createDemoTransport } from "../../../../src/extensions/providers/demo/transport.ts";
import { Cancel } from "../../../../src/core/http/cancel.ts";
import { assemble, demo, json, readStream, startGateway, user } from "../../../support/gateway.ts";
import { startEffort } from "../../../support/effort.ts";
import { suiteScope } from "../../../support/scope.ts";
import { within } from "../../../support/wait.ts";
import { piecesOf } from "../../../support/raw-provider.ts";

type Json = Record<string, any>;

const AUTH = { authorization: "Bearer sk-demo" };
const QUESTION = "What is the capital of Norway?";
const ASK = { model: "demo-chat", messages: user(QUESTION) };

const tool = (name: string, parameters?: object) => ({
  type: "function",
  function: { name, ...(parameters && { parameters }) },
});
const CITY = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const TOOLS = [tool("get_time", CITY)];
const CALLS = { tools: TOOLS, tool_choice: "auto" };

let gateway: ReturnType<typeof startGateway>;

/** The reply, which must be the same whole and streamed, including usage. */
async function ask(fields: object) {
  const { chat } = await gateway;
  const { choices, usage } = await json(await chat({ ...ASK, ...fields }, AUTH));
  const [{ message, finish_reason: finish, logprobs }] = choices;
  const streaming = { stream: true, stream_options: { include_usage: true } };
  const { chunks, done } = await readStream(await chat({ ...ASK, ...fields, ...streaming }, AUTH));
  const other = assemble(chunks);
  const plain = ({ content, ...rest }: Json) => ({ ...rest, content: content || null });
  assert.deepEqual(plain(other.message), plain(message));
  assert.deepEqual(
    [done, other.finish_reason, other.logprobs, chunks.at(-1)!.usage],
    [true, finish, logprobs?.content ?? [], usage],
  );
  return { message, content: (message.content ?? "") as string, finish, logprobs, usage, chunks };
}

// The conformance suite, which the demo model passes, tests what any model must do.
describe("the demo model", () => {
  gateway = startGateway(suiteScope(), demo());

  it("answers the last question, always the same way, in many pieces", async () => {
    const first = await ask({});
    assert.ok(first.content.includes(QUESTION));
    assert.ok(first.chunks.length > 20);
    const before = [...user(QUESTION), { role: "assistant", content: "Oslo." }];
    const parts = ["And of ", "Sweden?"].map((text) => ({ type: "text", text }));
    for (const content of ["And of Sweden?", parts]) {
      const { content: answer } = await ask({ messages: [...before, { role: "user", content }] });
      assert.match(answer, /And of Sweden\?/);
    }
  });

  it("answers anything with a well-formed reply", async () => {
    const questions = ["", " ", "😀".repeat(200), `${"x".repeat(119)}😀`, "a\r\nb", "\u0000"];
    const blank = (count: number) => " ".repeat(count);
    const blanks = [`a${blank(998)}😀`, `${blank(999)}😀`, `x${blank(99_999)}y`];
    for (const question of [...questions, ...blanks, "“quoted”"]) {
      const { content } = await ask({ messages: user(question) });
      assert.ok(content.length > 0);
      assert.doesNotMatch(content, /\p{Surrogate}/u, "half a character");
    }
    const { content } = await ask({ messages: user(`${blank(200_000)}Norway?`) });
    assert.match(content, /“Norway\?”/);
  });

  it("fills arguments and JSON by their schema, with ids per conversation", async () => {
    const [call] = (await ask(CALLS)).message.tool_calls;
    assert.deepEqual(JSON.parse(call.function.arguments), { city: "Oslo" });
    assert.match(call.id, /^call_[0-9a-f]{24}$/);
    const [other] = (await ask({ ...CALLS, messages: user("And in Rome?") })).message.tool_calls;
    assert.notEqual(other.id, call.id);
    for (const [schema, written] of [
      [CITY, { city: "Oslo" }],
      [undefined, QUESTION],
    ] as const) {
      const json_schema = { name: "x", ...(schema && { schema }) };
      const { content } = await ask({ response_format: { type: "json_schema", json_schema } });
      assert.deepEqual(JSON.parse(content), written);
    }
  });

  it("returns log probabilities of each token with its bytes, and the requested number of alternatives", async () => {
    const asked = { messages: user("Grüße, 😀!"), logprobs: true, top_logprobs: 20 };
    const { content, logprobs } = await ask(asked);
    const tokens: Json[] = logprobs.content;
    assert.equal(tokens.map(({ token }) => token).join(""), content);
    for (const { token, bytes, top_logprobs } of tokens) {
      assert.deepEqual(bytes, [...Buffer.from(token)]);
      assert.equal(new Set(top_logprobs.map((each: Json) => each["token"])).size, 20);
    }
  });

  it("counts more tokens for longer prompts, and the repeated part of a conversation as cached", async () => {
    const count = async (fields: object) => (await ask(fields)).usage;
    const bare = await count({});
    const so = [...user(QUESTION), { role: "assistant", content: "Oslo." }];
    for (const fields of [{ tools: TOOLS }, { messages: so }]) {
      const { prompt_tokens, prompt_cache_hit_tokens } = await count(fields);
      assert.ok(prompt_tokens > bare.prompt_tokens);
      assert.equal(prompt_cache_hit_tokens, 0);
    }
    const grown = await count({ messages: [...so, ...user("And of Sweden?")] });
    assert.equal(grown.prompt_cache_hit_tokens, (await count({ messages: so })).prompt_tokens);
  });
});

describe("the demo transport, aborted", () => {
  const send = (cancel: Cancel, stream: boolean) =>
    createDemoTransport({ paceMs: 3_600_000 })("http://demo.invalid", {
      method: "POST",
      headers: {},
      body: JSON.stringify({ ...ASK, stream }),
      cancel,
      redirect: "manual",
      connectMs: 1_000,
      sent: () => undefined,
    });
  const reason = new Error("the client has left");

  it("before the request: rejects with the signal's reason", async () => {
    const cancel = new Cancel();
    cancel.abort(reason);
    await assert.rejects(send(cancel, false), reason);
  });

  it("during a pause of a stream: the body throws the signal's reason", async () => {
    const abort = new Cancel();
    const { body } = await send(abort, true);
    const reading = piecesOf(body!);
    assert.match(Buffer.from((await reading.next()).value!).toString(), /"content":"You"/);
    const next = reading.next();
    abort.abort(reason);
    await within(assert.rejects(next, reason), "the end of the pause");
  });

  it("uses nothing of Node's fetch, which cannot run without WebAssembly", async (t) => {
    const own = Object.getOwnPropertyDescriptor(globalThis, "Headers")!;
    t.after(() => Object.defineProperty(globalThis, "Headers", own));
    Reflect.deleteProperty(globalThis, "Headers");
    const { headers } = await send(new Cancel(), false);
    const found = ["Content-Type", "retry-after"].map((name) => headers.get(name));
    assert.deepEqual(found, ["application/json", null]);
  });

  it("returns a whole reply without pauses", async () => {
    const { body } = await send(new Cancel(), false);
    const { value } = await within(piecesOf(body!).next(), "the reply");
    assert.match(Buffer.from(value!).toString(), /"finish_reason":"stop"/);
  });
});

const example = (schema: object) => exampleOf({ ...schema }, "Why?");
const named = (count: number, make: (index: number) => unknown) =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`p${index}`, make(index)]));
/** An object with all of these properties, each required. */
const all = (properties: object) => ({
  type: "object",
  properties,
  required: Object.keys(properties),
});
const TREE = { a: 1, b: [{ a: 1, b: [] }] };
const NODE = { $ref: "#/$defs/node" };

describe("an example", () => {
  for (const [schema, value] of [
    [{ const: 7 }, 7],
    [{ const: null }, null],
    [{ enum: ["a", "b"] }, "a"],
    [{ type: "integer", minimum: 5 }, 5],
    [{ type: "integer", minimum: -10, maximum: -2 }, -2],
    [{ type: "number", maximum: -1 }, -1],
    [{ type: "string" }, "Why?"],
    [{ type: "string", format: "date" }, "2026-01-01"],
    [{ type: ["null", "boolean"] }, true],
    [{ type: ["null"] }, null],
    [{ type: "array", items: { type: "null" }, minItems: 2 }, [null, null]],
    [{ type: "array", items: { type: "array", items: { const: 1 }, minItems: 2 } }, [[1, 1]]],
    [{ anyOf: [{ type: "null" }, { type: "integer" }] }, 1],
    [{ oneOf: [all({ a: { const: 1 } }), all({ b: { const: 2 } })] }, { a: 1 }],
    [{ properties: { city: { type: "string" } } }, { city: "Oslo" }],
    [{ type: "object", properties: { a: { const: 1 }, b: {} }, required: ["a"] }, { a: 1 }],
    [{ ...all({ a: { const: 1 } }), anyOf: [{ required: ["b"] }] }, { a: 1 }],
    [{ ...all({ a: { allOf: [NODE] } }), $defs: { node: { const: 1 } } }, { a: 1 }],
    [{ ...NODE, $defs: { node: { $ref: "#/$defs/b" }, b: { type: "integer", minimum: 7 } } }, 7],
    [all({ a: { const: 1 }, b: { $ref: "#/properties/a" } }), { a: 1, b: 1 }],
    [{ type: "object", required: ["absent"] }, { absent: null }],
    [all({ a: { const: 1 }, b: { type: "array", items: { $ref: "#" } } }), TREE],
    [{ enum: {}, type: 5, properties: "x", required: 1, anyOf: "x", oneOf: null, $ref: 1 }, {}],
  ] as const)
    it(`of ${JSON.stringify(schema)} is ${JSON.stringify(value)}`, () =>
      assert.deepEqual(example(schema), value));

  it("ends where a recursive schema allows it", () => {
    const node = { anyOf: [{ $ref: "#" }, { type: "null" }] };
    assert.ok(JSON.stringify(example(all({ left: node, right: node }))).length < 200);
  });
});

const self = { $ref: "#" };
const long = "x".repeat(250_000);
const list = (items: object) => ({ type: "array", minItems: 1e15, items });
const next = (index: number) => ({ $ref: `#/$defs/p${index + 1}` });
const DOUBLING = { ...next(-1), $defs: named(40, (at) => all({ a: next(at), b: next(at) })) };
const TEXTLESS = { toString: 1, valueOf: 1 };
for (const [name, schema] of [
  ["ten required properties of itself", all(named(10, () => self))],
  ["ten lists of itself", all(named(10, () => list(self)))],
  ["doubling references", DOUBLING],
  ["a large constant in a long list", list({ const: long })],
  ["a long reference in a long list", list({ $ref: `#/${"a/".repeat(120_000)}` })],
  ["a long name in a long list", list({ type: "object", required: [long] })],
  ["lists of lists", list(list(list({ type: "string" })))],
  ["names that every object has", { ...all({ constructor: self }), $ref: "#/__proto__/toString" }],
  ["bounds of a number that contradict", { type: "integer", minimum: 5, maximum: 3 }],
  ["bounds of a list that contradict", { type: "array", minItems: 2, maxItems: 1 }],
  [
    "keywords that cannot become text",
    { ...all({ a: { type: "string", format: TEXTLESS } }), required: ["a", TEXTLESS] },
  ],
  ...["#/$defs/%", "http://127.0.0.1/x", "", "#/a/b/c"].map(
    (at) => [`a reference to ${at}`, all({ a: { $ref: at } })] as const,
  ),
] as const)
  it(`the example of a hostile schema, ${name}, is created at once, and is short`, () => {
    const effort = startEffort();
    const text = JSON.stringify(example(schema));
    const took = effort();
    assert.ok(took < 60, `it took ${took.toFixed(0)} units`);
    assert.ok(text.length < 1_000_000, `a text of ${text.length} characters`);
  });
