// The most that a request can cost: every part of a prompt, every price, and streams that another
// attempt may continue.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { estimateOf } from "../../../../src/extensions/money/estimates/estimate.ts";
import { runSync } from "../../../../src/core/turns.ts";
import { readRequest } from "../../../../src/extensions/apis/messages-input/index.ts";
import type { ChatRequest } from "../../../../src/core/openai/request.ts";
import type { Model } from "../../../../src/core/routing/model.ts";
import type { Config } from "../../../../src/core/config.ts";
import { checkConfig } from "../../../support/config.ts";
import { configFor } from "../../../support/gateway.ts";
import { catalogOf, chatOf, settingsFor } from "../../../support/routing.ts";

const price = { input_cache_miss: 1, output: 100 };
const modelWith = (over: object = {}) =>
  catalogOf(settingsFor({ m: { price, ...over } })).models.get("m")!;
const configWith = (over: object = {}): Config =>
  checkConfig(configFor("http://127.0.0.1:1", ["m"], over));

function wish(
  chat: ChatRequest,
  candidates: readonly Model[],
  config = configWith(),
  hasBudget = true,
) {
  return estimateOf({ chat, candidates, config, caller: { account: "acme" } }, hasBudget);
}

const requestOf = (chat: object) =>
  chatOf({ model: "m", messages: [{ role: "user", content: "" }], ...chat });
/** The most that a request costs, in millionths of the currency. */
const costOf = (chat: object, model: object = {}, config: object = {}): number => {
  const { offers } = wish(requestOf(chat), [modelWith(model)], configWith(config));
  return Number(offers[0]!.cost / 1_000_000n);
};
/**
 * The offers for a reply without max_tokens: the tokens, the cost, and the max_tokens that is sent.
 */
const offersFor = (...models: readonly object[]): readonly (readonly (number | undefined)[])[] =>
  wish(requestOf({}), models.map(modelWith)).offers.map(({ room, cost, maxTokens }) => [
    Number(room / 1_000_000n),
    Number(cost / 1_000_000n),
    maxTokens,
  ]);
/** The length of the JSON around the text of one message. */
const MARKS = 43;

const CALLED = { id: "c", type: "function", function: { name: "f", arguments: "{}" } };
const ANSWERED = [
  { role: "user", content: "" },
  { role: "assistant", content: null, tool_calls: [CALLED] },
  { role: "tool", tool_call_id: "c", content: "1" },
];

describe("the estimate of a request", () => {
  const messages = [{ role: "user", content: "你好, \u{1f600}" }];
  const think = { thinking: { type: "enabled" }, max_tokens: 5 };
  const stream = { max_tokens: 5, stream: true };
  const recovering = { models: { m: { recovery: "continue" } }, retry: { max_recoveries: 3 } };
  const alias = { aliases: { a: { models: ["m"], recovery: "continue" } } };
  const holding = { models: { m: { recovery: "hold" } } };
  const once = MARKS + 500;
  const COSTS: readonly (readonly [string, number, ...Parameters<typeof costOf>])[] = [
    ["counts every byte of the prompt as a token", once + 12, { messages, max_tokens: 5 }],
    ["accepts the limit by its other name", MARKS + 300, { max_completion_tokens: 3 }],
    ["uses the client's limit", MARKS + 900_000, { max_tokens: 9_000 }],
    [
      "uses the model's limit if it is lower",
      MARKS + 700,
      { max_tokens: 9_000 },
      { max_output_tokens: 7 },
    ],
    ["adds nothing for a model that cannot think", once, think],
    ["has room for the thinking that a dialect adds", once + 102_400, think, { reasoning: true }],
    ["counts each attempt that may continue a stream", 4 * once + 3 * 5, stream, {}, recovering],
    ["asks the alias for that", 3 * once + 2 * 5, { ...stream, model: "a" }, {}, alias],
    ["counts one attempt for a whole reply", once, { max_tokens: 5 }, {}, recovering],
    ["counts one attempt for a stream that is held", once, stream, {}, holding],
  ];
  for (const [what, cost, ...asked] of COSTS) it(what, () => assert.equal(costOf(...asked), cost));

  it("leaves out the base64 data of media, and counts the rest of their parts", () => {
    const base64 = "QUJD".repeat(1_000);
    const pdf = "data:application/pdf;base64,";
    const partsWith = (data: string) => [
      { type: "text", text: "Look." },
      { type: "image_url", image_url: { url: `data:image/png;base64,${data}`, detail: "high" } },
      { type: "input_audio", input_audio: { data, format: "wav" } },
      { type: "file", file: { file_data: pdf + data, filename: "a.pdf" } },
    ];
    const bytesOf = (content: readonly object[]) => {
      const chat = requestOf({ max_tokens: 1, messages: [{ role: "user", content }] });
      const model = modelWith();
      const provider = { ...model.provider, countMedia: () => 0 };
      const [offer] = wish(chat, [{ ...model, provider }]).offers;
      return Number(offer!.cost / 1_000_000n) - 100;
    };
    const empty = JSON.stringify(partsWith("")).length - JSON.stringify("").length;
    assert.equal(bytesOf(partsWith(base64)), MARKS + empty);
    for (const part of [
      { type: "image_url", image_url: { url: `https://example.com/${base64}` } },
      { type: "file", file: { file_data: base64, filename: base64 } },
    ])
      assert.ok(bytesOf([part]) > base64.length, `${part.type}: no media`);
  });

  it("neither serializes nor bounds a request without a budget", () => {
    const response_format = { toJSON: () => assert.fail("it is written") };
    const chat = { ...requestOf({}), response_format } as never;
    const models = [{}, { max_output_tokens: 10 }].map(modelWith);
    const { offers, tokens } = wish(chat, models, configWith(), false);
    assert.deepEqual([offers[0]?.maxTokens, tokens], [undefined, 1_001]);
  });

  it("counts tools, calls and response schemas", () => {
    const fn = { name: "f", parameters: { type: "object" } };
    const tools = [{ type: "function", function: fn }];
    const plain = costOf({ max_tokens: 1 });
    assert.ok(costOf({ max_tokens: 1, tools }) >= plain + 600 + JSON.stringify(fn).length);
    assert.ok(costOf({ max_tokens: 1, messages: ANSWERED }) > plain + 100);
    // Native tools of the Responses API may be among the input items.
    const native = { dialect: "responses", body: {}, headers: {} };
    const { offers } = wish({ ...requestOf({ max_tokens: 1, tools }), native }, [modelWith()]);
    assert.ok(Number(offers[0]!.cost / 1_000_000n) >= plain + 600);
  });

  it("counts thoughts that a dialect stores and sends back with a call", () => {
    const model = modelWith({ reasoning: true });
    const body = { thoughts: "x".repeat(10_000) };
    const dialect = { ...model.provider.dialectFor("acme"), request: () => ({ path: "", body }) };
    const provider = { ...model.provider, dialectFor: () => dialect };
    const remembering: Model = { ...model, provider };
    const costWith = (messages: readonly object[]) => {
      const { offers } = wish(requestOf({ max_tokens: 1, messages }), [remembering]);
      return Number(offers[0]!.cost / 1_000_000n);
    };
    assert.ok(costWith(ANSWERED) > 10_000, `${costWith(ANSWERED)}`);
    assert.ok(costWith(ANSWERED.slice(0, 1)) < 1_000, "without a call nothing is sent back");
  });

  it("uses the price of the longest prompt: of an attempt that continues the complete reply", () => {
    const asked: number[] = [];
    const model: Model = {
      ...modelWith({ reasoning: true }),
      highestPrice(tokens) {
        asked.push(tokens);
        return price;
      },
    };
    const config = configWith({ models: { m: { recovery: "continue" } } });
    const thinking = { type: "enabled" };
    for (const chat of [{}, { stream: true }, { stream: true, thinking }])
      wish(requestOf({ max_tokens: 5, ...chat }), [model], config);
    assert.deepEqual(asked, [MARKS, MARKS + 5, MARKS + 5 + 1_024]);
  });
});

describe("a reply without max_tokens", () => {
  it("is offered at full length, repeatedly halved, and finally with 256 tokens", () => {
    assert.deepEqual(offersFor({ max_output_tokens: 2_000 }), [
      [MARKS + 800_000, MARKS + 200_000, 2_000],
      [MARKS + 400_000, MARKS + 100_000, 1_000],
      [MARKS + 200_000, MARKS + 50_000, 500],
      [MARKS + 25_600, MARKS + 25_600, 256],
    ]);
    assert.deepEqual(offersFor({ max_output_tokens: 100 }), [
      [MARKS + 10_000, MARKS + 10_000, 100],
    ]);
  });

  it("has at most 8,192 tokens if no setting states what the model can do", () => {
    const most = (model: object) => offersFor(model)[0]![2];
    assert.equal(most({}), 8_192);
    assert.equal(most({ context_tokens: 1_000_000 }), 8_192);
    assert.equal(most({ context_tokens: 4_000 }), 4_000);
    assert.equal(most({ default_output_tokens: 500 }), 500);
    assert.equal(most({ default_output_tokens: 500, max_output_tokens: 9_000 }), 9_000);
  });

  it("costs what the dearest candidate costs, each within its own limit", () => {
    const short = { max_output_tokens: 300 };
    const cheap = { max_output_tokens: 1_200, price: { input_cache_miss: 2, output: 10 } };
    const [prompt, whole] = [2 * MARKS, MARKS + 30_000];
    assert.deepEqual(offersFor(short, cheap), [
      ...[1_200, 600, 300].map((tokens) => [prompt + 4 * (whole - prompt), whole, tokens]),
      [MARKS + 25_600, MARKS + 25_600, 256],
    ]);
  });

  it("is not bounded if it costs nothing", () => {
    const free = { price: { input_cache_miss: 1, output: 0 } };
    assert.deepEqual(offersFor(free), [[MARKS, MARKS, undefined]]);
  });
});

describe("a request of the Messages API", () => {
  const DATA = Buffer.from("x".repeat(30_000)).toString("base64");
  const source = { type: "base64", media_type: "image/png", data: DATA };
  /** The cost of a request for a provider of its format. */
  const nativeCost = (content: readonly object[], more: object = {}): number => {
    const messages = [{ role: "user", content }];
    const json = { model: "m", max_tokens: 1, messages, ...more };
    const request = runSync(readRequest({ json, large: false }, {}, String));
    const { offers } = wish(request, [modelWith()]);
    return Number(offers[0]!.cost / 1_000_000n);
  };

  it("counts images as media, and base64 text elsewhere as text", () => {
    const text = { type: "text", text: "What is it?" };
    const shown = nativeCost([text, { type: "image", source }]);
    assert.ok(shown < 3_000, String(shown));
    const hidden = nativeCost([text, { type: "image", source }, { type: "other", source }]);
    assert.ok(hidden > DATA.length, String(hidden));
  });

  it("counts tools whose definitions the provider adds", () => {
    const text = [{ type: "text", text: "Look." }];
    const tools = ["bash", "computer"].map((name) => ({ type: `${name}_20250124`, name }));
    // As published: 346 tokens for any tools, 245 for this one, and 735 and 499 for the other.
    const more = nativeCost(text, { tools }) - nativeCost(text);
    assert.ok(more > 346 + 245 + 735 + 499, String(more));
    const own = [{ name: "f", input_schema: { type: "object" } }];
    assert.ok(nativeCost(text, { tools: own }) - nativeCost(text) < 1_000);
  });
});
