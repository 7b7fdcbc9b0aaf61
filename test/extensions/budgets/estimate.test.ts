// The most that a request can cost: every part of a prompt, every price, and streams that another
// attempt may go on with.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { estimatesOf } from "../../../src/extensions/budgets/estimate.ts";
import type { Config } from "../../../src/core/config.ts";
import { checkConfig } from "../../support/config.ts";
import { configFor } from "../../support/gateway.ts";
import { catalogOf, chatOf, settingsFor } from "../../support/routing.ts";

const price = { input_cache_miss: 1, output: 100 };
const modelWith = (over: object = {}) =>
  catalogOf(settingsFor({ m: { price, ...over } })).models.get("m")!;
const configWith = (over: object = {}): Config =>
  checkConfig(configFor("http://127.0.0.1:1", ["m"], over));

/** The cost of one candidate, in millionths of the currency. */
const costOf = (chat: object, model: object = {}, config: object = {}): number => {
  const request = chatOf({ model: "m", messages: [{ role: "user", content: "" }], ...chat });
  const [estimate] = estimatesOf(request, [modelWith(model)], configWith(config));
  return Number(estimate!.cost / 1_000_000n);
};
/** What stands around one message. */
const MARKS = 32;

describe("the estimate of a request", () => {
  it("counts every byte of the prompt as a token, and the bound of the reply", () => {
    const messages = [{ role: "user", content: "你好, \u{1f600}" }];
    assert.equal(costOf({ max_tokens: 5 }), MARKS + 500);
    assert.equal(costOf({ messages, max_tokens: 5 }), MARKS + 12 + 500);
  });

  it("counts tools, calls and response schemas", () => {
    const fn = { name: "f", parameters: { type: "object" } };
    const tools = [{ type: "function", function: fn }];
    const plain = costOf({ max_tokens: 1 });
    assert.ok(costOf({ max_tokens: 1, tools }) >= plain + 600 + JSON.stringify(fn).length);
    const called = { id: "c", type: "function", function: { name: "f", arguments: "{}" } };
    const messages = [
      { role: "user", content: "" },
      { role: "assistant", content: null, tool_calls: [called] },
      { role: "tool", tool_call_id: "c", content: "12345" },
    ];
    assert.ok(costOf({ max_tokens: 1, messages }) > plain + 2 * 16 + 5);
  });

  it("takes the client's bound, the model's, or what is assumed", () => {
    assert.equal(costOf({}), MARKS + 100_000);
    assert.equal(costOf({}, {}, { limits: { assumed_output_tokens: 50 } }), MARKS + 5_000);
    assert.equal(costOf({ max_completion_tokens: 3 }), MARKS + 300);
  });

  it("takes the dearest of the input prices", () => {
    const dear = { ...price, input_cache_hit: 0.1, input_cache_write: 3 };
    assert.equal(costOf({ max_tokens: 1 }, { price: dear }), 3 * MARKS + 100);
  });

  it("counts each attempt that may go on with a stream", () => {
    const config = { models: { m: { recovery: "continue" } }, retry: { max_recoveries: 3 } };
    const once = MARKS + 500;
    assert.equal(costOf({ max_tokens: 5, stream: true }, {}, config), 4 * once + 3 * 5);
    assert.equal(costOf({ max_tokens: 5 }, {}, config), once);
    const held = { models: { m: { recovery: "hold" } } };
    assert.equal(costOf({ max_tokens: 5, stream: true }, {}, held), once);
  });
});
