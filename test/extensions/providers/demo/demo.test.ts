// The demo model through the gateway: everything that a client can ask a model for, answered
// offline, the same way every time. What it calls tools with is checked against their schemas by a
// small checker of this file's own.

import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { createDemoTransport } from "../../../../src/extensions/providers/demo/transport.ts";
import { Cancel } from "../../../../src/core/http/cancel.ts";
import {
  assemble,
  demo,
  readStream,
  startGateway,
  user,
  type Chunk,
} from "../../../support/gateway.ts";
import { within } from "../../../support/wait.ts";

type Json = Record<string, unknown>;

interface Usage {
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
  prompt_cache_hit_tokens: number;
  prompt_cache_miss_tokens: number;
  prompt_tokens_details: { cached_tokens: number };
  completion_tokens_details: { reasoning_tokens: number };
}

interface TokenLogprob {
  token: string;
  logprob: number;
  bytes: number[];
  top_logprobs: { token: string; logprob: number; bytes: number[] }[];
}

interface Call {
  id: string;
  type: string;
  function: { name: string; arguments: string };
}

interface Completion {
  id: string;
  model: string;
  choices: {
    index: number;
    message: {
      role: string;
      content: string | null;
      reasoning_content?: string;
      tool_calls?: Call[];
    };
    logprobs: { content: TokenLogprob[] } | null;
    finish_reason: string;
  }[];
  usage: Usage;
}

const AUTH = { authorization: "Bearer sk-demo" };
const QUESTION = "What is the capital of Norway?";
const ASK = { model: "demo-chat", messages: user(QUESTION) };
const THINK = { model: "demo-reasoner", messages: user(QUESTION), thinking: { type: "enabled" } };

async function bench(t: TestContext) {
  const gw = await startGateway(t, demo());
  async function whole(body: object) {
    const res = await gw.chat({ ...ASK, ...body }, AUTH);
    const text = await res.text();
    assert.equal(res.status, 200, text);
    const json = JSON.parse(text) as Completion;
    assert.equal(json.choices.length, 1);
    return { json, choice: json.choices[0]!, message: json.choices[0]!.message, usage: json.usage };
  }
  async function streamed(body: object) {
    const read = await readStream(
      await gw.chat(
        { ...ASK, stream: true, stream_options: { include_usage: true }, ...body },
        AUTH,
      ),
    );
    assert.ok(read.done, read.text);
    const usage = read.chunks.at(-1)?.usage as Usage;
    return { chunks: read.chunks, usage, ...assemble(read.chunks) };
  }
  return { gw, whole, streamed };
}

/** What the counts must obey, whatever they are. */
function assertUsage(usage: Usage): void {
  assert.equal(usage.total_tokens, usage.prompt_tokens + usage.completion_tokens);
  assert.equal(usage.prompt_tokens, usage.prompt_cache_hit_tokens + usage.prompt_cache_miss_tokens);
  assert.equal(usage.prompt_tokens_details.cached_tokens, usage.prompt_cache_hit_tokens);
  assert.ok(usage.completion_tokens_details.reasoning_tokens <= usage.completion_tokens);
  for (const count of [usage.prompt_tokens, usage.completion_tokens, usage.prompt_cache_hit_tokens])
    assert.ok(Number.isInteger(count) && count >= 0);
}

const deltas = (chunks: readonly Chunk[], field: string) =>
  chunks.flatMap(({ choices }) => choices).filter(({ delta }) => delta[field]);
const tool = (parameters: unknown, name = "f") => ({
  type: "function",
  function: { name, description: "A tool", parameters },
});
const CLOCK = tool(
  { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
  "get_time",
);
const MAIL = tool(
  { type: "object", properties: { to: { type: "string", format: "email" } }, required: ["to"] },
  "send_mail",
);

describe("text", () => {
  it("is about the question, and the same every time", async (t) => {
    const { whole } = await bench(t);
    const [first, second, other] = [
      await whole({}),
      await whole({}),
      await whole({ messages: user("And of Sweden?") }),
    ];
    assert.ok(first.message.content?.includes(QUESTION), first.message.content ?? "");
    assert.deepEqual(second.choice, first.choice);
    assert.notEqual(other.message.content, first.message.content);
    assert.notEqual(first.json.id, second.json.id, "the same reply, but another completion");
    assert.equal(first.choice.finish_reason, "stop");
    assert.equal(first.message.tool_calls, undefined);
    assert.equal(first.choice.logprobs, null);
  });

  it("is the same on another gateway", async (t) => {
    const [a, b] = [await bench(t), await bench(t)];
    assert.deepEqual((await a.whole({})).choice, (await b.whole({})).choice);
  });

  it("answers the last question of a conversation, given as text or as parts", async (t) => {
    const { whole } = await bench(t);
    const messages = [
      { role: "system", content: "Be brief." },
      ...user("First."),
      { role: "assistant", content: "Yes." },
    ];
    const asText = await whole({ messages: [...messages, ...user("Second one?")] });
    const asParts = await whole({
      messages: [
        ...messages,
        {
          role: "user",
          content: [
            { type: "text", text: "Second " },
            { type: "text", text: "one?" },
          ],
        },
      ],
    });
    assert.match(asText.message.content ?? "", /Second one\?/);
    assert.deepEqual(asParts.choice, asText.choice);
  });

  for (const question of [
    "",
    " ",
    "😀".repeat(200),
    `${"x".repeat(119)}😀`,
    "line\none\r\ntwo",
    "\u0000",
    "“quoted”",
    "x".repeat(100_000),
  ]) {
    it(`is well-formed for ${JSON.stringify(question).slice(0, 30)}`, async (t) => {
      const { whole, streamed } = await bench(t);
      const { message } = await whole({ messages: user(question) });
      assert.ok((message.content ?? "").length > 0);
      assert.doesNotMatch(message.content ?? "", /\p{Surrogate}/u, "half a character");
      assert.equal(
        (await streamed({ messages: user(question) })).message["content"],
        message.content,
      );
    });
  }

  it("aliases lead to the one that is cheap and the one that thinks", async (t) => {
    const { whole } = await bench(t);
    assert.equal((await whole({ model: "auto/chat" })).json.model, "demo-chat");
    assert.equal((await whole({ model: "auto/reasoning" })).json.model, "demo-reasoner");
  });
});

describe("a stream equals the whole reply", () => {
  const table: [string, object][] = [
    ["text", {}],
    ["thinking", THINK],
    ["a tool call", { tools: [CLOCK], tool_choice: "auto" }],
    ["a thoughtful tool call", { ...THINK, tools: [CLOCK], tool_choice: "auto" }],
    ["JSON", { response_format: { type: "json_object" } }],
    ["logprobs", { logprobs: true, top_logprobs: 3 }],
    ["stop", { stop: ["network"] }],
    ["a length", { max_tokens: 5 }],
    ["a length in the middle of thinking", { ...THINK, max_tokens: 5 }],
    [
      "a length in the middle of a tool call",
      { tools: [CLOCK], tool_choice: "auto", max_tokens: 2 },
    ],
  ];
  for (const [name, body] of table) {
    it(name, async (t) => {
      const { whole, streamed } = await bench(t);
      const one = await whole(body);
      const other = await streamed(body);
      const { content, ...rest } = other.message;
      assert.deepEqual(
        { ...rest, content: content ?? null },
        { ...one.message, content: one.message.content || (content ?? null) },
      );
      assert.equal(content ?? "", one.message.content ?? "");
      assert.equal(other.finish_reason, one.choice.finish_reason);
      assert.deepEqual(other.logprobs, one.choice.logprobs?.content ?? []);
      assert.deepEqual(
        [other.usage.prompt_tokens, other.usage.completion_tokens],
        [one.usage.prompt_tokens, one.usage.completion_tokens],
      );
    });
  }

  it("comes in many pieces", async (t) => {
    const { streamed } = await bench(t);
    const { chunks } = await streamed({});
    assert.ok(deltas(chunks, "content").length > 20);
    assert.deepEqual(
      new Set(chunks.map(({ id, model, object }) => `${id} ${model} ${object}`)).size,
      1,
    );
  });
});

describe("abort", () => {
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

  it("before the request: it is rejected with the signal's reason", async () => {
    const cancel = new Cancel();
    cancel.abort(reason);
    await assert.rejects(send(cancel, false), reason);
  });

  it("in a pause of a stream: the body throws the signal's reason", async () => {
    const abort = new Cancel();
    const { body } = await send(abort, true);
    const reading = body![Symbol.asyncIterator]();
    assert.match(Buffer.from((await reading.next()).value).toString(), /"content":"You"/);
    const next = reading.next();
    abort.abort(reason);
    await within(assert.rejects(next, reason), "the end of the pause");
  });

  it("a whole reply is not paced", async () => {
    const { body } = await send(new Cancel(), false);
    const { value } = await within(body![Symbol.asyncIterator]().next(), "the reply");
    assert.match(Buffer.from(value).toString(), /"finish_reason":"stop"/);
  });
});

describe("thinking", () => {
  it("on: thoughts, then the answer", async (t) => {
    const { whole, streamed } = await bench(t);
    const { message, usage } = await whole(THINK);
    assert.match(message.reasoning_content ?? "", /Norway/);
    assert.match(message.content ?? "", /Norway/);
    assert.ok(usage.completion_tokens_details.reasoning_tokens > 0);
    const { chunks } = await streamed(THINK);
    const order = chunks
      .flatMap(({ choices }) => choices)
      .flatMap(({ delta }) => {
        if (delta["reasoning_content"]) return "r";
        return delta["content"] ? "c" : [];
      });
    assert.match(order.join(""), /^r+c+$/);
  });

  it("off: the same answer without thoughts", async (t) => {
    const { whole } = await bench(t);
    const on = await whole(THINK);
    for (const thinking of [undefined, { type: "disabled" }]) {
      const { message, usage } = await whole({ ...THINK, thinking });
      assert.ok(!("reasoning_content" in message));
      assert.equal(message.content, on.message.content);
      assert.equal(usage.completion_tokens_details.reasoning_tokens, 0);
    }
  });

  it("has no effect on the model that does not think", async (t) => {
    const { whole } = await bench(t);
    const { message, usage } = await whole({ thinking: { type: "enabled" } });
    assert.ok(!("reasoning_content" in message));
    assert.equal(usage.completion_tokens_details.reasoning_tokens, 0);
  });
});

describe("tool calls", () => {
  const called = (choice: Completion["choices"][number]) =>
    choice.message.tool_calls?.map((call) => call.function.name);

  for (const [what, body, expected] of [
    ["nothing is said", {}, undefined],
    ["none", { tool_choice: "none" }, undefined],
    ["auto", { tool_choice: "auto" }, ["get_time"]],
    ["required", { tool_choice: "required" }, ["get_time"]],
    [
      "the second one's name",
      { tool_choice: { type: "function", function: { name: "send_mail" } } },
      ["send_mail"],
    ],
  ] as const) {
    it(`when ${what}: ${expected ?? "no call"}`, async (t) => {
      const { whole } = await bench(t);
      const { choice, message, usage } = await whole({ tools: [CLOCK, MAIL], ...body });
      assert.deepEqual(called(choice), expected);
      assert.equal(choice.finish_reason, expected ? "tool_calls" : "stop");
      if (!expected) return assert.match(message.content ?? "", /Norway/);
      assert.equal(message.content, null);
      assert.equal(choice.logprobs, null);
      const [call] = message.tool_calls ?? [];
      assert.match(call?.id ?? "", /^call_[0-9a-f]{24}$/);
      assert.equal(call?.type, "function");
      assert.equal(typeof JSON.parse(call?.function.arguments ?? ""), "object");
      assert.ok(usage.completion_tokens > 0);
    });
  }

  it("the same conversation gets the same call, another one another id", async (t) => {
    const { whole } = await bench(t);
    const body = { tools: [CLOCK], tool_choice: "auto" };
    const [first, second, other] = [
      await whole(body),
      await whole(body),
      await whole({ ...body, messages: user("And in Rome?") }),
    ];
    assert.deepEqual(second.choice, first.choice);
    assert.notEqual(other.message.tool_calls?.[0]?.id, first.message.tool_calls?.[0]?.id);
  });

  it("a tool's result is answered in text; if a call is required, by another call", async (t) => {
    const { whole } = await bench(t);
    const first = await whole({ tools: [CLOCK], tool_choice: "auto" });
    const [call] = first.message.tool_calls ?? [];
    const messages = [
      ...user(QUESTION),
      first.message,
      { role: "tool", tool_call_id: call?.id, content: "It is 14:05." },
    ];
    const second = await whole({ messages, tools: [CLOCK], tool_choice: "auto" });
    assert.equal(second.message.tool_calls, undefined);
    assert.match(second.message.content ?? "", /It is 14:05\./);
    assert.equal(second.choice.finish_reason, "stop");
    const again = await whole({ messages, tools: [CLOCK], tool_choice: "required" });
    assert.deepEqual(called(again.choice), ["get_time"]);
    assert.notEqual(again.message.tool_calls?.[0]?.id, call?.id);
    const asked = await whole({
      messages: [...messages, ...user("And in Rome?")],
      tools: [CLOCK],
      tool_choice: "auto",
    });
    assert.deepEqual(called(asked.choice), ["get_time"], "a new question is a new turn");
  });
});

// ---- schemas

const FORMATS: Readonly<Record<string, RegExp>> = {
  "date-time": /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/,
  date: /^\d{4}-\d\d-\d\d$/,
  email: /^[^@\s]+@[^@\s]+\.[^@\s]+$/,
  uri: /^[a-z][a-z0-9+.-]*:\S+$/,
  uuid: /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/,
};

const isObject = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const same = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);

/** The keywords of which the checker below makes something. */
const KNOWN = new Set([
  "$ref",
  "$defs",
  "definitions",
  "title",
  "description",
  "default",
  "type",
  "enum",
  "const",
  "anyOf",
  "oneOf",
  "allOf",
  "properties",
  "required",
  "additionalProperties",
  "items",
  "minItems",
  "maxItems",
  "minimum",
  "maximum",
  "exclusiveMinimum",
  "format",
]);

/** A value that is held to a schema, and what is found out about it. */
interface Judging {
  readonly schema: Json;
  readonly value: unknown;
  /** Notes that a rule is broken, unless it is kept. */
  rule(ok: boolean, what: string): void;
  /** The same for a rule about a number, if the schema has it. */
  limit(keyword: string, ok: (bound: number) => boolean): void;
  /** Judges a part of the value by another schema. */
  below(schema: unknown, part: unknown, step: string): void;
  /** Whether the value fits another schema. */
  fits(schema: unknown): boolean;
}

const listIn = (schema: Json, keyword: string): unknown[] =>
  Array.isArray(schema[keyword]) ? schema[keyword] : [];

function judgeType({ schema, value, rule }: Judging): void {
  const types = schema["type"] === undefined ? [] : [schema["type"]].flat();
  const is: Record<string, boolean> = {
    object: isObject(value),
    array: Array.isArray(value),
    string: typeof value === "string",
    number: typeof value === "number",
    integer: Number.isInteger(value),
    boolean: typeof value === "boolean",
    null: value === null,
  };
  if (types.length > 0)
    rule(
      types.some((type) => is[String(type)]),
      `must be ${types.join(" or ")}`,
    );
  if ("enum" in schema)
    rule(
      listIn(schema, "enum").some((each) => same(each, value)),
      `must be one of ${JSON.stringify(schema["enum"])}`,
    );
  if ("const" in schema)
    rule(same(schema["const"], value), `must be ${JSON.stringify(schema["const"])}`);
}

function judgeCombinations({ schema, value, rule, below, fits }: Judging): void {
  if ("anyOf" in schema) rule(listIn(schema, "anyOf").some(fits), "must fit one of anyOf");
  if ("oneOf" in schema)
    rule(listIn(schema, "oneOf").filter(fits).length === 1, "must fit exactly one of oneOf");
  for (const each of listIn(schema, "allOf")) below(each, value, "");
}

function judgeObject({ schema, value, rule, below }: Judging): void {
  if (!isObject(value)) return;
  const properties = isObject(schema["properties"]) ? schema["properties"] : {};
  for (const name of listIn(schema, "required"))
    rule(Object.hasOwn(value, String(name)), `must have ${String(name)}`);
  for (const [name, inner] of Object.entries(value))
    below(
      Object.hasOwn(properties, name) ? properties[name] : schema["additionalProperties"],
      inner,
      `.${name}`,
    );
}

function judgeRest({ schema, value, rule, limit, below }: Judging): void {
  if (Array.isArray(value)) {
    value.forEach((item, index) => {
      below(schema["items"], item, `[${index}]`);
    });
    limit("minItems", (bound) => value.length >= bound);
    limit("maxItems", (bound) => value.length <= bound);
  }
  if (typeof value === "number") {
    limit("minimum", (bound) => value >= bound);
    limit("maximum", (bound) => value <= bound);
    limit("exclusiveMinimum", (bound) => value > bound);
  }
  if (typeof value === "string") {
    const format = FORMATS[String(schema["format"])];
    if (format) rule(format.test(value), `must be a ${String(schema["format"])}`);
  }
}

/**
 * What is wrong with `value` by `schema`, as one line each: the parts of JSON Schema that the table
 * below uses, and no other.
 */
function violations(schema: unknown, value: unknown, root: Json, path = "$"): string[] {
  if (schema === true || schema === undefined) return [];
  if (!isObject(schema)) return [`${path}: nothing is allowed here`];
  for (const keyword of Object.keys(schema))
    assert.ok(KNOWN.has(keyword), `the test's own checker does not know ${keyword}`);
  const found: string[] = [];
  const rule = (ok: boolean, what: string) => {
    if (!ok) found.push(`${path}: ${what}, but is ${JSON.stringify(value)}`);
  };
  const judging: Judging = {
    schema,
    value,
    rule,
    limit(keyword, ok) {
      const bound = schema[keyword];
      if (typeof bound === "number") rule(ok(bound), `${keyword} is ${bound}`);
    },
    below: (inner, part, step) => found.push(...violations(inner, part, root, `${path}${step}`)),
    fits: (inner) => violations(inner, value, root, path).length === 0,
  };
  if (typeof schema["$ref"] === "string") {
    const steps = schema["$ref"].split("/").slice(1);
    const target = steps.reduce<unknown>((at, step) => (isObject(at) ? at[step] : undefined), root);
    judging.below(target, value, "");
  }
  judgeType(judging);
  judgeCombinations(judging);
  judgeObject(judging);
  judgeRest(judging);
  return found;
}

const closed = (properties: Json, more: object = {}) => ({
  type: "object",
  properties,
  required: Object.keys(properties),
  additionalProperties: false,
  ...more,
});

const SCHEMAS: Record<string, Json> = {
  "no parameters": { type: "object", properties: {} },
  "a city": closed({ city: { type: "string", description: "Where" } }),
  "every type": closed({
    s: { type: "string" },
    i: { type: "integer" },
    n: { type: "number" },
    b: { type: "boolean" },
    z: { type: "null" },
    a: { type: "array" },
    o: { type: "object" },
  }),
  "optional properties only": {
    type: "object",
    properties: { a: { type: "string" }, b: { type: "integer" } },
    additionalProperties: false,
  },
  "required next to optional": {
    type: "object",
    properties: { a: { type: "string" }, b: { type: "integer" } },
    required: ["b"],
    additionalProperties: false,
  },
  "a required property that is not described": { type: "object", properties: {}, required: ["a"] },
  enums: closed({
    unit: { type: "string", enum: ["celsius", "fahrenheit"] },
    level: { type: "integer", enum: [3, 5] },
    any: { enum: [null, 1, "x", [1]] },
  }),
  const: closed({ kind: { const: "circle" }, version: { const: 2 } }),
  "types in a list": closed({
    a: { type: ["string", "null"] },
    b: { type: ["null", "integer"] },
    c: { type: ["null"] },
  }),
  "anyOf with null": closed({
    a: { anyOf: [{ type: "null" }, { type: "integer", minimum: 5 }] },
    b: { anyOf: [{ type: "string" }, { type: "null" }] },
  }),
  oneOf: closed({
    shape: {
      oneOf: [
        closed({ kind: { const: "circle" }, radius: { type: "number" } }),
        closed({ kind: { const: "square" }, side: { type: "number" } }),
      ],
    },
  }),
  "allOf around a $ref": {
    ...closed({ a: { description: "One", allOf: [{ $ref: "#/$defs/A" }] } }),
    $defs: { A: closed({ b: { type: "integer" } }) },
  },
  "properties beside anyOf": closed(
    { a: { type: "string" } },
    { anyOf: [{ required: ["a"] }, { required: ["b"] }] },
  ),
  "$ref to $defs": {
    ...closed({ from: { $ref: "#/$defs/City" }, to: { $ref: "#/$defs/City" } }),
    $defs: { City: closed({ name: { type: "string" }, zip: { type: "string" } }) },
  },
  "$ref to definitions": {
    ...closed({ c: { $ref: "#/definitions/Color" } }),
    definitions: { Color: { type: "string", enum: ["red", "green"] } },
  },
  "$ref through $ref": {
    ...closed({ a: { $ref: "#/$defs/A" } }),
    $defs: { A: { $ref: "#/$defs/B" }, B: { type: "integer", minimum: 7 } },
  },
  "$ref into properties": closed({
    a: { type: "integer", maximum: -3 },
    b: { $ref: "#/properties/a" },
  }),
  "nested arrays": closed({
    grid: {
      type: "array",
      items: { type: "array", items: { type: "integer", minimum: 2 }, minItems: 3 },
      minItems: 2,
    },
  }),
  "an array of objects": closed({
    people: {
      type: "array",
      minItems: 2,
      items: closed({ name: { type: "string" }, age: { type: "integer", minimum: 18 } }),
    },
  }),
  "an array of just two": closed({
    two: { type: "array", items: { type: "string" }, minItems: 2, maxItems: 2 },
  }),
  "items without a type": closed({
    a: { items: { type: "integer" } },
    b: { properties: { c: { type: "integer" } }, required: ["c"] },
  }),
  "bounds of integers": closed({
    a: { type: "integer", minimum: 5 },
    b: { type: "integer", maximum: -5 },
    c: { type: "integer", minimum: 5, maximum: 5 },
    d: { type: "integer", minimum: -10, maximum: -2 },
    e: { type: "integer", minimum: 0 },
    f: { type: "integer", exclusiveMinimum: 0 },
  }),
  "bounds of numbers": closed({
    a: { type: "number", minimum: 0, maximum: 1 },
    b: { type: "number", minimum: 0.2, maximum: 0.3 },
    c: { type: "number", minimum: 1.1 },
    d: { type: "number", minimum: -90, maximum: 90 },
    e: { type: "number", maximum: -1e6 },
    f: { type: "number", exclusiveMinimum: 0 },
  }),
  formats: closed(
    Object.fromEntries(Object.keys(FORMATS).map((format) => [format, { type: "string", format }])),
  ),
  defaults: closed({
    a: { type: "string", default: "x" },
    b: { type: "boolean", default: false },
    c: { anyOf: [{ type: "string" }, { type: "null" }], default: null },
  }),
  "names that every object has": closed({
    constructor: { type: "integer" },
    toString: { type: "string" },
    hasOwnProperty: { type: "boolean" },
  }),
  "a linked list": {
    ...closed({ linked_list: { $ref: "#/$defs/node" } }),
    $defs: {
      node: closed({
        value: { type: "number" },
        next: { anyOf: [{ $ref: "#/$defs/node" }, { type: "null" }] },
      }),
    },
  },
  "a tree": closed({
    label: { type: "string" },
    children: { type: "array", items: { $ref: "#" } },
  }),
  "a tree of pages": {
    ...closed({
      type: { type: "string", enum: ["div", "button"] },
      label: { type: "string" },
      children: { type: "array", items: { $ref: "#" } },
      attributes: {
        type: "array",
        items: closed({ name: { type: "string" }, value: { type: "string" } }),
      },
    }),
  },
  "deep objects": closed({
    a: closed({
      b: closed({
        c: closed({
          d: closed({
            e: { type: "array", items: closed({ f: { type: "integer" } }), minItems: 1 },
          }),
        }),
      }),
    }),
  }),
};

describe("what a tool is called with satisfies its schema", () => {
  for (const [name, parameters] of Object.entries(SCHEMAS)) {
    it(name, async (t) => {
      const { whole } = await bench(t);
      for (const question of [QUESTION, "", "7"]) {
        const { message } = await whole({
          messages: user(question),
          tools: [tool(parameters)],
          tool_choice: "required",
        });
        const text = message.tool_calls?.[0]?.function.arguments ?? "";
        const value: unknown = JSON.parse(text);
        assert.ok(isObject(value), `the arguments of a tool are an object: ${text}`);
        assert.deepEqual(violations(parameters, value, parameters), []);
      }
    });
  }

  for (const [what, fields] of [
    ["no schema", {}],
    ["an empty schema", { parameters: {} }],
    ["a schema that says nothing of types", { parameters: { title: "F" } }],
  ] as const) {
    it(`with ${what} it is an object all the same`, async (t) => {
      const { whole } = await bench(t);
      const { message } = await whole({
        tools: [{ type: "function", function: { name: "f", ...fields } }],
        tool_choice: "required",
      });
      assert.equal(message.tool_calls?.[0]?.function.arguments, "{}");
    });
  }

  it("strings say something: the question, or what the name asks for", async (t) => {
    const { whole } = await bench(t);
    const { message } = await whole({
      tools: [tool(closed({ query: { type: "string" }, city: { type: "string" } }))],
      tool_choice: "required",
    });
    assert.deepEqual(JSON.parse(message.tool_calls?.[0]?.function.arguments ?? ""), {
      query: QUESTION,
      city: "Oslo",
    });
  });
});

describe("JSON replies", () => {
  it("json_object is an object", async (t) => {
    const { whole } = await bench(t);
    const { message, choice } = await whole({ response_format: { type: "json_object" } });
    const value: unknown = JSON.parse(message.content ?? "");
    assert.ok(isObject(value) && JSON.stringify(value).includes(QUESTION));
    assert.equal(choice.finish_reason, "stop");
  });

  for (const [name, schema] of Object.entries(SCHEMAS)) {
    it(`json_schema: ${name}`, async (t) => {
      const { whole } = await bench(t);
      const { message } = await whole({
        response_format: { type: "json_schema", json_schema: { name: "x", schema, strict: true } },
      });
      assert.deepEqual(violations(schema, JSON.parse(message.content ?? ""), schema), []);
    });
  }

  it("json_schema: a list as the whole reply", async (t) => {
    const { whole } = await bench(t);
    const schema = { type: "array", items: { type: "integer", minimum: 3 }, minItems: 2 };
    const { message } = await whole({
      response_format: { type: "json_schema", json_schema: { name: "x", schema } },
    });
    assert.deepEqual(violations(schema, JSON.parse(message.content ?? ""), schema), []);
  });

  it("json_schema without a schema is some JSON", async (t) => {
    const { whole } = await bench(t);
    const { message } = await whole({
      response_format: { type: "json_schema", json_schema: { name: "x" } },
    });
    assert.doesNotThrow(() => JSON.parse(message.content ?? "") as unknown);
  });

  it("after a tool's result it is still JSON", async (t) => {
    const { whole } = await bench(t);
    const tool_calls = [
      { id: "c", type: "function", function: { name: "get_time", arguments: "{}" } },
    ];
    const messages = [
      ...user("hi"),
      { role: "assistant", content: null, tool_calls },
      { role: "tool", tool_call_id: "c", content: "14:05" },
    ];
    const { message } = await whole({
      messages,
      tools: [CLOCK],
      tool_choice: "auto",
      response_format: { type: "json_object" },
    });
    assert.ok(isObject(JSON.parse(message.content ?? "")));
  });
});

describe("logprobs", () => {
  const bytes = (text: string) => [...Buffer.from(text)];
  for (const top of [0, 1, 20]) {
    it(`with top_logprobs ${top}`, async (t) => {
      const { whole } = await bench(t);
      const { choice, message, usage } = await whole({
        messages: user("Grüße, 😀!"),
        logprobs: true,
        top_logprobs: top,
      });
      const tokens = choice.logprobs?.content ?? [];
      assert.equal(tokens.map(({ token }) => token).join(""), message.content);
      assert.equal(tokens.length, usage.completion_tokens);
      for (const token of tokens) {
        assert.deepEqual(token.bytes, bytes(token.token));
        assert.ok(token.logprob < 0 && token.logprob > -10);
        assert.equal(token.top_logprobs.length, top);
        if (top > 0)
          assert.deepEqual(token.top_logprobs[0], {
            token: token.token,
            logprob: token.logprob,
            bytes: token.bytes,
          });
        assert.equal(
          new Set(token.top_logprobs.map((each) => each.token)).size,
          top,
          "the runners-up are other tokens",
        );
        for (const [rank, each] of token.top_logprobs.entries()) {
          assert.deepEqual(each.bytes, bytes(each.token));
          assert.ok(
            rank === 0 || each.logprob < token.top_logprobs[rank - 1]!.logprob,
            "the most likely first",
          );
        }
      }
    });
  }

  it("top_logprobs left out is an empty list each; logprobs left out is null", async (t) => {
    const { whole, streamed } = await bench(t);
    const asked = await whole({ logprobs: true });
    assert.ok(
      asked.choice.logprobs!.content.every(({ top_logprobs }) => top_logprobs.length === 0),
    );
    assert.equal((await whole({ top_logprobs: 3 })).choice.logprobs, null);
    const { chunks } = await streamed({});
    assert.ok(chunks.flatMap(({ choices }) => choices).every(({ logprobs }) => logprobs === null));
  });

  it("in a stream each token brings its own", async (t) => {
    const { streamed } = await bench(t);
    const { chunks } = await streamed({ logprobs: true, top_logprobs: 2 });
    for (const { delta, logprobs } of deltas(chunks, "content")) {
      assert.deepEqual(
        logprobs.content.map((each: TokenLogprob) => each.token),
        [delta["content"]],
      );
    }
  });
});

describe("stop", () => {
  it("the text ends before the first of the sequences", async (t) => {
    const { whole } = await bench(t);
    const full = (await whole({})).message.content ?? "";
    const at = (text: string) => full.slice(0, full.indexOf(text));
    assert.ok(full.includes("demo model") && full.indexOf("offline") === -1);
    for (const [stop, expected] of [
      ["demo model", at("demo model")],
      [["same answer", "demo model"], at("demo model")],
      [["offline"], full],
      [[], full],
      ["You said", ""],
      ["\n\n", at("\n\n")],
    ] as const) {
      const { message, choice, usage } = await whole({ stop });
      assert.equal(message.content, expected, JSON.stringify(stop));
      assert.equal(choice.finish_reason, "stop");
      assertUsage(usage);
      assert.equal(usage.completion_tokens > 0, expected !== "");
    }
  });
});

describe("max_tokens", () => {
  it("cuts the reply there and says so, whole and streamed", async (t) => {
    const { whole, streamed } = await bench(t);
    const full = await whole({});
    const length = full.usage.completion_tokens;
    assert.ok(length > 20);
    for (const max_tokens of [1, 2, 10, length - 1]) {
      const one = await whole({ max_tokens });
      const other = await streamed({ max_tokens });
      for (const { usage } of [one, other]) assert.equal(usage.completion_tokens, max_tokens);
      assert.deepEqual([one.choice.finish_reason, other.finish_reason], ["length", "length"]);
      assert.ok(full.message.content?.startsWith(one.message.content ?? "-"));
      assert.equal(other.message["content"], one.message.content);
    }
    for (const max_tokens of [length, length + 1, 4_096]) {
      const one = await whole({ max_tokens });
      assert.deepEqual(
        [one.choice.finish_reason, one.message.content],
        ["stop", full.message.content],
      );
    }
  });

  it("counts thinking", async (t) => {
    const { whole } = await bench(t);
    const full = await whole(THINK);
    const thoughts = full.usage.completion_tokens_details.reasoning_tokens;
    const inside = await whole({ ...THINK, max_tokens: 3 });
    assert.deepEqual(
      [inside.choice.finish_reason, inside.message.content, inside.usage.completion_tokens],
      ["length", "", 3],
    );
    assert.ok(full.message.reasoning_content?.startsWith(inside.message.reasoning_content ?? "-"));
    const at = await whole({ ...THINK, max_tokens: thoughts });
    assert.deepEqual(
      [at.choice.finish_reason, at.message.content, at.message.reasoning_content],
      ["length", "", full.message.reasoning_content],
    );
    const past = await whole({ ...THINK, max_tokens: thoughts + 1 });
    assert.equal(past.choice.finish_reason, "length");
    assert.ok((past.message.content ?? "").length > 0);
  });

  it("cuts a tool call in its arguments", async (t) => {
    const { whole } = await bench(t);
    const body = { tools: [CLOCK], tool_choice: "required" };
    const full = (await whole(body)).message.tool_calls?.[0]?.function.arguments ?? "";
    const { choice, message, usage } = await whole({ ...body, max_tokens: 2 });
    assert.equal(choice.finish_reason, "length");
    assert.equal(usage.completion_tokens, 2);
    const cut = message.tool_calls?.[0]?.function.arguments ?? "";
    assert.ok(full.startsWith(cut) && cut.length < full.length && cut !== "", cut);
  });
});

describe("token counts", () => {
  const table: [string, object][] = [
    ["text", {}],
    ["thinking", THINK],
    ["a tool call", { tools: [CLOCK], tool_choice: "required" }],
    ["a thoughtful tool call", { ...THINK, tools: [CLOCK], tool_choice: "required" }],
    ["JSON", { response_format: { type: "json_object" } }],
  ];
  for (const [name, body] of table) {
    it(`add up, and are what was streamed: ${name}`, async (t) => {
      const { whole, streamed } = await bench(t);
      const { usage } = await whole(body);
      assertUsage(usage);
      const other = await streamed(body);
      assertUsage(other.usage);
      const thoughts = deltas(other.chunks, "reasoning_content").length;
      const args = deltas(other.chunks, "tool_calls").filter(
        ({ delta }) => delta["tool_calls"][0].function.arguments !== "",
      ).length;
      assert.equal(usage.completion_tokens_details.reasoning_tokens, thoughts);
      assert.equal(
        usage.completion_tokens,
        thoughts + args + deltas(other.chunks, "content").length,
      );
    });
  }

  it("a longer prompt has more tokens, and so have tools", async (t) => {
    const { whole } = await bench(t);
    const count = async (body: object) => (await whole(body)).usage.prompt_tokens;
    const bare = await count({});
    assert.ok((await count({ messages: user(`${QUESTION} And of Sweden?`) })) > bare);
    assert.ok((await count({ messages: [...user("Hello."), ...user(QUESTION)] })) > bare);
    assert.ok((await count({ tools: [CLOCK] })) > bare);
  });

  it("what a conversation repeats is cached: all before its last question, and nothing while there is only one", async (t) => {
    const { whole, streamed } = await bench(t);
    const usageOf = async (body: object) => (await whole(body)).usage;
    const first = await whole({});
    const so = [...user(QUESTION), { role: "assistant", content: first.message.content }];
    const longer = { messages: [...so, ...user("And of Sweden?")] };
    for (const body of [
      {},
      { messages: [{ role: "system", content: "Be brief." }, ...user(QUESTION)] },
      { messages: so },
      { tools: [CLOCK] },
    ])
      assert.equal((await usageOf(body)).prompt_cache_hit_tokens, 0);
    for (const more of [{}, { tools: [CLOCK] }, { model: "demo-reasoner" }]) {
      const usage = await usageOf({ ...longer, ...more });
      assert.equal(
        usage.prompt_cache_hit_tokens,
        (await usageOf({ ...more, messages: so })).prompt_tokens,
      );
      assert.ok(usage.prompt_cache_miss_tokens > 0);
      assertUsage(usage);
      assert.deepEqual(await usageOf({ ...longer, ...more }), usage, "the same again");
      assert.deepEqual((await streamed({ ...longer, ...more })).usage, usage);
    }
  });
});

// ---- schemas that were made to hurt, each within the bounds of a schema: 10,000 values, 262,144
// characters

describe("hostile schemas", () => {
  const many = <T>(count: number, make: (index: number) => T): T[] =>
    Array.from({ length: count }, (_, index) => make(index));
  const numbered = (count: number, make: (index: number) => unknown) =>
    Object.fromEntries(many(count, (index) => [`p${index}`, make(index)]));
  const next = (index: number) => ({ $ref: `#/$defs/p${index + 1}` });
  const all = { $ref: "#/$defs/big" };
  const table: Record<string, Json> = {
    "refers to itself": { $ref: "#" },
    "refers to itself in a circle": {
      $ref: "#/$defs/a",
      $defs: { a: { $ref: "#/$defs/b" }, b: { $ref: "#/$defs/a" } },
    },
    "requires itself, twice": closed({ a: { $ref: "#" }, b: { $ref: "#" } }),
    "requires lists of itself": closed({
      a: { type: "array", items: { $ref: "#" }, minItems: 100 },
    }),
    "doubles with every reference": {
      ...closed({ a: next(-1) }),
      $defs: numbered(40, (index) => closed({ a: next(index), b: next(index) })),
    },
    "doubles with every choice": {
      ...next(-1),
      $defs: numbered(40, (index) => ({
        anyOf: [next(index), next(index)],
        oneOf: [next(index), next(index)],
      })),
    },
    "doubles with every part": {
      ...next(-1),
      $defs: numbered(40, (index) => ({ allOf: [next(index), next(index)] })),
    },
    "a long string": { type: "string", minLength: 1e15 },
    "a long list": { type: "array", minItems: 1e15, items: { type: "string" } },
    "long lists of long lists of long strings": {
      type: "array",
      minItems: 1e9,
      items: { type: "array", minItems: 1e9, items: { type: "string", minLength: 1e9 } },
    },
    "many long strings": closed(numbered(2_400, () => ({ type: "string", minLength: 1e9 }))),
    "a large constant, in all of a long list": {
      type: "array",
      minItems: 1_000,
      items: { const: "x".repeat(250_000) },
    },
    "a long name, for all of a long list": closed({
      ["x".repeat(100_000)]: {
        type: "array",
        minItems: 1_000,
        items: { type: "array", minItems: 1_000 },
      },
    }),
    "a large constant, often": {
      type: "array",
      minItems: 100,
      items: { type: "array", minItems: 100, items: all },
      $defs: { big: { const: "x".repeat(250_000) } },
    },
    "many parts with many properties": {
      allOf: many(3_000, () => all),
      $defs: { big: { type: "object", properties: numbered(3_000, () => true) } },
    },
    "many parts with much that is required": {
      allOf: many(3_000, () => all),
      $defs: { big: { type: "object", required: many(3_000, (index) => `p${index}`) } },
    },
    "many choices": { anyOf: many(4_900, () => ({ type: "null" })) },
    "a pattern that backtracks on nothing": { type: "string", pattern: "(?:a?|a?|a?){40}z" },
    "an empty enum": { enum: [] },
    "numbers out of this world": closed({
      a: { type: "integer", minimum: 1e308 },
      b: { type: "number", exclusiveMaximum: -1e308 },
    }),
    "bounds that contradict": closed({
      a: { type: "integer", minimum: 5, maximum: 3 },
      b: { type: "string", minLength: 5, maxLength: 1 },
      c: { type: "array", minItems: 2, maxItems: 1 },
    }),
    "keywords of the wrong type": {
      type: 5,
      properties: "x",
      required: { a: 1 },
      items: 1,
      prefixItems: "x",
      enum: {},
      allOf: 1,
      anyOf: "x",
      oneOf: null,
      $ref: 1,
      minLength: "x",
      minimum: {},
      examples: 1,
    },
    "keywords that cannot become text": {
      type: "object",
      required: [{ toString: 1, valueOf: 1 }],
      properties: { a: { type: "string", format: { toString: 1 } } },
    },
    "a format that cannot become text": { type: "string", format: { toString: 1, valueOf: 1 } },
    "references to nowhere": closed({
      a: { $ref: "#/$defs/%" },
      b: { $ref: "http://127.0.0.1/x" },
      c: { $ref: "#/__proto__/constructor" },
      d: { $ref: "" },
      e: { $ref: "#/a/b/c" },
    }),
  };

  /** The values in a value, itself among them. */
  const sizeOf = (value: unknown): number =>
    typeof value === "object" && value !== null
      ? Object.values(value).reduce<number>((sum, each) => sum + sizeOf(each), 1)
      : 1;

  for (const [name, schema] of Object.entries(table)) {
    it(`${name}: the answer is JSON, with so many values in it and no more`, async (t) => {
      const { whole } = await bench(t);
      const asTool = await whole({ tools: [tool(schema)], tool_choice: "required" });
      const asFormat = await whole({
        response_format: { type: "json_schema", json_schema: { name: "x", schema } },
      });
      for (const text of [
        asTool.message.tool_calls?.[0]?.function.arguments,
        asFormat.message.content,
      ]) {
        const size = sizeOf(JSON.parse(text ?? ""));
        assert.ok(size < 30_000, `${size} values`);
        assert.ok(text!.length < 6_000_000, `a text of ${text!.length} characters`);
      }
    });
  }
});
