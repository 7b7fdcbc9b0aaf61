// The fields of OpenAI's chat completions beyond the contract: what passes, what is refused, both
// sides of every bound, and what providers that take a field get.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { describe, it } from "node:test";
import { configFor, KEY, merge, startGateway, user } from "../../../support/gateway.ts";
import { createMemoryGateway, memoryProvider } from "../../../support/memory.ts";
import {
  chunk,
  completion,
  speak,
  startProvider,
  status,
  stream,
} from "../../../support/provider.ts";
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

function bench(t: Scope, over: object = {}, reply = speak("Hello.")) {
  const provider = memoryProvider(t, reply);
  const gateway = createMemoryGateway(configFor(provider.url, ["m"], over));
  return {
    chat: (fields: object) => gateway.chat({ ...REQUEST, ...fields }),
    /** What the provider is asked for a request that succeeds. */
    async asked(fields: object): Promise<Json> {
      const answer = await gateway.chat({ ...REQUEST, ...fields });
      assert.equal(answer.status, 200, `${JSON.stringify(fields)}: ${await answer.text()}`);
      return provider.asked.at(-1)!.body;
    },
    /** The message of a request that is refused before a provider hears of it. */
    async refused(fields: object, code: string, param: string): Promise<string> {
      const before = provider.asked.length;
      const answer = await gateway.chat({ ...REQUEST, ...fields });
      const { error } = (await answer.json()) as Json;
      const about = JSON.stringify(fields).slice(0, 200);
      assert.deepEqual([answer.status, error.code, error.param], [400, code, param], about);
      assert.equal(provider.asked.length, before, "the provider was asked all the same");
      return error.message as string;
    },
  };
}

const TAKES = {
  providers: {
    lab: {
      takes: [
        "logit_bias",
        "verbosity",
        "prompt_cache_key",
        "prompt_cache_retention",
        "safety_identifier",
        "name",
      ],
    },
  },
};
const biases = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [String(index), 1]));

describe("fields that some providers take", () => {
  for (const [name, values] of Object.entries({
    logit_bias: [{ "50256": -100, "0": 100, "7": 0.5 }, biases(1_024)],
    verbosity: ["low", "medium", "high"],
    prompt_cache_key: ["k", "x".repeat(64), "\u{1F600}".repeat(64)],
    prompt_cache_retention: ["in_memory", "24h"],
  }))
    it(`${name} is passed on to these only`, async (t) => {
      const taking = bench(t, TAKES);
      const other = bench(t);
      for (const value of values) {
        assert.deepEqual((await taking.asked({ [name]: value }))[name], value);
        assert.ok(!Object.hasOwn(await other.asked({ [name]: value }), name));
      }
      assert.ok(!Object.hasOwn(await taking.asked({ [name]: null }), name), "null is absent");
    });

  it("a model takes other fields than its provider, and logit_bias is not for reasoning models of OpenAI", async (t) => {
    const fields = { logit_bias: { "1": 1 }, verbosity: "low" };
    const { asked } = bench(t, merge(TAKES, { models: { m: { takes: ["verbosity"] } } }) as object);
    const body = await asked(fields);
    assert.deepEqual([body["logit_bias"], body["verbosity"]], [undefined, "low"]);
    for (const reasoning of [true, false]) {
      const provider = memoryProvider(t, speak("Hello."));
      const gateway = createMemoryGateway({
        providers: { shop: { vendor: "openai", base_url: provider.url, api_key: "k" } },
        models: { m: { provider: "shop", reasoning } },
        keys: [{ account: "acme", key: KEY }],
      });
      assert.equal((await gateway.chat({ ...REQUEST, ...fields })).status, 200);
      assert.equal(Object.hasOwn(provider.asked[0]!.body, "logit_bias"), !reasoning);
    }
  });

  it("safety_identifier is hashed, and stands for the user where the provider has no such field", async (t) => {
    const identified = { safety_identifier: "ada@example.com" };
    const taking = bench(t, TAKES);
    const one = await taking.asked(identified);
    assert.deepEqual(
      [one["safety_identifier"], one["user"]],
      [hashOf("ada@example.com"), undefined],
    );
    const both = await taking.asked({ ...identified, user: "bob" });
    const hashes = [both["safety_identifier"], both["user"]];
    assert.deepEqual(hashes, [hashOf("ada@example.com"), hashOf("bob")]);
    const other = bench(t);
    assert.equal((await other.asked(identified))["user"], hashOf("ada@example.com"));
    assert.equal((await other.asked({ ...identified, user: "bob" }))["user"], hashOf("bob"));
    for (const body of [one, both, await other.asked(identified)])
      assert.ok(!JSON.stringify(body).includes("ada@"));
    assert.ok(!Object.hasOwn(await other.asked({ safety_identifier: "" }), "user"));
  });

  it("another type, another value, one past a bound: 400", async (t) => {
    const { refused } = bench(t, TAKES);
    for (const value of ["x", 1, [1], true])
      await refused({ logit_bias: value }, "invalid_type", "logit_bias");
    await refused({ logit_bias: biases(1_025) }, "invalid_value", "logit_bias");
    for (const bias of [-100.1, 101])
      await refused({ logit_bias: { "1": bias } }, "invalid_value", "logit_bias.1");
    await refused({ logit_bias: { "1": "1" } }, "invalid_type", "logit_bias.1");
    await refused({ logit_bias: { hello: 1 } }, "invalid_value", "logit_bias.hello");
    await refused({ verbosity: "loud" }, "invalid_value", "verbosity");
    await refused({ prompt_cache_key: "x".repeat(65) }, "invalid_value", "prompt_cache_key");
    await refused({ prompt_cache_retention: "48h" }, "invalid_value", "prompt_cache_retention");
    for (const name of [
      "verbosity",
      "prompt_cache_key",
      "prompt_cache_retention",
      "safety_identifier",
    ])
      for (const value of [1, [], {}]) await refused({ [name]: value }, "invalid_type", name);
  });
});

describe("the name of a message", () => {
  it("goes to providers that take it, whoever speaks, and in every turn of a conversation", async (t) => {
    const messages = [
      { role: "developer", content: "Be brief.", name: "boss" },
      { role: "user", content: "hi", name: "ada" },
      { role: "assistant", content: "Hello.", name: "bot" },
      { role: "user", content: "bye" },
      { role: "assistant", content: null, tool_calls: [call], name: "bot" },
      { role: "tool", tool_call_id: "c", content: "1", name: "f" },
    ];
    const names = async ({ asked }: ReturnType<typeof bench>) =>
      (await asked({ messages }))["messages"].map(({ name }: Json) => name);
    const taken = ["boss", "ada", "bot", undefined, "bot", undefined];
    assert.deepEqual(await names(bench(t, TAKES)), taken);
    assert.deepEqual(await names(bench(t)), Array(6).fill(undefined));
    const marked = bench(
      t,
      merge(TAKES, { providers: { lab: { cache_control: true } } }) as object,
    );
    const part = { type: "text", text: "hi", cache_control: { type: "ephemeral" } };
    const [one] = (
      await marked.asked({ messages: [{ role: "user", content: [part], name: "ada" }] })
    )["messages"];
    assert.deepEqual(one, { role: "user", content: [part], name: "ada" });
  });

  it("is ignored in a form that OpenAI refuses", async (t) => {
    const { asked } = bench(t, TAKES);
    for (const name of ["Ada Lovelace", "", "a/b", "<ada>", "x".repeat(65), 5, null, ["ada"]]) {
      const [message] = (await asked({ messages: [{ role: "user", content: "hi", name }] }))[
        "messages"
      ];
      assert.deepEqual(message, { role: "user", content: "hi" }, String(name));
    }
  });
});

describe("replies of another kind", () => {
  it("audio, searches of the web and moderation are refused: nobody serves them", async (t) => {
    const { asked, refused } = bench(t);
    await refused({ modalities: ["text", "audio"] }, "unsupported_value", "modalities[1]");
    await refused({ modalities: ["image"] }, "unsupported_value", "modalities[0]");
    await refused({ modalities: "audio" }, "invalid_type", "modalities");
    for (const value of [{}, { search_context_size: "low" }, true])
      await refused({ web_search_options: value }, "unsupported_value", "web_search_options");
    await refused({ moderation: { model: "x" } }, "unsupported_value", "moderation");
    const plain = await asked({});
    for (const fields of [
      { modalities: ["text"] },
      { modalities: [] },
      { modalities: null, web_search_options: null, moderation: null },
    ])
      assert.deepEqual(await asked(fields), plain);
  });
});

describe("functions and function_call", () => {
  const functions = [
    declared("f", { description: "d", parameters: { type: "object" } }),
    declared("g"),
  ];
  const tools = functions.map(({ name, ...more }) => toolOf(name, more));

  it("become tools and their choice", async (t) => {
    const { asked } = bench(t);
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
    const auto = bench(t, { compat: { tool_choice_default: "auto" } });
    assert.equal((await auto.asked({ functions }))["tool_choice"], "auto");
    const plain = await asked({});
    for (const fields of [
      { functions: [] },
      { functions: null, function_call: null },
      { function_call: "none" },
    ])
      assert.deepEqual((await asked(fields))["messages"], plain["messages"]);
    assert.deepEqual((await asked({ functions: [], tools, tool_choice: "auto" }))["tools"], tools);
  });

  it("the reply has tool_calls, whole and streamed", async (t) => {
    const whole = bench(
      t,
      {},
      status(200, completion({ content: null, tool_calls: [call] }, "tool_calls")),
    );
    const answer = (await (await whole.chat({ functions, function_call: "auto" })).json()) as Json;
    const [choice] = answer["choices"];
    assert.equal(choice.finish_reason, "tool_calls");
    assert.deepEqual(choice.message.tool_calls, [call]);
    assert.ok(!Object.hasOwn(choice.message, "function_call"));
    const streamed = bench(
      t,
      {},
      stream([chunk({ tool_calls: [{ index: 0, ...call }] }), chunk({}, "tool_calls")]),
    );
    const text = await (
      await streamed.chat({ functions, function_call: "auto", stream: true })
    ).text();
    assert.ok(
      text.includes('"tool_calls":[{') && text.includes('"finish_reason":"tool_calls"'),
      text,
    );
    assert.ok(!text.includes('function_call"'), text);
  });

  it("errors name the client's own fields", async (t) => {
    const { refused } = bench(t);
    const type = "invalid_type";
    const value = "invalid_value";
    await refused({ functions: "x" }, type, "functions");
    await refused({ functions: ["x"] }, type, "functions[0]");
    await refused(
      { functions: [declared("f"), {}] },
      "missing_required_parameter",
      "functions[1].name",
    );
    await refused({ functions: [declared("a b")] }, value, "functions[0].name");
    await refused(
      { functions: [declared("f", { parameters: 1 })] },
      type,
      "functions[0].parameters",
    );
    const many = Array.from({ length: 129 }, (_, index) => declared(`f${index}`));
    await refused({ functions: many }, value, "functions");
    const wide = { parameters: { enum: Array(9_990).fill(0) } };
    const large = ["a", "b", "c", "d", "e"].map((name) => declared(name, wide));
    await refused({ functions: large }, value, "functions[4].parameters");
    await refused({ functions, function_call: "required" }, value, "function_call");
    await refused({ functions, function_call: 1 }, type, "function_call");
    await refused(
      { functions, function_call: {} },
      "missing_required_parameter",
      "function_call.name",
    );
    await refused({ functions, function_call: { name: "h" } }, value, "function_call");
    const bare = bench(t, { models: { m: { supports: [] } } });
    const message = await bare.refused({ functions }, "unsupported_value", "functions");
    assert.equal(message, "Invalid 'functions': this model does not support functions.");
  });

  it("are refused together with tools, and a call without functions", async (t) => {
    const { refused } = bench(t);
    const code = "invalid_parameter_combination";
    await refused({ functions, tools }, code, "functions");
    await refused(
      { functions, tools, tool_choice: "auto", function_call: "auto" },
      code,
      "functions",
    );
    await refused({ tools, function_call: "auto" }, code, "function_call");
    await refused({ functions, tool_choice: "none" }, code, "functions");
    await refused({ function_call: "auto" }, code, "function_call");
    await refused({ function_call: { name: "f" } }, code, "function_call");
  });

  it("in messages are refused, and the message says what to send instead", async (t) => {
    const { asked, refused } = bench(t);
    const asking = {
      role: "assistant",
      content: null,
      function_call: { name: "f", arguments: "{}" },
    };
    const result = { role: "function", name: "f", content: "1" };
    const unread = await refused(
      { messages: [...user("hi"), asking] },
      "unsupported_value",
      "messages[1].function_call",
    );
    assert.match(unread, /tool_calls/);
    const said = { ...asking, content: "I call." };
    await refused({ messages: [said] }, "unsupported_value", "messages[0].function_call");
    const bad = await refused(
      { messages: [...user("hi"), result] },
      "invalid_value",
      "messages[1].role",
    );
    assert.match(bad, /role "tool".*tool_call_id/);
    const messages = [{ role: "assistant", content: "x", function_call: null }];
    assert.deepEqual((await asked({ messages }))["messages"], [
      { role: "assistant", content: "x" },
    ]);
  });
});

describe("paths of other APIs", () => {
  it("are 404, and the message says what is served here", async (t) => {
    const provider = await startProvider(t, speak("Hello."));
    const { url } = await startGateway(t, configFor(provider.url, ["m"], { apis: ["responses"] }));
    for (const path of [
      "/v1/completions",
      "/v1/embeddings",
      "/v1/moderations",
      "/v1/images/generations",
      "/v1/audio/speech",
      "/v1/engines/m/completions",
      "/embeddings",
    ]) {
      const answer = await fetch(url + path, { method: "POST", body: "{}" });
      const { error } = (await answer.json()) as Json;
      assert.deepEqual([answer.status, error.code], [404, "unknown_url"], path);
      const { message } = error as { message: string };
      for (const served of ["/v1/chat/completions", "/v1/responses", "/v1/models"])
        assert.ok(message.includes(served), message);
      assert.ok(!message.includes("/v1/messages"), message);
    }
  });

  it("/health answers as /healthz does", async (t) => {
    const provider = await startProvider(t, speak("Hello."));
    const { url } = await startGateway(t, configFor(provider.url, ["m"]));
    const [one, other] = await Promise.all(
      ["/health", "/healthz"].map((path) => fetch(url + path)),
    );
    assert.deepEqual([one!.status, await one!.text()], [200, await other!.text()]);
    assert.equal(one!.headers.get("cache-control"), other!.headers.get("cache-control"));
    assert.equal((await fetch(`${url}/health`, { method: "HEAD" })).status, 200);
    assert.equal((await fetch(`${url}/health`, { method: "POST" })).status, 405);
  });
});
