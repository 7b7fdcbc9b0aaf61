// What a chat request may say, over real HTTP: every field, range and combination, both sides of
// every boundary, what reaches the provider of what was accepted, and bodies that were made to
// hurt.

import assert from "node:assert/strict";
import { once } from "node:events";
import http from "node:http";
import { text } from "node:stream/consumers";
import { before, beforeEach, describe, it } from "node:test";
import {
  configFor,
  KEY,
  merge,
  startGateway,
  user,
  type ChatAnswer,
  type RunningGateway,
} from "../../support/gateway.ts";
import { speak, startProvider, type Asked } from "../../support/provider.ts";
import { createMemoryGateway, memoryProvider, type MemoryGateway } from "../../support/memory.ts";
import { suiteScope, type Scope } from "../../support/scope.ts";
import { within } from "../../support/wait.ts";

type Json = Record<string, unknown>;

/**
 * What the provider is asked for the plainest request that there is: one user message, nothing
 * else.
 */
const PLAIN = {
  model: "m",
  messages: user("hi"),
  temperature: 1,
  top_p: 1,
  thinking: { type: "disabled" },
};
/** That request as a client sends it. */
const REQUEST = { model: "m", messages: user("hi") };

const fn = (name: string, more: object = {}) => ({ type: "function", function: { name, ...more } });
const call = (id: string, name = "get_time", args = "{}") => ({
  id,
  type: "function",
  function: { name, arguments: args },
});

interface Refusal {
  readonly code: string;
  readonly param: string | null;
  readonly status?: number;
  readonly type?: string;
}

interface Bench {
  readonly gw: Pick<MemoryGateway, "chat">;
  readonly asked: Asked[];
  /**
   * Sends the plain request with these fields over it; it must succeed. What the provider was
   * asked.
   */
  accepted(fields: object, about?: string): Promise<Json>;
  /** The same for a request that must be refused, before the provider hears of it. The message. */
  refused(fields: object, refusal: Refusal, about?: string): Promise<string>;
}

const BEHAVIOURS = {
  m: speak("Hello."),
  seer: speak("Hello."),
};
const SUPPORTS = { seer: { supports: ["images", "audio", "files"] } };
const settingsOf = (url: string, over: object): object =>
  configFor(url, ["m", "seer"], merge({ models: SUPPORTS }, over) as object);

const benchOf = (gw: Bench["gw"], asked: Asked[]): Bench => ({
  gw,
  asked,
  async accepted(fields, about = JSON.stringify(fields)) {
    const before = asked.length;
    const res = await gw.chat({ ...REQUEST, ...fields });
    assert.equal(res.status, 200, `${about}: ${await res.text()}`);
    assert.equal(asked.length, before + 1, about);
    return asked.at(-1)!.body;
  },
  async refused(fields, refusal, about = JSON.stringify(fields)) {
    const before = asked.length;
    const message = await assertRefusal(await gw.chat({ ...REQUEST, ...fields }), refusal, about);
    assert.equal(asked.length, before, `${about}: the provider was asked all the same`);
    return message;
  },
});

/** A gateway in memory: what fields may say does not depend on the wire. */
function bench(t: Scope, over: object = {}): Bench {
  const { url, asked } = memoryProvider(t, BEHAVIOURS);
  return benchOf(createMemoryGateway(settingsOf(url, over)), asked);
}

/** A gateway on sockets: for bodies of bytes, and their headers. */
async function wireBench(t: Scope, over: object = {}) {
  const { url, asked } = await startProvider(t, BEHAVIOURS);
  const gw = await startGateway(t, settingsOf(url, over));
  return { ...benchOf(gw, asked), gw };
}

/**
 * An error as it must be: status, four strings and `param`, the id equal to the header's, JSON. Its
 * message.
 */
async function assertRefusal(
  res: ChatAnswer,
  { code, param, status = 400, type = "invalid_request_error" }: Refusal,
  about = code,
): Promise<string> {
  const text = await res.text();
  const { error } = JSON.parse(text) as { error: Json };
  assert.deepEqual(
    [res.status, error["type"], error["code"], error["param"]],
    [status, type, code, param],
    `${about}: ${text}`,
  );
  assert.equal(res.headers.get("content-type"), "application/json");
  assert.match(res.headers.get("x-request-id") ?? "", /^req_[0-9a-f]{32}$/);
  assert.equal(error["request_id"], res.headers.get("x-request-id"));
  assert.deepEqual(Object.keys(error).sort(), ["code", "message", "param", "request_id", "type"]);
  for (const field of ["message", "type", "code", "request_id"]) {
    assert.ok(
      typeof error[field] === "string" && error[field] !== "",
      `${about}: ${field} must be a string that says something`,
    );
  }
  return error["message"] as string;
}

const wrongType = (param: string): Refusal => ({ code: "invalid_type", param });
const wrongValue = (param: string): Refusal => ({ code: "invalid_value", param });
const missing = (param: string): Refusal => ({ code: "missing_required_parameter", param });
const unsupported = (param: string): Refusal => ({ code: "unsupported_value", param });
const badCombination = (param: string): Refusal => ({
  code: "invalid_parameter_combination",
  param,
});

/** Values that are refused: what is added to the path of the place, the error, the values. */
type Row = readonly [at: string, refusal: (param: string) => Refusal, ...values: unknown[]];

/** Refuses each value of each row. `fields`: a request with the value at `path`. */
async function refuseEach(
  { refused }: Bench,
  path: string,
  fields: (value: unknown) => object,
  rows: readonly Row[],
): Promise<void> {
  for (const [at, refusal, ...values] of rows)
    for (const value of values) await refused(fields(value), refusal(`${path}${at}`));
}

// The ranges of numbers are checked by the conformance suite (scripts/conformance/checks/spec.ts).
it("whole numbers may be written as 1.0; max_completion_tokens is checked as max_tokens is", async (t) => {
  const b = bench(t);
  assert.equal(
    (await b.gw.chat(`{"max_tokens":1.0,${JSON.stringify(REQUEST).slice(1)}`)).status,
    200,
  );
  assert.deepEqual(b.asked[0]?.body, { ...PLAIN, max_tokens: 1 });
  await refuseValues(b, "max_completion_tokens", [["", wrongType, "1", 1.5, true, [1], {}]]);
});

it("model: a string that is not empty, and known", async (t) => {
  const { accepted, refused } = bench(t, {
    aliases: { "team/off": { models: ["m"], enabled: false }, "team/on": { models: ["m"] } },
  });
  await refused({ model: undefined }, missing("model"));
  for (const model of [null, 1, true, ["m"], { name: "m" }])
    await refused({ model }, wrongType("model"));
  await refused({ model: "" }, wrongValue("model"));
  const unknown: Refusal = { status: 404, code: "model_not_found", param: "model" };
  const names = ["unknown", "team/off", "M", " m", "__proto__", "constructor", "x".repeat(10_000)];
  for (const model of names) {
    const message = await refused({ model }, unknown, model.slice(0, 20));
    assert.ok(message.length < 200, "a long name must not come back whole");
  }
  assert.deepEqual(await accepted({ model: "team/on" }), PLAIN);
});

describe("messages", () => {
  const one = (message: unknown) => ({ messages: [message] });

  for (const role of ["system", "developer", "user", "assistant"]) {
    it(`content of ${role}: text, or parts; nothing else`, async (t) => {
      const b = bench(t);
      const sent = async (content: unknown) =>
        ((await b.accepted(one({ role, content })))["messages"] as Json[])[0];
      const out = role === "developer" ? "system" : role;
      const parts = [
        { type: "text", text: "What time " },
        { type: "text", text: "is it?", cache_control: { type: "x" } },
        { type: "text", text: "" },
      ];
      for (const [content, joined] of [
        ["text", "text"],
        ["", ""],
        [parts, "What time is it?"],
      ])
        assert.deepEqual(await sent(content), { role: out, content: joined });
      const image = { type: "image_url", image_url: { url: "x" } };
      const refusal = { type: "refusal", refusal: "x" };
      await refuseEach(b, "messages[0].content", (content) => one({ role, content }), [
        ["", wrongType, 1, true, { text: "x" }],
        ["", role === "assistant" ? missing : wrongType, null],
        ["", missing, undefined],
        ["[0]", wrongType, ["text"]],
        ["[0].type", missing, [{ text: "x" }]],
        ["[1].type", wrongValue, [parts[0], { type: "video", text: "x" }]],
        ["[1].text", missing, [parts[0], { type: "text" }]],
        ["[0].text", wrongType, [{ type: "text", text: 1 }]],
        ["[0].type", wrongValue, ...(role === "user" ? [] : [[image]])],
        ["[0].type", wrongValue, ...(role === "assistant" ? [] : [[refusal]])],
      ]);
    });
  }

  it("media parts are checked themselves", async (t) => {
    const image = (image_url: unknown) => ({ type: "image_url", image_url });
    const seen = (part: unknown) => ({ model: "seer", ...one({ role: "user", content: [part] }) });
    await refuseEach(bench(t), "messages[0].content[0]", seen, [
      [".image_url", missing, { type: "image_url" }],
      [".image_url", wrongType, image("http://x/")],
      [".image_url.url", missing, image({})],
      [".image_url.url", wrongValue, image({ url: "" })],
      [".image_url.detail", wrongType, image({ url: "x", detail: 1 })],
      [".input_audio", missing, { type: "input_audio" }],
      [".file", wrongType, { type: "file", file: [] }],
      [".file.file_data", wrongType, { type: "file", file: { file_data: 1 } }],
    ]);
  });

  it("tool_calls of an assistant: content may be missing, null or empty", async (t) => {
    const b = bench(t);
    const tool_calls = [call("c7", "get_time", '{"city":"Oslo"}'), call("c8", "f", "not JSON")];
    for (const [given, content] of [
      [{}, null],
      [{ content: null }, null],
      [{ content: "" }, ""],
      [{ content: "So:" }, "So:"],
    ] as const) {
      const { messages } = await b.accepted(one({ role: "assistant", ...given, tool_calls }));
      assert.deepEqual(messages, [{ role: "assistant", content, tool_calls }]);
    }
    const bare = (tool_calls: unknown) => one({ role: "assistant", content: null, tool_calls });
    await refuseEach(b, "messages[0].content", bare, [["", missing, [], null]]);
  });

  it("each tool call is checked, and completed where it may be incomplete", async (t) => {
    const b = bench(t);
    const tool_calls = [{ id: "c", function: { name: "f", extra: 1 }, index: 0 }];
    const { messages } = await b.accepted(one({ role: "assistant", tool_calls }));
    const completed = [call("c", "f", "")];
    assert.deepEqual(messages, [{ role: "assistant", content: null, tool_calls: completed }]);
    const with_ = (tool_calls: unknown) => one({ role: "assistant", content: "x", tool_calls });
    await refuseEach(b, "messages[0].tool_calls", with_, [["", wrongType, {}]]);
    const second = (toolCall: unknown) => with_([call("c"), toolCall]);
    const f = { function: { name: "f" } };
    await refuseEach(b, "messages[0].tool_calls[1]", second, [
      ["", wrongType, "x"],
      [".id", missing, f],
      [".id", wrongValue, { id: "", ...f }],
      [".id", wrongType, { id: 7, ...f }],
      [".type", wrongValue, { id: "d", type: "custom", ...f }],
      [".function", missing, { id: "d" }],
      [".function.name", missing, { id: "d", function: {} }],
      [".function.name", wrongValue, { id: "d", function: { name: "" } }],
      [".function.arguments", wrongType, { id: "d", function: { name: "f", arguments: {} } }],
    ]);
  });

  it("a tool's result answers a call that was made before it", async (t) => {
    const b = bench(t);
    const asks = { role: "assistant", content: null, tool_calls: [call("c7"), call("c8")] };
    const answers = { role: "tool", tool_call_id: "c7", content: "14:05" };
    const content = ["14:", "05"].map((text) => ({ type: "text", text }));
    const parts = { role: "tool", tool_call_id: "c8", name: "get_time", content };
    const { messages } = await b.accepted({ messages: [asks, answers, parts] });
    assert.deepEqual(messages, [asks, answers, { ...answers, tool_call_id: "c8" }]);
    for (const [messages, at] of [
      [[...user("hi"), answers], 1],
      [[answers, asks], 0],
    ] as const)
      await b.refused({ messages }, wrongValue(`messages[${at}].tool_call_id`));
    const second = (over: unknown) => ({ messages: [asks, { ...answers, ...(over as object) }] });
    await refuseEach(b, "messages[1]", second, [
      [".tool_call_id", wrongValue, { tool_call_id: "c9" }, { tool_call_id: "" }],
      [".tool_call_id", missing, { tool_call_id: undefined }],
      [".tool_call_id", wrongType, { tool_call_id: 7 }],
      [".content", wrongType, { content: null }],
      [".content", missing, { content: undefined }],
      [
        ".content[0].type",
        wrongValue,
        { content: [{ type: "image_url", image_url: { url: "x" } }] },
      ],
    ]);
  });

  // What of it goes to which provider: compatible/vendors.test.ts.
  it("reasoning_content of an earlier turn is never an error", async (t) => {
    const plain = { role: "assistant", content: "a" };
    for (const reasoning_content of ["b", 5]) {
      const { messages } = await bench(t).accepted(one({ ...plain, reasoning_content }));
      assert.deepEqual(messages, [plain]);
    }
  });

  it("fields that a message does not have are ignored and stay here", async (t) => {
    const { accepted } = bench(t);
    const names = ["name", "id", "cache_control", "tool_call_id", "audio", "annotations"];
    const extra = Object.fromEntries(names.map((name) => [name, "x"]));
    const messages = ["system", "user", "assistant"].map((role) => ({ role, content: "a" }));
    const given = messages.map((message) => ({ ...message, ...extra }));
    assert.deepEqual(await accepted({ messages: given }), { ...PLAIN, messages });
    const partsWith = (more: object) => [
      { type: "input_audio", input_audio: { data: "AA==", format: "wav", ...more } },
      { type: "file", file: { file_data: "data:a/b;base64,AA==", filename: "a", ...more } },
    ];
    const asking = (more: object) => [{ role: "user", content: partsWith(more) }];
    const seen = await accepted({ model: "seer", messages: asking({ file_url: "x", id: 1 }) });
    assert.deepEqual(seen["messages"], asking({}));
  });
});

/** Refuses values of one field, at paths below it. */
const refuseValues = (b: Bench, field: string, rows: readonly Row[], beside: object = {}) =>
  refuseEach(b, field, (value) => ({ ...beside, [field]: value }), rows);

/** Accepts the fields of each row, and sends what stands beside them with the plain request. */
async function acceptEach({ accepted }: Bench, rows: readonly (readonly [object, object])[]) {
  for (const [fields, sent] of rows)
    assert.deepEqual(await accepted(fields), { ...PLAIN, ...sent }, JSON.stringify(fields));
}

it("stop: a string, or up to four, none of them empty", async (t) => {
  const b = bench(t);
  const four = ["a", "b", "c", "d"];
  await acceptEach(b, [
    [{ stop: "END" }, { stop: ["END"] }],
    [{ stop: " " }, { stop: [" "] }],
    [{ stop: four }, { stop: four }],
    [{ stop: ["\n", "\n"] }, { stop: ["\n", "\n"] }],
    [{ stop: [] }, {}],
  ]);
  await refuseValues(b, "stop", [
    ["", wrongValue, [...four, "e"], ""],
    ["[1]", wrongValue, ["a", ""]],
    ["[1]", wrongType, ["a", 1], ["a", null], ["a", ["a"]]],
    ["", wrongType, 1, true, { a: 1 }],
  ]);
});

describe("tools", () => {
  const parameters = {
    type: "object",
    properties: { city: { type: "string" } },
    required: ["city"],
  };
  const full = fn("get_time", { description: "Clock for a city", parameters, strict: true });
  const levels = (depth: number): unknown => (depth === 1 ? {} : { a: levels(depth - 1) });

  it("known fields are passed on, others not; an empty list is no list; up to 128", async (t) => {
    const b = bench(t);
    const given = { ...full, cache_control: {}, function: { ...full.function, extra: 1 } };
    const many = Array.from({ length: 129 }, (_, index) => fn(`tool_${index}`));
    const nulls = fn("f", { description: null, parameters: null, strict: null });
    const names = ["x", "x".repeat(64), "A-z_09", "-", "__proto__"];
    const deepest = fn("f", { parameters: levels(100) });
    const sent = (tools: unknown) => ({ tools, tool_choice: "none" });
    await acceptEach(b, [
      [{ tools: [given, fn("b")] }, sent([full, fn("b")])],
      [{ tools: [nulls] }, sent([fn("f")])],
      [{ tools: [] }, {}],
      [{ tools: many.slice(1) }, sent(many.slice(1))],
      [{ tools: names.map((name) => fn(name)) }, sent(names.map((name) => fn(name)))],
      [{ tools: [deepest] }, sent([deepest])],
    ]);
    await refuseValues(b, "tools", [
      ["", wrongValue, many],
      ["", wrongType, "x", {}, 1, true],
      ["[0].function.parameters", wrongValue, [fn("f", { parameters: levels(101) })]],
    ]);
  });

  it("each is a function that has a name; the other fields have their types", async (t) => {
    const named = (name: unknown) => ({ type: "function", function: { name } });
    const bad = ["", "x".repeat(65), "get time", "get.time", "naïve", "f\n", "a/b"];
    await refuseEach(bench(t), "tools[1]", (tool) => ({ tools: [fn("ok"), tool] }), [
      ["", wrongType, null, "get_time", []],
      [".type", missing, { function: { name: "f" } }],
      [".type", wrongType, { ...fn("f"), type: 1 }],
      [".type", unsupported, ...["custom", "web_search", ""].map((type) => ({ ...fn("f"), type }))],
      [".function", missing, { type: "function" }],
      [".function", wrongType, { type: "function", function: "f" }],
      [".function.name", missing, named(undefined)],
      [".function.name", wrongType, ...[1, null, ["f"]].map(named)],
      [".function.name", wrongValue, ...bad.map(named)],
      [".function.description", wrongType, fn("f", { description: 1 })],
      [".function.parameters", wrongType, ...["{}", [], 1].map((p) => fn("f", { parameters: p }))],
      [".function.strict", wrongType, ...["true", 1].map((strict) => fn("f", { strict }))],
    ]);
  });

  it("tool_choice: none, auto, required, or a tool's name", async (t) => {
    const b = bench(t);
    const tools = [full, fn("b")];
    const named = { type: "function", function: { name: "b" } };
    const more = { ...named, function: { ...named.function, arguments: "{}" }, extra: 1 };
    const choices = ["none", "auto", "required", named];
    await acceptEach(b, [
      ...choices.map((choice) => {
        const fields = { tools, tool_choice: choice };
        return [fields, fields] as const;
      }),
      [
        { tools, tool_choice: more },
        { tools, tool_choice: named },
      ],
    ]);
    const other = (name: unknown) => ({ ...named, function: { name } });
    const types = ["allowed_tools", "custom", "any"].map((type) => ({ ...named, type }));
    const rows: Row[] = [
      ["", wrongValue, "any", "", "get_time", "AUTO", other("c")],
      ["", wrongType, 1, true, ["auto"]],
      [".type", missing, { function: { name: "b" } }],
      [".type", unsupported, ...types],
      [".function", missing, { type: "function" }],
      [".function.name", missing, other(undefined)],
      [".function.name", wrongValue, other("")],
    ];
    await refuseValues(b, "tool_choice", rows, { tools });
    const alone: Row = ["", badCombination, "auto", "required", named];
    for (const tools of [undefined, null, []]) {
      await acceptEach(b, [[{ tools, tool_choice: "none" }, {}]]);
      await refuseValues(b, "tool_choice", [alone], { tools });
    }
  });

  it("tool_choice left out is none, or auto where the operator says so", async (t) => {
    const tools = [full];
    const none = { tools, tool_choice: "none" };
    await acceptEach(bench(t), [[{ tools, tool_choice: null }, none]]);
    await acceptEach(bench(t, { compat: { tool_choice_default: "auto" } }), [
      [{ tools }, { tools, tool_choice: "auto" }],
      [
        { tools, tool_choice: null },
        { tools, tool_choice: "auto" },
      ],
      [none, none],
      [{}, {}], // without tools there is no choice to make
    ]);
  });
});

describe("response_format", () => {
  it("text, json_object, json_schema", async (t) => {
    const b = bench(t);
    const format = (type: string, more: object = {}) => ({ response_format: { type, ...more } });
    const bare = format("json_schema", { json_schema: { name: "x" } });
    const schema = { name: "x", description: "d", schema: { type: "object" }, strict: true };
    await acceptEach(b, [
      [format("text", { extra: 1 }), {}],
      [format("json_object", { schema: {} }), format("json_object")],
      [bare, bare],
      [
        format("json_schema", { extra: 1, json_schema: { ...schema, extra: 1 } }),
        format("json_schema", { json_schema: schema }),
      ],
    ]);
    await refuseValues(b, "response_format", [
      ["", wrongType, "json_object", 1, true, []],
      [".type", missing, {}],
      [".type", wrongType, { type: 1 }, { type: null }],
      [".type", wrongValue, ...["", "json", "xml", "__proto__"].map((type) => ({ type }))],
    ]);
    const of = (json_schema: unknown) => format("json_schema", { json_schema });
    await refuseEach(b, "response_format.json_schema", of, [
      ["", missing, undefined],
      ["", wrongType, "x"],
      [".name", missing, {}],
      [".name", wrongValue, { name: "" }],
      [".name", wrongType, { name: 1 }],
      [".description", wrongType, { name: "x", description: 1 }],
      [".schema", wrongType, ...[[], "x", true].map((schema) => ({ name: "x", schema }))],
      [".strict", wrongType, { name: "x", strict: "yes" }],
    ]);
  });
});

describe("fields that are never an error", () => {
  it("do nothing without what they belong to, or are passed on as they are; a refusal is text", async (t) => {
    const assistant = (content: unknown) => ({ messages: [{ role: "assistant", content }] });
    const parts = [
      { type: "refusal", refusal: "I will " },
      { type: "text", text: "not." },
    ];
    await acceptEach(bench(t), [
      [{ top_logprobs: 20 }, {}],
      [{ parallel_tool_calls: true }, {}],
      [
        { tools: [fn("f")], parallel_tool_calls: true },
        { tools: [fn("f")], tool_choice: "none", parallel_tool_calls: true },
      ],
      [{ seed: -1 }, { seed: -1 }],
      [assistant(parts), assistant("I will not.")],
    ]);
  });

  it("what stores something for the client or only hastens the reply, and a user that is no text, is ignored", async (t) => {
    const b = bench(t);
    for (const value of [[1], { a: 1 }, null, "", 5, true])
      for (const name of ["metadata", "store", "service_tier", "prediction", "audio", "user"])
        await acceptEach(b, [[{ [name]: value }, {}]]);
  });

  it("fields that nobody knows are ignored and not passed on", async (t) => {
    const b = bench(t);
    const names = ["top_k", "best_of", "providerOptions", "models", "api_key", "extra_body"];
    await acceptEach(b, [[Object.fromEntries(names.map((name) => [name, { x: 1 }])), {}]]);
    const text = `{"constructor":{"prototype":{"polluted":1}},"toString":1,"__proto__":{"temperature":5,"stream":true},${JSON.stringify(REQUEST).slice(1)}`;
    assert.equal((await b.gw.chat(text)).status, 200);
    assert.deepEqual(b.asked.at(-1)?.body, PLAIN);
    assert.equal(({} as Json)["polluted"], undefined);
  });
});

describe("seed, parallel_tool_calls, reasoning_effort", () => {
  it("of another type are refused: ignored, they would be their opposite", async (t) => {
    const b = bench(t);
    await refuseValues(b, "seed", [
      ["", wrongType, "42", 1.5, true, [1], {}],
      ["", wrongValue, 2 ** 53, -(2 ** 53)],
    ]);
    const calls: Row = ["", wrongType, "false", 0, [], {}];
    await refuseValues(b, "parallel_tool_calls", [calls], { tools: [fn("f")] });
    await refuseValues(b, "reasoning_effort", [["", wrongType, 5, true, [], {}]]);
  });

  it("an unknown depth of thinking is refused, with the known ones, and does not switch it off", async (t) => {
    const { refused } = bench(t);
    for (const reasoning_effort of ["", "ultra", "HIGH", "off"]) {
      const message = await refused({ reasoning_effort }, wrongValue("reasoning_effort"));
      for (const known of ["none", "minimal", "low", "medium", "high", "xhigh", "max"])
        assert.ok(message.includes(`"${known}"`), message);
    }
  });
});

it("explicit null is the same as absent, in fields and messages", async (t) => {
  const b = bench(t);
  const message = { role: "assistant", content: "a" };
  const nulls = { reasoning_content: null, tool_calls: null, refusal: null, name: null };
  const json_schema = { name: "x", description: null, schema: null, strict: null };
  const tool_calls = [{ id: "c", type: null, function: { name: "f", arguments: null } }];
  const completed = { role: "assistant", content: null, tool_calls: [call("c", "f", "")] };
  const format = (json_schema: object) => ({
    response_format: { type: "json_schema", json_schema },
  });
  await acceptEach(b, [
    [{ messages: [{ ...message, ...nulls }] }, { messages: [message] }],
    [format(json_schema), format({ name: "x" })],
    [{ messages: [{ role: "assistant", tool_calls }] }, { messages: [completed] }],
    [
      { stream: true, stream_options: { include_usage: null } },
      { stream: true, stream_options: { include_usage: true } },
    ],
  ]);
});

interface Post {
  readonly headers?: Record<string, string>;
  /** Without Content-Length. */
  readonly chunked?: boolean;
  readonly path?: string;
  readonly method?: string;
}

/** A request over node:http, which sends exactly what it is told to. */
async function post(
  gw: RunningGateway,
  body: Buffer | string,
  { headers = {}, chunked = false, path = "/v1/chat/completions", method = "POST" }: Post = {},
): Promise<ChatAnswer> {
  const bytes = Buffer.from(body as string);
  const length = chunked
    ? { "transfer-encoding": "chunked" }
    : { "content-length": String(bytes.length) };
  const json = { authorization: `Bearer ${KEY}`, "content-type": "application/json" };
  const options = { method, headers: { ...json, ...length, ...headers }, agent: false };
  const req = http.request(`${gw.url}${path}`, options);
  const answer = once(req, "response");
  if (chunked)
    for (let at = 0; at < bytes.length; at += 16_384) req.write(bytes.subarray(at, at + 16_384));
  req.end(chunked ? undefined : bytes);
  const [res] = await within(answer, `the answer to ${bytes.length} bytes`);
  const given = await within(text(res), "the end of the answer");
  return {
    status: res.statusCode,
    headers: { get: (name) => res.headers[name] ?? null },
    text: async () => given,
    json: async () => JSON.parse(given),
  };
}

const badJson: Refusal = { code: "invalid_json", param: null };
const tooLarge: Refusal = { status: 413, code: "request_too_large", param: null };
const badMedia: Refusal = { status: 415, code: "unsupported_media_type", param: null };
const notAnObject: Refusal = { code: "invalid_type", param: null };

describe("hostile bodies", () => {
  const scope = suiteScope();
  let gw: RunningGateway;
  let asked: Asked[];
  let accepted: Bench["accepted"];
  before(async () => {
    ({ gw, asked, accepted } = await wireBench(scope));
  });
  beforeEach(() => {
    asked.length = 0;
  });
  const DEEP = 100_000;
  const arrays = "[".repeat(DEEP) + "]".repeat(DEEP);
  const objects = `${'{"a":'.repeat(DEEP)}0${"}".repeat(DEEP)}`;
  const body = (fields: string) => `{"model":"m",${fields}}`;
  const messages = '"messages":[{"role":"user","content":"hi"}]';

  const withContent = (content: string) =>
    body(`"messages":[{"role":"user","content":${content}}]`);
  const withParameters = (parameters: string) =>
    body(
      `${messages},"tools":[{"type":"function","function":{"name":"f","parameters":${parameters}}}]`,
    );
  for (const [name, text, refusal] of [
    ["100,000 levels as the body", arrays, notAnObject],
    ["100,000 levels as content", withContent(arrays), wrongType("messages[0].content[0]")],
    [
      "100,000 levels inside tool parameters",
      withParameters(`{"a":${arrays}}`),
      wrongValue("tools[0].function.parameters"),
    ],
    ["100,000 levels that are never closed", "[".repeat(DEEP), badJson],
    ["two documents", `${body(messages)}${body(messages)}`, badJson],
    ["NaN", body(`${messages},"temperature":NaN`), badJson],
    ["two BOMs", `\ufeff\ufeff${body(messages)}`, badJson],
    ["a string", '"model"', notAnObject],
    ["an empty object", "{}", missing("model")],
    ["fields in __proto__ only", `{"__proto__":${body(messages)}}`, missing("model")],
    [
      "a role in __proto__ only",
      body('"messages":[{"__proto__":{"role":"user"},"content":"hi"}]'),
      missing("messages[0].role"),
    ],
  ] as const) {
    it(`${name}: refused, and the gateway is well`, async () => {
      for (const chunked of [false, true])
        await assertRefusal(await post(gw, text, { chunked }), refusal);
      assert.equal(asked.length, 0);
      await accepted({});
    });
  }

  it("100,000 levels where nobody looks are ignored", async () => {
    const answer = await post(gw, body(`${messages},"metadata":${arrays},"x":${objects}`));
    assert.equal(answer.status, 200);
    assert.deepEqual(asked[0]?.body, PLAIN);
  });

  it("values are bounded in number: 300,000 are looked at, one more is refused", async () => {
    const lists = (count: number) => `[${'"",'.repeat(count - 1)}""${" ".repeat(300_000)}]`;
    await assertRefusal(await post(gw, lists(300_000)), notAnObject);
    const message = await assertRefusal(await post(gw, lists(300_001)), badJson);
    assert.match(message, /holds more than 300000 values/);
  });

  it("the message tells where, and nothing of the body", async () => {
    for (const text of ['{"model":"CANARY" "messages":[]}', '{"model":CANARY}', "CANARY"])
      assert.doesNotMatch(await assertRefusal(await post(gw, text), badJson), /CANARY/);
  });

  it("text of every kind arrives at the provider as it was sent, after one BOM too", async () => {
    // Of brackets, commas and colons in a text there may be any number.
    for (const content of [
      '\u0000\u001f\ufeff€𝄞👩‍👩‍👧\u2028\\"\ud800',
      '"[{,:"a":\\'.repeat(500_000),
    ]) {
      asked.length = 0;
      const request = JSON.stringify({ ...REQUEST, messages: user(content) });
      assert.equal((await post(gw, `\ufeff${request}`)).status, 200);
      assert.equal(asked[0]?.body["messages"][0].content, content);
    }
  });
});

describe("the size of a body", () => {
  /** A valid request of exactly so many bytes. */
  function bodyOf(bytes: number): string {
    const text = JSON.stringify({ ...REQUEST, pad: "" });
    return text.replace('"pad":""', `"pad":"${"x".repeat(bytes - text.length)}"`);
  }

  for (const chunked of [false, true]) {
    it(`exactly max_body_bytes passes, more is refused readably, ${chunked ? "chunked" : "with Content-Length"}`, async (t) => {
      const { gw, asked, accepted } = await wireBench(t, { server: { max_body_bytes: 1_000 } });
      assert.equal((await post(gw, bodyOf(1_000), { chunked })).status, 200);
      for (const body of [bodyOf(1_001), Buffer.alloc(8 * 1024 * 1024, "x")]) {
        const message = await assertRefusal(await post(gw, body, { chunked }), tooLarge);
        assert.match(message, /1000 bytes/);
      }
      assert.equal(asked.length, 1);
      await accepted({}, "the gateway is well");
    });
  }
});

it("the order of the checks: path, method, key, limit, media type, size, JSON, fields, model", async (t) => {
  const { gw } = await wireBench(t, {
    server: { max_body_bytes: 100 },
    accounts: { full: { rpm: 0 } },
    keys: [
      { account: "acme", key: KEY },
      { account: "full", key: "sk-full" },
    ],
  });
  const large = "x".repeat(101);
  const as = (authorization: string) => ({
    headers: { "content-type": "text/plain", authorization },
  });
  const noKey = { status: 401, type: "authentication_error", param: null };
  const rate = { status: 429, type: "rate_limit_error", param: null };
  const wrong = JSON.stringify({ model: "unknown", messages: [], temperature: 9 });
  const unknown = JSON.stringify({ model: "unknown", messages: user("hi") });
  const rows: readonly (readonly [string, Post, Refusal])[] = [
    [large, { ...as(""), path: "/v1/x" }, { status: 404, code: "unknown_url", param: null }],
    [large, { ...as(""), method: "PUT" }, { status: 405, code: "method_not_allowed", param: null }],
    [large, as("Basic x"), { ...noKey, code: "missing_api_key" }],
    [large, as("Bearer sk-wrong"), { ...noKey, code: "invalid_api_key" }],
    [large, as("Bearer sk-full"), { ...rate, code: "rate_limit_exceeded" }],
    [large, as(`Bearer ${KEY}`), badMedia],
    [large, {}, tooLarge],
    ["x", {}, badJson],
    [wrong, {}, wrongValue("messages")],
    [unknown, {}, { status: 404, code: "model_not_found", param: "model" }],
  ];
  for (const [body, how, refusal] of rows) await assertRefusal(await post(gw, body, how), refusal);
});
