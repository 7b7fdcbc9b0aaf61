// Which model a name stands for: canonical names, aliases and their policies, what a request needs,
// what a key may use.

import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { configFor, json, KEY, user } from "../../support/gateway.ts";
import { createMemoryGateway, memoryProvider } from "../../support/memory.ts";
import { speak } from "../../support/provider.ts";

/** Asks once; which model served, or which error came. */
async function serving(t: TestContext, config: object, request: object): Promise<string> {
  const names = Object.keys((config as { models: object }).models);
  const provider = memoryProvider(t, Object.fromEntries(names.map((name) => [name, speak(name)])));
  const gateway = createMemoryGateway(configFor(provider.url, names, config));
  const response = await gateway.chat({ messages: user("hi"), ...request });
  const body = await json(response);
  if (response.status !== 200) return `${response.status} ${body.error.code} ${body.error.param}`;
  assert.equal(
    body.choices[0].message.content,
    body.model,
    "the provider was asked for the model that the reply names",
  );
  return body.model;
}

const price = (input: number, output: number) => ({ input_cache_miss: input, output });
const policies = { think: { policy: "reasoning" }, value: { policy: "value" } };

describe("aliases", () => {
  const cases: [name: string, config: object, model: string, served: string][] = [
    [
      "a list: its order",
      { models: { a: {}, b: {} }, aliases: { x: { models: ["b", "a"] } } },
      "x",
      "b",
    ],
    [
      "reasoning: the strongest",
      {
        models: { a: { reasoning_score: 1 }, b: { reasoning_score: 3 }, c: { reasoning_score: 2 } },
      },
      "think",
      "b",
    ],
    [
      "reasoning: only models that think",
      { models: { a: { reasoning: false, reasoning_score: 9 }, b: { reasoning_score: 1 } } },
      "think",
      "b",
    ],
    [
      "reasoning: without a score comes last",
      { models: { a: {}, b: { reasoning_score: -5 } } },
      "think",
      "b",
    ],
    [
      "reasoning: a tie keeps the order of the file",
      { models: { b: { reasoning_score: 1 }, a: { reasoning_score: 1 } } },
      "think",
      "b",
    ],
    [
      "value: quality for its blended price",
      {
        models: {
          a: { quality_score: 90, price: price(1, 1) },
          b: { quality_score: 50, price: price(0.4, 0.8) },
        },
      },
      "value",
      "b",
    ],
    [
      "value: three parts input, one part output",
      {
        models: {
          a: { quality_score: 10, price: price(2, 0) },
          b: { quality_score: 10, price: price(1, 2.9) },
        },
      },
      "value",
      "b",
    ],
    [
      "value: what is free is the best",
      {
        models: {
          a: { quality_score: 99, price: price(0.01, 0.01) },
          b: { quality_score: 1, price: price(0, 0) },
        },
      },
      "value",
      "b",
    ],
    [
      "value: only models with a quality and a price",
      {
        models: {
          a: { quality_score: 99 },
          b: { price: price(0, 0) },
          c: { quality_score: 1, price: price(9, 9) },
        },
      },
      "value",
      "c",
    ],
    ["no model behind it", { models: { a: {} } }, "value", "503 model_unavailable model"],
    [
      "disabled",
      { models: { a: {} }, aliases: { x: { models: ["a"], enabled: false } } },
      "x",
      "404 model_not_found model",
    ],
    ["unknown", { models: { a: {} } }, "auto/nothing", "404 model_not_found model"],
    [
      "a name that every object has",
      { models: { a: {} } },
      "constructor",
      "404 model_not_found model",
    ],
    ["a very long name", { models: { a: {} } }, "y".repeat(5_000), "404 model_not_found model"],
  ];
  for (const [name, config, model, served] of cases) {
    it(name, async (t) =>
      assert.equal(await serving(t, { aliases: policies, ...config }, { model }), served),
    );
  }
});

const tools = [{ type: "function", function: { name: "f" } }];
const schema = { type: "json_schema", json_schema: { name: "x", schema: {} } };
const part = (type: string, value: object) => [
  {
    role: "user",
    content: [
      { type: "text", text: "see" },
      { type, [type]: value },
    ],
  },
];

describe("what a request needs", () => {
  const cases: [name: string, capability: string, request: object, param: string][] = [
    ["tools", "tools", { tools }, "tools"],
    ["JSON mode", "json_object", { response_format: { type: "json_object" } }, "response_format"],
    ["a JSON schema", "json_schema", { response_format: schema }, "response_format"],
    ["log probabilities", "logprobs", { logprobs: true }, "logprobs"],
    [
      "images",
      "images",
      { messages: part("image_url", { url: "data:image/png;base64,AA==" }) },
      "messages[0].content",
    ],
    [
      "audio",
      "audio",
      { messages: part("input_audio", { data: "AA==", format: "wav" }) },
      "messages[0].content",
    ],
    ["files", "files", { messages: part("file", { file_data: "AA==" }) }, "messages[0].content"],
  ];
  for (const [name, capability, request, param] of cases) {
    it(`${name}: an alias goes to the first model that can; a named model that cannot refuses`, async (t) => {
      const config = {
        models: { plain: { supports: [] }, able: { supports: [capability] } },
        aliases: { x: { models: ["plain", "able"] }, y: { models: ["plain"] } },
      };
      assert.equal(await serving(t, config, { model: "x", ...request }), "able");
      assert.equal(await serving(t, config, { model: "able", ...request }), "able");
      assert.equal(
        await serving(t, config, { model: "plain", ...request }),
        `400 unsupported_value ${param}`,
      );
      assert.equal(
        await serving(t, config, { model: "y", ...request }),
        `400 unsupported_value ${param}`,
      );
    });
  }

  it("two needs that no single model meets", async (t) => {
    const config = {
      models: { a: { supports: ["tools"] }, b: { supports: ["logprobs"] } },
      aliases: { x: { models: ["a", "b"] } },
    };
    assert.equal(
      await serving(t, config, { model: "x", tools, logprobs: true }),
      "400 unsupported_value tools",
    );
  });

  it("the words for a missing JSON schema are those that clients look for", async (t) => {
    const provider = memoryProvider(t, {});
    const gateway = createMemoryGateway(
      configFor(provider.url, ["m"], { models: { m: { supports: [] } } }),
    );
    const { error } = await json(
      await gateway.chat({ model: "m", messages: user("hi"), response_format: schema }),
    );
    assert.ok(
      error.message.includes(
        "'response_format' of type 'json_schema' is not supported with this model",
      ),
      error.message,
    );
  });
});

describe("what a key may use", () => {
  const cases: [name: string, allowed: string[], model: string, served: string][] = [
    ["a model that it names", ["a"], "a", "a"],
    ["a model that it does not name", ["a"], "b", "403 model_not_allowed model"],
    ["an alias that it names: every model behind it", ["x"], "x", "b"],
    ["an alias that it does not name", ["a", "b"], "x", "403 model_not_allowed model"],
    ["an alias and one of its models: only that one", ["x", "a"], "x", "a"],
    ["an alias and a model that is not behind it", ["x", "c"], "x", "b"],
    ["nothing at all", [], "a", "403 model_not_allowed model"],
    ["a name that does not exist", ["a"], "ghost", "404 model_not_found model"],
  ];
  for (const [name, allowed, model, served] of cases) {
    it(name, async (t) => {
      const config = {
        models: { a: {}, b: {}, c: {} },
        aliases: { x: { models: ["b", "a"] } },
        keys: [{ account: "acme", key: KEY, models: allowed }],
      };
      assert.equal(await serving(t, config, { model }), served);
    });
  }
});

it("system_fingerprint is stable for a model, and differs between models", async (t) => {
  const provider = memoryProvider(t, { a: speak("x"), b: speak("x") });
  const gateway = createMemoryGateway(configFor(provider.url, ["a", "b"]));
  const fingerprint = async (model: string) =>
    (await json(await gateway.chat({ model, messages: user("hi") }))).system_fingerprint;
  assert.match(await fingerprint("a"), /^fp_[0-9a-f]{12}$/);
  assert.equal(await fingerprint("a"), await fingerprint("a"));
  assert.notEqual(await fingerprint("a"), await fingerprint("b"));
});
