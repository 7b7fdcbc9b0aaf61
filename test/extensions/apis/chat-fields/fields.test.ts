// The fields of OpenAI's chat completions beyond the contract: what is accepted or rejected on both
// sides of every bound, and what providers that take a field get.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { describe, it } from "node:test";
import { configFor, startGateway, user } from "../../../support/gateway.ts";
import { speak, startProvider } from "../../../support/provider.ts";
import type { Scope } from "../../../support/scope.ts";

type Json = Record<string, any>;

const hashOf = (name: string) => createHash("sha256").update(name).digest("hex").slice(0, 32);
const REQUEST = { model: "m", messages: user("hi") };
const declared = (name: string, more: object = {}) => ({ name, ...more });
const toolOf = (name: string, more: object = {}) => ({
  type: "function",
  function: declared(name, more),
});
const call = { id: "c", type: "function", function: { name: "f", arguments: "{}" } };

type Refusal = readonly [fields: object, param: string];

async function bench(t: Scope, over: object = {}) {
  const provider = await startProvider(t, speak("Hello."));
  const gateway = await startGateway(t, configFor(provider.url, ["m"], over));
  return {
    /** Sends a request that must succeed. Returns the provider's request. */
    async asked(fields: object): Promise<Json> {
      const answer = await gateway.chat({ ...REQUEST, ...fields });
      assert.equal(answer.status, 200, `${JSON.stringify(fields)}: ${await answer.text()}`);
      return provider.asked.at(-1)!.body;
    },
    /**
     * Sends requests that must be rejected before they reach a provider. Returns their messages.
     */
    async refusedAll(code: string, cases: readonly Refusal[]): Promise<string[]> {
      const messages: string[] = [];
      const before = provider.asked.length;
      for (const [fields, param] of cases) {
        const answer = await gateway.chat({ ...REQUEST, ...fields });
        const { error } = (await answer.json()) as Json;
        const about = JSON.stringify(fields).slice(0, 200);
        assert.deepEqual([answer.status, error.code, error.param], [400, code, param], about);
        messages.push(error.message);
      }
      assert.equal(provider.asked.length, before, "the provider was asked all the same");
      return messages;
    },
  };
}

const HINTS = ["prompt_cache_key", "prompt_cache_retention", "safety_identifier"];
const takes = ["logit_bias", "verbosity", ...HINTS, "name", "metadata", "store"];
const TAKES = { providers: { lab: { takes } } };
const TAKES_MARKS = { providers: { lab: { takes, cache_control: true } } };
const biases = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [String(index), 1]));

const marks = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`m${index}`, "x"]));

describe("fields that some providers take", () => {
  for (const [name, values] of Object.entries({
    logit_bias: [{ "50256": -100, "0": 100, "7": 0.5 }, biases(1_024)],
    verbosity: ["low", "medium", "high"],
    prompt_cache_key: ["k", "x".repeat(64), "\u{1F600}".repeat(64)],
    prompt_cache_retention: ["in_memory", "24h"],
    metadata: [{ a: "" }, { ["k".repeat(64)]: "v".repeat(512) }, marks(16)],
    store: [true, false],
  }))
    it(`${name} is sent to these vendors only`, async (t) => {
      const taking = await bench(t, TAKES);
      const other = await bench(t);
      for (const value of values) {
        assert.deepEqual((await taking.asked({ [name]: value }))[name], value);
        assert.ok(!Object.hasOwn(await other.asked({ [name]: value }), name));
      }
      const absent = await taking.asked({});
      assert.deepEqual(await taking.asked({ [name]: null }), absent, "null is absent");
    });

  it("a model overrides its provider's fields, and OpenAI's reasoning models get no logit_bias", async (t) => {
    const fields = { logit_bias: { "1": 1 }, verbosity: "low" };
    const { asked } = await bench(t, { ...TAKES, models: { m: { takes: ["verbosity"] } } });
    const body = await asked(fields);
    assert.deepEqual([body["logit_bias"], body["verbosity"]], [undefined, "low"]);
    for (const reasoning of [true, false]) {
      const provider = await startProvider(t, speak("Hello."));
      const shop = { vendor: "openai", base_url: provider.url, api_key: "k" };
      const settings = { providers: { shop }, models: { m: { provider: "shop", reasoning } } };
      const gateway = await startGateway(t, configFor(provider.url, [], settings));
      assert.equal((await gateway.chat({ ...REQUEST, ...fields })).status, 200);
      assert.equal(Object.hasOwn(provider.asked[0]!.body, "logit_bias"), !reasoning);
    }
  });

  it("safety_identifier is hashed, and sent as `user` to providers without such a field", async (t) => {
    const identified = { safety_identifier: "ada@example.com" };
    const taking = await bench(t, TAKES);
    const other = await bench(t);
    const [ada, bob] = [hashOf("ada@example.com"), hashOf("bob")];
    for (const [{ asked }, user, expected] of [
      [taking, undefined, [ada, undefined]],
      [taking, "bob", [ada, bob]],
      [other, undefined, [undefined, ada]],
      [other, "bob", [undefined, bob]],
    ] as const) {
      const body = await asked({ ...identified, user });
      assert.deepEqual([body["safety_identifier"], body["user"]], expected);
      assert.ok(!JSON.stringify(body).includes("ada@"));
    }
    assert.ok(!Object.hasOwn(await other.asked({ safety_identifier: "" }), "user"));
  });

  it("a wrong type, an invalid value, or a value beyond a bound: 400", async (t) => {
    const { refusedAll } = await bench(t, TAKES);
    const texts = ["verbosity", "prompt_cache_key", "prompt_cache_retention", "safety_identifier"];
    await refusedAll("invalid_type", [
      ...["x", 1, [1], true].map((value): Refusal => [{ logit_bias: value }, "logit_bias"]),
      ...texts.flatMap((name) => [1, [], {}].map((value): Refusal => [{ [name]: value }, name])),
      [{ logit_bias: { "1": "1" } }, "logit_bias.1"],
      ...["x", 1, [1], true].map((value): Refusal => [{ metadata: value }, "metadata"]),
      [{ metadata: { a: 1 } }, "metadata.a"],
    ]);
    await refusedAll("invalid_value", [
      [{ logit_bias: biases(1_025) }, "logit_bias"],
      [{ logit_bias: { "1": -100.1 } }, "logit_bias.1"],
      [{ logit_bias: { "1": 101 } }, "logit_bias.1"],
      [{ logit_bias: { hello: 1 } }, "logit_bias.hello"],
      [{ metadata: marks(17) }, "metadata"],
      [{ metadata: { a: "x".repeat(513) } }, "metadata.a"],
      [{ metadata: { ["k".repeat(65)]: "x" } }, `metadata.${"k".repeat(65)}`],
      [{ metadata: { "": "x" } }, 'metadata[""]'],
      [{ verbosity: "loud" }, "verbosity"],
      [{ prompt_cache_key: "x".repeat(65) }, "prompt_cache_key"],
      [{ prompt_cache_retention: "48h" }, "prompt_cache_retention"],
    ]);
  });
});

it("a message's name goes to providers that take it, for every role and in every turn", async (t) => {
  const messages = [
    { role: "developer", content: "Be brief.", name: "boss" },
    { role: "user", content: "hi", name: "ada" },
    { role: "assistant", content: "Hello.", name: "bot" },
    { role: "user", content: "bye" },
    { role: "assistant", content: null, tool_calls: [call], name: "bot" },
    { role: "tool", tool_call_id: "c", content: "1", name: "f" },
  ];
  const names = async ({ asked }: Awaited<ReturnType<typeof bench>>) =>
    (await asked({ messages }))["messages"].map(({ name }: Json) => name);
  const taken = ["boss", "ada", "bot", undefined, "bot", undefined];
  assert.deepEqual(await names(await bench(t, TAKES)), taken);
  assert.deepEqual(await names(await bench(t)), Array(6).fill(undefined));
  const content = [{ type: "text", text: "hi", cache_control: { type: "ephemeral" } }];
  const marked = [{ role: "user", content, name: "ada" }];
  const body = await (await bench(t, TAKES_MARKS)).asked({ messages: marked });
  assert.deepEqual(body["messages"], marked);
});

it("a message's name is ignored if OpenAI would reject its characters", async (t) => {
  const { asked } = await bench(t, TAKES);
  for (const name of ["Ada Lovelace", "", "a/b", "<ada>", "x".repeat(65), 5, null, ["ada"]]) {
    const body = await asked({ messages: [{ role: "user", content: "hi", name }] });
    assert.deepEqual(body["messages"], user("hi"), String(name));
  }
});

it("reply formats that no provider serves are rejected, and plain text is accepted", async (t) => {
  const { asked, refusedAll } = await bench(t);
  await refusedAll("invalid_type", [[{ modalities: "audio" }, "modalities"]]);
  await refusedAll("unsupported_value", [
    [{ modalities: ["image"] }, "modalities[0]"],
    [{ web_search_options: true }, "web_search_options"],
  ]);
  const plain = await asked({});
  const nulls = { modalities: null, web_search_options: null, moderation: null };
  for (const fields of [{ modalities: ["text"] }, { modalities: [] }, nulls])
    assert.deepEqual(await asked(fields), plain);
});

describe("functions and function_call", () => {
  const functions = [
    declared("f", { description: "d", parameters: { type: "object" } }),
    declared("g"),
  ];
  const tools = functions.map(({ name, ...more }) => toolOf(name, more));

  it("become tools and a tool_choice", async (t) => {
    const { asked } = await bench(t);
    for (const [choice, expected] of [
      ["auto", "auto"],
      ["none", "none"],
      [undefined, "none"],
      [null, "none"],
      [{ name: "g" }, { type: "function", function: { name: "g" } }],
    ]) {
      const body = await asked({ functions, function_call: choice });
      assert.deepEqual([body["tools"], body["tool_choice"]], [tools, expected]);
      assert.ok(!Object.hasOwn(body, "functions") && !Object.hasOwn(body, "function_call"));
    }
    const auto = await bench(t, { compat: { tool_choice_default: "auto" } });
    assert.equal((await auto.asked({ functions }))["tool_choice"], "auto");
    const plain = await asked({});
    const nulls = { functions: null, function_call: null };
    for (const fields of [{ functions: [] }, nulls, { function_call: "none" }])
      assert.deepEqual(await asked(fields), plain);
    assert.deepEqual((await asked({ functions: [], tools, tool_choice: "auto" }))["tools"], tools);
  });

  it("are named in errors as the client sent them", async (t) => {
    const { refusedAll } = await bench(t);
    const wide = { parameters: { enum: Array(9_990).fill(0) } };
    await refusedAll("invalid_type", [
      [{ functions: "x" }, "functions"],
      [{ functions: ["x"] }, "functions[0]"],
      [{ functions: [declared("f", { parameters: 1 })] }, "functions[0].parameters"],
      [{ functions, function_call: 1 }, "function_call"],
    ]);
    await refusedAll("missing_required_parameter", [
      [{ functions: [declared("f"), {}] }, "functions[1].name"],
      [{ functions, function_call: {} }, "function_call.name"],
    ]);
    await refusedAll("invalid_value", [
      [{ functions: [declared("a b")] }, "functions[0].name"],
      [{ functions: Array.from({ length: 129 }, (_, at) => declared(`f${at}`)) }, "functions"],
      [{ functions: [..."abcde"].map((name) => declared(name, wide)) }, "functions[4].parameters"],
      [{ functions, function_call: "required" }, "function_call"],
      [{ functions, function_call: { name: "h" } }, "function_call"],
    ]);
    const bare = await bench(t, { models: { m: { supports: [] } } });
    const [message] = await bare.refusedAll("unsupported_value", [[{ functions }, "functions"]]);
    assert.equal(message, "Invalid 'functions': this model does not support functions.");
    // Together with tools, and with a function_call but no functions.
    const both = { functions, tools, tool_choice: "auto", function_call: "auto" };
    await refusedAll("invalid_parameter_combination", [
      [{ functions, tools }, "functions"],
      [{ functions, tools: "x" }, "functions"],
      [both, "functions"],
      [{ tools, function_call: "auto" }, "function_call"],
      [{ functions, tool_choice: "none" }, "functions"],
      [{ function_call: "auto" }, "function_call"],
      [{ function_call: { name: "f" } }, "function_call"],
    ]);
  });

  it("in messages are rejected, and the error says what to send instead", async (t) => {
    const { asked, refusedAll } = await bench(t);
    const called = { role: "assistant", function_call: { name: "f", arguments: "{}" } };
    const after = (message: object) => ({ messages: [...user("hi"), message] });
    const [unread] = await refusedAll("unsupported_value", [
      [after({ ...called, content: null }), "messages[1].function_call"],
      [after({ ...called, content: "I call." }), "messages[1].function_call"],
    ]);
    assert.match(unread!, /tool_calls/);
    const result = after({ role: "function", name: "f", content: "1" });
    const [bad] = await refusedAll("invalid_value", [[result, "messages[1].role"]]);
    assert.match(bad!, /role "tool".*tool_call_id/);
    const plain = { role: "assistant", content: "x" };
    const { messages } = await asked(after({ ...plain, function_call: null }));
    assert.deepEqual(messages, [...user("hi"), plain]);
  });
});

it("/health answers like /healthz", async (t) => {
  const { url } = await startGateway(t, configFor("http://127.0.0.1:9", ["m"]));
  const [one, other] = await Promise.all(["/health", "/healthz"].map((path) => fetch(url + path)));
  assert.deepEqual([one!.status, await one!.text()], [200, await other!.text()]);
  assert.equal(one!.headers.get("cache-control"), other!.headers.get("cache-control"));
  assert.equal((await fetch(`${url}/health`, { method: "HEAD" })).status, 200);
  assert.equal((await fetch(`${url}/health`, { method: "POST" })).status, 405);
});
