// The chat request: every field and combination, both sides of every bound, what the provider gets
// of accepted requests, and hostile bodies. The conformance suite (scripts/conformance/checks)
// checks the ranges of numbers and missing fields.

import assert from "node:assert/strict";
import { before, beforeEach, describe, it } from "node:test";
import { configFor, KEY, startGateway, user, type RunningGateway } from "../../support/gateway.ts";
import { speak, startProvider, type Asked } from "../../support/provider.ts";
import { assertError, rawRequest, type RawAnswer } from "../../support/raw.ts";
import { suiteScope, type Scope } from "../../support/scope.ts";
import { bytesOf } from "../http/wire.ts";

type Json = Record<string, unknown>;

/** The provider's request for the simplest chat request: one user message, nothing else. */
const PLAIN = {
  model: "m",
  messages: user("hi"),
  temperature: 1,
  top_p: 1,
  thinking: { type: "disabled" },
};
/** That chat request, as a client sends it. */
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
}

async function bench(t: Scope, over: object = {}) {
  const { url, asked } = await startProvider(t, speak("Hello."));
  const supports = { models: { seer: { supports: ["images", "audio", "files"] } } };
  const gateway = await startGateway(t, configFor(url, ["m", "seer"], { ...supports, ...over }));
  return {
    gateway,
    asked,
    /**
     * Sends the simple request with these fields. It must succeed. Returns the provider's request.
     */
    async accepted(fields: object): Promise<Json> {
      const before = asked.length;
      const res = await gateway.chat({ ...REQUEST, ...fields });
      assert.equal(res.status, 200, `${JSON.stringify(fields)}: ${await res.text()}`);
      assert.equal(asked.length, before + 1);
      return asked.at(-1)!.body;
    },
    /**
     * The same for a request that must be rejected before it reaches the provider. Returns the
     * message.
     */
    async refused(fields: object, { code, param, status = 400 }: Refusal): Promise<string> {
      const before = asked.length;
      const res = await gateway.chat({ ...REQUEST, ...fields });
      const { error } = (await res.json()) as { error: Record<string, string> };
      const got = [res.status, error["code"], error["param"]];
      assert.deepEqual(got, [status, code, param], JSON.stringify(fields).slice(0, 500));
      assert.equal(asked.length, before, "the provider was asked all the same");
      return error["message"]!;
    },
  };
}

const wrongType = (param: string): Refusal => ({ code: "invalid_type", param });
const wrongValue = (param: string): Refusal => ({ code: "invalid_value", param });
const missing = (param: string): Refusal => ({ code: "missing_required_parameter", param });
const unsupported = (param: string): Refusal => ({ code: "unsupported_value", param });
const badCombination = (param: string): Refusal => ({
  code: "invalid_parameter_combination",
  param,
});

it("integers may be written as 1.0", async (t) => {
  const { gateway, asked } = await bench(t);
  const text = `{"max_tokens":1.0,${JSON.stringify(REQUEST).slice(1)}`;
  assert.equal((await gateway.chat(text)).status, 200);
  assert.deepEqual(asked[0]?.body, { ...PLAIN, max_tokens: 1 });
});

it("model: a known name", async (t) => {
  const { accepted, refused } = await bench(t, {
    aliases: { "team/off": { models: ["m"], enabled: false }, "team/on": { models: ["m"] } },
  });
  for (const model of ["team/off", "M", " m", "x".repeat(10_000)]) {
    const unknown = { status: 404, code: "model_not_found", param: "model" };
    const message = await refused({ model }, unknown);
    assert.ok(message.length < 200, "a long name must not come back whole");
  }
  assert.deepEqual(await accepted({ model: "team/on" }), PLAIN);
});

/** Rejected values: what is appended to the field's path, the expected error, the values. */
type Row = readonly [at: string, refusal: (param: string) => Refusal, ...values: unknown[]];

const one = (message: unknown) => ({ messages: [message] });
const says = (content: unknown, more: object = {}) => one({ role: "assistant", content, ...more });
const field = (name: string, beside: object = {}) =>
  [name, (value: unknown) => ({ ...beside, [name]: value })] as const;
const image = (image_url: unknown) => ({ type: "image_url", image_url });
const f = { function: { name: "f" } };
const named = (name: unknown) => ({ type: "function", function: { name } });
const answers = { role: "tool", tool_call_id: "c7", content: "14:05" };
const asks = { role: "assistant", content: null, tool_calls: [call("c7"), call("c8")] };
const levels = (depth: number): unknown => (depth === 1 ? {} : { a: levels(depth - 1) });
const tools = [fn("get_time"), fn("b")];
const withoutTools: Row = ["", badCombination, "auto", "required", named("b")];

/** A field's path, the request with a value in that field, and the rejected values. */
const REFUSED: readonly (readonly [string, (value: any) => object, ...Row[]])[] = [
  [...field("model"), ["", wrongType, null, 1, true, ["m"], { name: "m" }], ["", wrongValue, ""]],
  [...field("max_completion_tokens"), ["", wrongType, "1", 1.5, true, [1], {}]],
  [
    "messages[0].content[0]",
    (part) => ({ model: "seer", ...one({ role: "user", content: [part] }) }),
    [".image_url", missing, { type: "image_url" }],
    [".image_url", wrongType, image("http://x/")],
    [".image_url.url", missing, image({})],
    [".image_url.url", wrongValue, image({ url: "" })],
    [".image_url.detail", wrongType, image({ url: "x", detail: 1 })],
    [".input_audio", missing, { type: "input_audio" }],
    [".file", wrongType, { type: "file", file: [] }],
    [".file.file_data", wrongType, { type: "file", file: { file_data: 1 } }],
  ],
  ["messages[0].content", (tool_calls) => says(null, { tool_calls }), ["", missing, [], null]],
  ["messages[0].tool_calls", (tool_calls) => says("x", { tool_calls }), ["", wrongType, {}]],
  [
    "messages[0].tool_calls[1]",
    (second) => says("x", { tool_calls: [call("c"), second] }),
    ["", wrongType, "x"],
    [".id", missing, f],
    [".id", wrongValue, { id: "", ...f }],
    [".id", wrongType, { id: 7, ...f }],
    [".type", wrongValue, { id: "d", type: "custom", ...f }],
    [".function", missing, { id: "d" }],
    [".function.name", missing, { id: "d", function: {} }],
    [".function.name", wrongValue, { id: "d", function: { name: "" } }],
    [".function.arguments", wrongType, { id: "d", function: { name: "f", arguments: {} } }],
  ],
  [
    "messages[1]",
    (over) => ({ messages: [asks, { ...answers, ...over }] }),
    [".tool_call_id", wrongValue, { tool_call_id: "c9" }, { tool_call_id: "" }],
    [".tool_call_id", wrongType, { tool_call_id: 7 }],
    [".content", wrongType, { content: null }],
    [".content", missing, { content: undefined }],
    [".content[0].type", wrongValue, { content: [image({ url: "x" })] }],
  ],
  ["messages[0].tool_call_id", (messages) => ({ messages }), ["", wrongValue, [answers, asks]]],
  [
    ...field("stop"),
    ["[1]", wrongValue, ["a", ""]],
    ["[1]", wrongType, ["a", 1], ["a", null], ["a", ["a"]]],
    ["", wrongType, 1, true, { a: 1 }],
  ],
  [
    ...field("tools"),
    ["", wrongValue, Array.from({ length: 129 }, (_, at) => fn(`tool_${at}`))],
    ["", wrongType, "x", {}, 1, true],
    ["[0].function.parameters", wrongValue, [fn("f", { parameters: levels(101) })]],
  ],
  [
    "tools[1]",
    (tool) => ({ tools: [fn("ok"), tool] }),
    ["", wrongType, null, "get_time", []],
    [".type", missing, f],
    [".type", wrongType, { ...fn("f"), type: 1 }],
    [".type", unsupported, { ...fn("f"), type: "web_search" }, { ...fn("f"), type: "" }],
    [".function", missing, { type: "function" }],
    [".function", wrongType, { type: "function", function: "f" }],
    [".function.name", missing, named(undefined)],
    [".function.name", wrongType, named(1), named(null), named(["f"])],
    [
      ".function.name",
      wrongValue,
      ...["", "x".repeat(65), "get.time", "naïve", "f\n", "a/b"].map(named),
    ],
    [".function.description", wrongType, fn("f", { description: 1 })],
    [".function.parameters", wrongType, ...["{}", [], 1].map((p) => fn("f", { parameters: p }))],
    [".function.strict", wrongType, ...["true", 1].map((strict) => fn("f", { strict }))],
  ],
  [
    ...field("tool_choice", { tools }),
    ["", wrongValue, "any", "", "get_time", "AUTO", named("c")],
    ["", wrongType, 1, true, ["auto"]],
    [".type", missing, f],
    [".type", unsupported, ...["allowed_tools", "any"].map((type) => ({ ...named("b"), type }))],
    [".function", missing, { type: "function" }],
    [".function.name", missing, named(undefined)],
    [".function.name", wrongValue, named("")],
  ],
  [...field("tool_choice"), withoutTools],
  [...field("tool_choice", { tools: null }), withoutTools],
  [...field("tool_choice", { tools: [] }), withoutTools],
  [
    ...field("response_format"),
    ["", wrongType, "json_object", 1, true, []],
    [".type", missing, {}],
    [".type", wrongType, { type: 1 }, { type: null }],
    [".type", wrongValue, ...["", "json", "__proto__"].map((type) => ({ type }))],
  ],
  [
    "response_format.json_schema",
    (json_schema) => ({ response_format: { type: "json_schema", json_schema } }),
    ["", missing, undefined],
    ["", wrongType, "x"],
    [".name", missing, {}],
    [".name", wrongValue, { name: "" }],
    [".name", wrongType, { name: 1 }],
    [".description", wrongType, { name: "x", description: 1 }],
    [".schema", wrongType, ...[[], "x", true].map((schema) => ({ name: "x", schema }))],
    [".strict", wrongType, { name: "x", strict: "yes" }],
  ],
  // Ignoring these would reverse their meaning.
  [
    ...field("seed"),
    ["", wrongType, "42", 1.5, true, [1], {}],
    ["", wrongValue, 2 ** 53, -(2 ** 53)],
  ],
  [...field("parallel_tool_calls", { tools }), ["", wrongType, "false", 0, [], {}]],
  [...field("reasoning_effort"), ["", wrongType, 5, true, [], {}]],
  ...["system", "developer", "user", "assistant"].map((role) => {
    const text = { type: "text", text: "x" };
    return [
      "messages[0].content",
      (content: unknown) => one({ role, content }),
      ["", wrongType, 1, true, { text: "x" }],
      ["", role === "assistant" ? missing : wrongType, null],
      ["", missing, undefined],
      ["[0]", wrongType, ["text"]],
      ["[0].type", missing, [{ text: "x" }]],
      ["[1].type", wrongValue, [text, { type: "video", text: "x" }]],
      ["[1].text", missing, [text, { type: "text" }]],
      ["[0].text", wrongType, [{ type: "text", text: 1 }]],
      ["[0].type", wrongValue, ...(role === "user" ? [] : [[image({ url: "x" })]])],
      [
        "[0].type",
        wrongValue,
        ...(role === "assistant" ? [] : [[{ type: "refusal", refusal: "x" }]]),
      ],
    ] as const;
  }),
];

describe("what is refused", () => {
  for (const [path, fields, ...rows] of REFUSED)
    it(`at ${path}, as in ${JSON.stringify(fields("..."))}`, async (t) => {
      const { refused } = await bench(t);
      for (const [at, refusal, ...values] of rows)
        for (const value of values) await refused(fields(value), refusal(`${path}${at}`));
    });

  it("reasoning_effort of an unknown level, with the known ones listed: it does not disable thinking", async (t) => {
    const { refused } = await bench(t);
    for (const reasoning_effort of ["", "ultra", "HIGH", "off"]) {
      const message = await refused({ reasoning_effort }, wrongValue("reasoning_effort"));
      for (const known of ["none", "minimal", "low", "medium", "high", "xhigh", "max"])
        assert.ok(message.includes(`"${known}"`), message);
    }
  });
});

const format = (type: string, more: object = {}) => ({ response_format: { type, ...more } });
const schema = { name: "x", description: "d", schema: { type: "object" }, strict: true };
const nulls = { name: "x", description: null, schema: null, strict: null };
const bareSchema = format("json_schema", { json_schema: { name: "x" } });
const parameters = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const known = { description: "Clock for a city", parameters, strict: true };
const full = fn("get_time", known);
const manyTools = Array.from({ length: 128 }, (_, at) => fn(`tool_${at}`));
const oddNames = ["x", "x".repeat(64), "A-z_09", "-", "__proto__"].map((name) => fn(name));
const deepest = [fn("f", { parameters: levels(100) })];
const toolsSent = (tools: unknown) => ({ tools, tool_choice: "none" });
const tool_calls = [call("c7", "get_time", '{"city":"Oslo"}'), call("c8", "f", "not JSON")];
const completed = says(null, { tool_calls: [call("c", "f", "")] });
const second = { ...answers, tool_call_id: "c8" };
const JOINED = "What time is it?";
const parts = [
  { type: "text", text: "What time " },
  { type: "text", text: "is it?", cache_control: { type: "x" } },
  { type: "text", text: "" },
];
const extra = { name: "x", id: "x", cache_control: "x", tool_call_id: "x", annotations: "x" };
const media = (more: object) => {
  const sound = { type: "input_audio", input_audio: { data: "AA==", format: "wav", ...more } };
  const file = { type: "file", file: { file_data: "data:a/b;base64,AA==", ...more } };
  return { model: "seer", ...one({ role: "user", content: [sound, file] }) };
};
const refusedPart = { type: "refusal", refusal: "I will " };
const stored = ["metadata", "store", "service_tier", "prediction", "audio", "user"];
const unknown = ["top_k", "best_of", "providerOptions", "models", "api_key", "extra_body"];

/** Accepted fields, and what the provider gets of them beside the simple request. */
const ACCEPTED: Readonly<Record<string, readonly (readonly [object, object])[]>> = {
  "content is text, or text parts, which are joined; developer is system": [
    ...["system", "developer", "user", "assistant"].flatMap((role) =>
      ["text", "", parts].map((content) => {
        const sent = content === parts ? JOINED : content;
        const sentRole = role === "developer" ? "system" : role;
        return [one({ role, content }), one({ role: sentRole, content: sent })] as const;
      }),
    ),
    [says([refusedPart, { type: "text", text: "not." }]), says("I will not.")],
  ],
  "content may be missing, null or empty beside tool_calls": [
    [says(undefined, { tool_calls }), says(null, { tool_calls })],
    ...[null, "", "So:"].map((content) => {
      const message = says(content, { tool_calls });
      return [message, message] as const;
    }),
  ],
  "an incomplete tool call is completed if that is allowed": [
    { id: "c", function: { name: "f", extra: 1 }, index: 0 },
    { id: "c", type: null, function: { name: "f", arguments: null } },
  ].map((call) => [says(null, { tool_calls: [call] }), completed]),
  "a tool's result is text, or text parts": [
    [
      { messages: [asks, answers, { ...second, name: "f", content: parts }] },
      { messages: [asks, answers, { ...second, content: JOINED }] },
    ],
  ],
  // compatible/vendors.test.ts: what each provider gets of reasoning_content.
  "unknown fields of a message are ignored and not passed on": [
    ...["system", "user", "assistant"].map((role) => {
      const message = { role, content: "a" };
      return [one({ ...message, ...extra }), one(message)] as const;
    }),
    ...["b", 5, null].map((reasoning_content) => {
      const more = { reasoning_content, tool_calls: null, refusal: null, name: null };
      return [says("a", more), says("a")] as const;
    }),
    [media({ file_url: "x", id: 1 }), media({})],
  ],
  "stop is a string, or up to four": [
    [{ stop: "END" }, { stop: ["END"] }],
    [{ stop: " " }, { stop: [" "] }],
    [{ stop: ["a", "b", "c", "d"] }, { stop: ["a", "b", "c", "d"] }],
    [{ stop: ["\n", "\n"] }, { stop: ["\n", "\n"] }],
    [{ stop: [] }, {}],
  ],
  "only known fields of tools are passed on; an empty list counts as absent; up to 128": [
    [
      { tools: [{ ...fn("get_time", { ...known, extra: 1 }), cache_control: {} }] },
      toolsSent([full]),
    ],
    [
      { tools: [fn("f", { description: null, parameters: null, strict: null })] },
      toolsSent([fn("f")]),
    ],
    [{ tools: [] }, {}],
    ...[manyTools, oddNames, deepest].map((tools) => [{ tools }, toolsSent(tools)] as const),
  ],
  "tool_choice is none, auto, required, or a tool's name; absent means none": [
    ...["none", "auto", "required", named("b")].map((tool_choice) => {
      const fields = { tools, tool_choice };
      return [fields, fields] as const;
    }),
    [
      { tools, tool_choice: { type: "function", function: { name: "b", arguments: "{}" }, x: 1 } },
      { tools, tool_choice: named("b") },
    ],
    ...[undefined, null, []].map((tools) => [{ tools, tool_choice: "none" }, {}] as const),
    [{ tools, tool_choice: null }, toolsSent(tools)],
  ],
  "response_format is text, json_object or json_schema": [
    [format("text", { extra: 1 }), {}],
    [format("json_object", { schema: {} }), format("json_object")],
    [bareSchema, bareSchema],
    [
      format("json_schema", { extra: 1, json_schema: { ...schema, extra: 1 } }),
      format("json_schema", { json_schema: schema }),
    ],
    [format("json_schema", { json_schema: nulls }), bareSchema],
  ],
  "fields without the field that they belong to are ignored": [
    [{ top_logprobs: 20 }, {}],
    [{ parallel_tool_calls: true }, {}],
    [
      { tools, parallel_tool_calls: true },
      { ...toolsSent(tools), parallel_tool_calls: true },
    ],
    [{ seed: -1 }, { seed: -1 }],
    [
      { stream: true, stream_options: { include_usage: null } },
      { stream: true, stream_options: { include_usage: true } },
    ],
  ],
  "fields that store data or only speed up the reply, and a user that is not a string, are ignored":
    stored.flatMap((name) =>
      [[1], { a: 1 }, null, "", 5, true].map((value) => [{ [name]: value }, {}] as const),
    ),
  "unknown fields are ignored and not passed on": [
    [Object.fromEntries(unknown.map((name) => [name, { x: 1 }])), {}],
  ],
};

/** Sends the fields of each row. The provider must get the fields beside them. */
const acceptRows =
  (rows: readonly (readonly [object, object])[], over: object = {}) =>
  async (t: Scope) => {
    const { accepted } = await bench(t, over);
    for (const [fields, sent] of rows) {
      const expected = { ...PLAIN, ...sent };
      assert.deepEqual(await accepted(fields), expected, JSON.stringify(fields));
    }
  };

describe("what is accepted", () => {
  for (const [name, rows] of Object.entries(ACCEPTED)) it(name, acceptRows(rows));

  const auto = { tools, tool_choice: "auto" };
  it(
    "without tool_choice, auto is sent if the operator configures it",
    acceptRows(
      [
        [{ tools }, auto],
        [{ tools, tool_choice: null }, auto],
        [toolsSent(tools), toolsSent(tools)],
        [{}, {}], // without tools nothing is sent
      ],
      { compat: { tool_choice_default: "auto" } },
    ),
  );

  it("inherited names such as toString are unknown fields like any other", async (t) => {
    const { gateway, asked } = await bench(t);
    const text = `{"constructor":{"prototype":{"polluted":1}},"toString":1,"__proto__":{"temperature":5,"stream":true},${JSON.stringify(REQUEST).slice(1)}`;
    assert.equal((await gateway.chat(text)).status, 200);
    assert.deepEqual(asked.at(-1)?.body, PLAIN);
    assert.equal(({} as Json)["polluted"], undefined);
  });
});

interface Post {
  /** Header lines. Absent: the key and media type of a valid request. */
  readonly head?: readonly string[];
  /** Sends a chunked body without Content-Length. */
  readonly chunked?: boolean;
  readonly line?: string;
}
const GOOD = [`Authorization: Bearer ${KEY}`, "Content-Type: application/json"];

/** Sends exactly these bytes on a new connection. */
function post(
  { url }: RunningGateway,
  body: Buffer | string,
  { head = GOOD, chunked = false, line = "POST /v1/chat/completions" }: Post = {},
): Promise<RawAnswer> {
  const bytes = Buffer.from(body as string);
  const framing = chunked ? "Transfer-Encoding: chunked" : `Content-Length: ${bytes.length}`;
  const start = bytesOf(line, ["Connection: close", framing, ...head]);
  const [size, end] = chunked ? [`${bytes.length.toString(16)}\r\n`, "\r\n0\r\n\r\n"] : ["", ""];
  return rawRequest(url, Buffer.concat([Buffer.from(start + size), bytes, Buffer.from(end)]));
}

/** Asserts this error. Returns its message. */
function assertRefusal(answer: RawAnswer, { code, param, status = 400 }: Refusal): string {
  assertError(answer, status, code);
  const { error } = JSON.parse(answer.body);
  assert.equal(error.param, param);
  return error.message;
}

const badJson: Refusal = { code: "invalid_json", param: null };
const tooLarge: Refusal = { status: 413, code: "request_too_large", param: null };
const notAnObject: Refusal = { code: "invalid_type", param: null };

describe("hostile bodies", () => {
  const scope = suiteScope();
  let gw: RunningGateway;
  let asked: Asked[];
  before(async () => {
    ({ gateway: gw, asked } = await bench(scope));
  });
  beforeEach(() => {
    asked.length = 0;
  });
  const DEEP = 100_000;
  const arrays = "[".repeat(DEEP) + "]".repeat(DEEP);
  const objects = `${'{"a":'.repeat(DEEP)}0${"}".repeat(DEEP)}`;
  const body = (fields: string) => `{"model":"m",${fields}}`;
  const messages = '"messages":[{"role":"user","content":"hi"}]';
  const tool = `"tools":[{"type":"function","function":{"name":"f","parameters":{"a":${arrays}}}}]`;

  for (const [name, text, refusal] of [
    ["100,000 levels as the body", arrays, notAnObject],
    [
      "100,000 levels as content",
      body(`"messages":[{"role":"user","content":${arrays}}]`),
      wrongType("messages[0].content[0]"),
    ],
    [
      "100,000 levels inside tool parameters",
      body(`${messages},${tool}`),
      wrongValue("tools[0].function.parameters"),
    ],
    ["100,000 levels that are never closed", "[".repeat(DEEP), badJson],
    ["two BOMs", `\ufeff\ufeff${body(messages)}`, badJson],
    ["fields in __proto__ only", `{"__proto__":${body(messages)}}`, missing("model")],
    [
      "a role in __proto__ only",
      body('"messages":[{"__proto__":{"role":"user"},"content":"hi"}]'),
      missing("messages[0].role"),
    ],
  ] as const) {
    it(`${name}: rejected, and the gateway stays healthy`, async () => {
      for (const chunked of [false, true])
        assertRefusal(await post(gw, text, { chunked }), refusal);
      assert.equal(asked.length, 0);
      assert.equal((await post(gw, body(messages))).status, 200);
    });
  }

  it("100,000 levels in an ignored field are ignored", async () => {
    const answer = await post(gw, body(`${messages},"metadata":${arrays},"x":${objects}`));
    assert.equal(answer.status, 200);
    assert.deepEqual(asked[0]?.body, PLAIN);
  });

  it("the number of values is bounded: 300,000 are accepted, one more is rejected", async () => {
    const lists = (count: number) => `[${'"",'.repeat(count - 1)}""${" ".repeat(300_000)}]`;
    assertRefusal(await post(gw, lists(300_000)), notAnObject);
    const message = assertRefusal(await post(gw, lists(300_001)), badJson);
    assert.match(message, /holds more than 300000 values/);
  });

  it("the message states the position, and nothing of the body", async () => {
    for (const text of ['{"model":"CANARY" "messages":[]}', '{"model":CANARY}', "CANARY"])
      assert.doesNotMatch(assertRefusal(await post(gw, text), badJson), /CANARY/);
  });

  it("all kinds of text reach the provider unchanged, after one BOM too", async () => {
    // Except halves of characters: ../upstream/upstream.test.ts. A text may contain any number of
    // brackets, commas and colons.
    for (const content of ['\u0000\u001f\ufeff€𝄞👩‍👩‍👧\u2028\\"', '"[{,:"a":\\'.repeat(500_000)]) {
      asked.length = 0;
      const request = JSON.stringify({ ...REQUEST, messages: user(content) });
      assert.equal((await post(gw, `\ufeff${request}`)).status, 200);
      assert.equal(asked[0]?.body["messages"][0].content, content);
    }
  });
});

for (const chunked of [false, true])
  it(`exactly max_body_bytes is accepted, more gets a readable error, ${chunked ? "chunked" : "with Content-Length"}`, async (t) => {
    const { gateway: gw, asked } = await bench(t, { server: { max_body_bytes: 1_000 } });
    const text = JSON.stringify({ ...REQUEST, pad: "" });
    const largest = text.replace('"pad":""', `"pad":"${"x".repeat(1_000 - text.length)}"`);
    assert.equal((await post(gw, largest, { chunked })).status, 200);
    for (const body of [`${largest} `, Buffer.alloc(8 * 1024 * 1024, "x")])
      assert.match(assertRefusal(await post(gw, body, { chunked }), tooLarge), /1000 bytes/);
    assert.equal(asked.length, 1);
    assert.equal((await post(gw, largest)).status, 200, "the gateway still serves");
  });

it("checks run in the order path, method, key, limit, media type, size, JSON, fields, model", async (t) => {
  const { gateway: gw } = await bench(t, {
    server: { max_body_bytes: 100 },
    accounts: { full: { rpm: 0 } },
    keys: [
      { account: "acme", key: KEY },
      { account: "full", key: "sk-full" },
    ],
  });
  const large = "x".repeat(101);
  const as = (authorization: string) => ({
    head: ["Content-Type: text/plain", `Authorization: ${authorization}`],
  });
  const wrong = JSON.stringify({ model: "unknown", messages: [], temperature: 9 });
  const unknown = JSON.stringify({ model: "unknown", messages: user("hi") });
  for (const [body, how, status, code, param = null] of [
    [large, { ...as(""), line: "POST /v1/x" }, 404, "unknown_url"],
    [large, { ...as(""), line: "PUT /v1/chat/completions" }, 405, "method_not_allowed"],
    [large, as("Basic x"), 401, "missing_api_key"],
    [large, as("Bearer sk-wrong"), 401, "invalid_api_key"],
    [large, as("Bearer sk-full"), 429, "rate_limit_exceeded"],
    [large, as(`Bearer ${KEY}`), 415, "unsupported_media_type"],
    [large, {}, 413, "request_too_large"],
    ["x", {}, 400, "invalid_json"],
    [wrong, {}, 400, "invalid_value", "messages"],
    [unknown, {}, 404, "model_not_found", "model"],
  ] as const)
    assertRefusal(await post(gw, body, how), { status, code, param });
});
