// Service tiers and long prompts: what providers are sent, and what is billed and held.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { settled, type Line } from "../../../support/books.ts";
import { folder } from "../../../support/folder.ts";
import { isNeededBy } from "../../../../src/config/loader.ts";
import { checkConfig, loader } from "../../../support/config.ts";
import { configFor, json, merge, startGateway, startWith, user } from "../../../support/gateway.ts";
import {
  chunk,
  completion,
  inTurn,
  startProvider,
  status,
  stream,
  type Asked,
  type Behaviour,
} from "../../../support/provider.ts";
import { post } from "../../apis/post.ts";
import type { Scope } from "../../../support/scope.ts";

const USAGE = { prompt_tokens: 1_000_000, completion_tokens: 1_000_000, total_tokens: 2_000_000 };
const PRICE = { input_cache_miss: 2, output: 10 };
const service_tiers = {
  flex: { input_cache_miss: 1, output: 5 },
  priority: { input_cache_miss: 4, output: 20 },
};

/** A reply with this tier. Undefined: it states none. */
const replyOf = (tier?: string): Behaviour =>
  status(200, {
    ...completion({ content: "Hi." }),
    usage: USAGE,
    ...(tier && { service_tier: tier }),
  });

async function start(t: Scope, behaviour: Behaviour, over: object = {}) {
  const data_dir = folder();
  const base = {
    data_dir,
    models: { m: { price: PRICE, service_tiers }, plain: { price: PRICE } },
    aliases: { any: { models: ["m", "plain"] } },
  };
  const behaviours = { m: behaviour, plain: behaviour };
  const gateway = await startWith(t, behaviours, merge(base, over) as object);
  const { provider } = gateway;
  const ask = (model: string, service_tier?: unknown, more: object = {}) =>
    gateway.chat({ model, messages: user("hi"), service_tier, ...more });
  /** Requests a tier. Returns the last provider request's tier, and what was billed. */
  async function billed(...asked: Parameters<typeof ask>) {
    const answer = await ask(...asked);
    assert.equal(answer.status, 200, await answer.text());
    const line = (await settled(data_dir, provider.asked.length)).at(-1)!;
    return [provider.asked.at(-1)!.body["service_tier"], line["cost"]];
  }
  return { provider, billed, ask, data_dir, url: gateway.url };
}

const budget = (amount: string) => ({
  accounts: { acme: { budget: { amount, period: "month" } } },
});

describe("a service tier", () => {
  it("is sent and billed if it has a price, and nothing else changes", async (t) => {
    const { billed } = await start(t, replyOf());
    assert.deepEqual(await billed("m"), [undefined, "12"]);
    assert.deepEqual(await billed("m", "flex"), ["flex", "6"]);
    assert.deepEqual(await billed("m", "priority"), ["priority", "24"]);
    assert.deepEqual(await billed("any", "flex"), ["flex", "6"]);
    assert.deepEqual(await billed("plain", "flex"), [undefined, "12"]);
    for (const other of ["auto", "scale", "", null, 7])
      assert.deepEqual(await billed("m", other), [undefined, "12"]);
  });

  it("is billed as the provider served it, whole, streamed, and in Anthropic's format", async (t) => {
    const standard = await start(t, replyOf("default"));
    assert.deepEqual(await standard.billed("m", "priority"), ["priority", "12"]);
    const flex = await start(t, replyOf("flex"));
    assert.deepEqual(await flex.billed("m", "priority"), ["priority", "6"]);
    // If the client sets no tier, `price` is for whatever tier the operator uses.
    assert.deepEqual(await flex.billed("m"), [undefined, "12"]);

    const events = [chunk({ content: "Hi." }), chunk({}, "stop"), { choices: [], usage: USAGE }];
    const tier = { service_tier: "default" };
    const streamed = await start(t, stream(events.map((each) => ({ ...each, ...tier }))));
    assert.deepEqual(await streamed.billed("m", "flex", { stream: true }), ["flex", "12"]);

    const usage = { input_tokens: 1_000_000, output_tokens: 1_000_000, service_tier: "standard" };
    const content = [{ type: "text", text: "Hi." }];
    const reply = { type: "message", role: "assistant", content, stop_reason: "end_turn", usage };
    const claude = await start(t, status(200, reply), {
      providers: { lab: { dialect: "anthropic", thinking: null } },
      models: { m: { service_tiers: { auto: { input_cache_miss: 4, output: 20 } } } },
    });
    assert.deepEqual(await claude.billed("m", "auto"), ["auto", "12"]);
  });

  it("is asked for and billed in the formats of Gemini, Converse and the Responses API", async (t) => {
    const content = [{ text: "Hi." }];
    const counts = { inputTokens: 1_000_000, outputTokens: 1_000_000 };
    const tokens = { promptTokenCount: 1_000_000, candidatesTokenCount: 1_000_000 };
    const geminiReply = (serviceTier: string) => ({
      candidates: [{ content: { parts: content }, finishReason: "STOP" }],
      usageMetadata: { ...tokens, serviceTier },
    });
    const converseReply = (type: string) => ({
      output: { message: { role: "assistant", content } },
      stopReason: "end_turn",
      usage: counts,
      serviceTier: { type },
    });
    const items = (service_tier: string) => [
      { type: "response.output_text.delta", output_index: 0, delta: "Hi." },
      {
        type: "response.completed",
        response: {
          output: [],
          usage: { input_tokens: 1_000_000, output_tokens: 1_000_000 },
          service_tier,
        },
      },
    ];
    const aws = { vendor: "bedrock", region: "us-east-1", api_key: "k" };
    for (const [vendor, reply, asked] of [
      [{ vendor: "gemini", api_key: "k" }, geminiReply, { service_tier: "flex" }],
      [aws, converseReply, { serviceTier: { type: "flex" } }],
      [{ dialect: "responses", api_key: "k", stream_only: true }, items, { service_tier: "flex" }],
    ] as const)
      for (const [stated, cost] of [
        ["flex", "6"],
        ["standard", "12"],
      ] as const) {
        const said = reply(stated);
        const provider = await startProvider(
          t,
          Array.isArray(said) ? stream(said) : status(200, said),
        );
        const data_dir = folder();
        const further = { ...vendor, base_url: provider.url };
        const m = { provider: "further", upstream_model: "amazon.x", price: PRICE, service_tiers };
        const config = configFor(provider.url, [], {
          data_dir,
          providers: { further },
          models: { m },
        });
        const { chat } = await startGateway(t, config);
        const answer = await chat({ model: "m", messages: user("hi"), service_tier: "flex" });
        assert.equal(answer.status, 200, await answer.text());
        assert.equal((await settled(data_dir, 1))[0]!["cost"], cost);
        const { body } = provider.asked[0]!;
        assert.deepEqual({ ...body, ...asked }, body);
      }
  });

  it("is asked for and billed in the Responses API too", async (t) => {
    const { provider, data_dir, url } = await start(t, replyOf(), { apis: ["responses"] });
    const responses = `${url}/v1/responses`;
    for (const [service_tier, cost, stated] of [
      ["flex", "6", null],
      [undefined, "12", "default"],
    ] as const) {
      const answer = await post(responses, { model: "m", input: "hi", service_tier });
      const [line] = (await settled(data_dir, provider.asked.length)).slice(-1);
      const { body } = provider.asked.at(-1)!;
      assert.deepEqual([body["service_tier"], line!["cost"]], [service_tier, cost]);
      assert.equal(JSON.parse(await answer.text())["service_tier"], stated);
    }
  });

  it("is one tier under two names: OpenAI calls `priority` `fast` too", async (t) => {
    for (const stated of ["priority", "fast", undefined]) {
      const { billed } = await start(t, replyOf(stated));
      for (const asked of ["priority", "fast"])
        assert.deepEqual(await billed("m", asked), [asked, "24"]);
    }
  });

  it("is also the speed of a request in the format of Anthropic", async (t) => {
    const COSTS = [
      ["fast", "fast", "24"],
      ["fast", "standard", "12"],
      ["standard", "standard", "12"],
    ] as const;
    for (const [asked, speed, cost] of COSTS) {
      const tokens = { input_tokens: 1_000_000, output_tokens: 1_000_000 };
      const usage = { ...tokens, service_tier: "standard", speed };
      const content = [{ type: "text", text: "Hi." }];
      const reply = { type: "message", role: "assistant", content, stop_reason: "end_turn", usage };
      const { provider, url, data_dir } = await start(t, status(200, reply), {
        apis: ["messages"],
        providers: { lab: { dialect: "anthropic", thinking: null, passes: ["speed"] } },
      });
      const body = { model: "m", messages: user("hi"), max_tokens: 9, speed: asked };
      assert.equal((await post(`${url}/v1/messages`, body)).status, 200);
      assert.equal((await settled(data_dir, 1))[0]!["cost"], cost);
      const [{ body: sent }] = provider.asked as [Asked];
      assert.deepEqual([sent["speed"], sent["service_tier"]], [asked, undefined]);
    }
  });

  it("is not the speed of a request for a provider of another format, which does not get it", async (t) => {
    const { provider, data_dir, url } = await start(t, replyOf(), {
      apis: ["messages", "responses"],
      models: { m: { service_tiers: { fast: service_tiers.priority } } },
    });
    for (const [path, prompt] of [
      ["messages", { messages: user("hi"), max_tokens: 9 }],
      ["responses", { input: "hi" }],
    ] as const) {
      const body = { model: "m", speed: "fast", ...prompt };
      assert.equal((await post(`${url}/v1/${path}`, body)).status, 200);
      const [line] = (await settled(data_dir, provider.asked.length)).slice(-1);
      const { speed, service_tier } = provider.asked.at(-1)!.body;
      assert.deepEqual([speed, service_tier, line!["cost"]], [undefined, undefined, "12"]);
    }
  });

  it("applies again to the attempt that continues a reply, and each attempt has its own price", async (t) => {
    const usage = { ...USAGE, completion_tokens: 0, total_tokens: 1_000_000 };
    const hello = chunk({ content: "Hello." }, null, { service_tier: "default" });
    const goesOn = stream([chunk({ content: " World." }), chunk({}, "stop", { usage })]);
    const models = { m: { prefill: "plain", recovery: "continue" } };
    const { ask, data_dir } = await start(t, inTurn(stream([hello], "cut"), goesOn), { models });
    assert.match(await (await ask("m", "flex", { stream: true })).text(), /\[DONE\]/);
    const [line] = await settled(data_dir);
    const shares: Line[] = line!["attempts"].map(({ share }: Line) => share);
    const costs = shares.map(({ prices, cost }) => `${cost} at ${prices.output}`);
    assert.deepEqual(costs, ["0.000022 at 10", "1.00001 at 5"]);
  });

  it("must fit into a budget at its own price, or at the usual one if that is higher", async (t) => {
    const short = { max_tokens: 100 };
    const { ask, provider } = await start(t, replyOf(), budget("0.0015"));
    const refused = await ask("m", "priority", short);
    const { code } = (await json(refused)).error;
    assert.deepEqual([refused.status, code], [402, "insufficient_balance"]);
    assert.equal(provider.asked.length, 0);
    assert.equal((await ask("m", "flex", short)).status, 200);
    // The reply may use the usual tier, and then costs as much.
    const poor = await start(t, replyOf("default"), budget("0.001"));
    assert.equal((await poor.ask("m", "flex", short)).status, 402);
  });
});

describe("a long prompt", () => {
  const LONG = { above_tokens: 1_000, input_cache_miss: 4, input_cache_hit: 1, output: 15 };
  const longer = { above_tokens: 2_000, input_cache_miss: 8, output: 20 };
  const models = {
    m: {
      long_prompts: [LONG, longer],
      service_tiers: {
        flex: { input_cache_miss: 1, output: 5, long_prompts: [{ ...longer, output: 7 }] },
      },
    },
  };
  const usageOf = (prompt_tokens: number) => ({ prompt_tokens, completion_tokens: 1_000 });

  it("is billed completely at its own price, by the tokens that the reply states", async (t) => {
    let usage: object = usageOf(1_000);
    const { billed } = await start(
      t,
      (call) => status(200, { ...completion({ content: "Hi." }), usage })(call),
      { models },
    );
    const cached = { prompt_tokens_details: { cached_tokens: 1_000 } };
    const CASES: readonly [stated: object, cost: string, ...Parameters<typeof billed>][] = [
      [usageOf(1_000), "0.012", "m"],
      [usageOf(1_001), "0.019004", "m"],
      [{ ...usageOf(1_001), ...cached }, "0.016004", "m"],
      [usageOf(2_001), "0.036008", "m"],
      [usageOf(2_000), "0.007", "m", "flex"],
      [usageOf(2_001), "0.023008", "m", "flex"],
      [usageOf(2_001), "0.014002", "plain"],
    ];
    for (const [stated, expected, ...asked] of CASES) {
      usage = stated;
      const [, cost] = await billed(...asked);
      assert.equal(cost, expected);
    }
  });

  it("has the estimated length without usage, and the prices of its log line", async (t) => {
    const unstated = status(200, { ...completion({ content: "Hi." }), usage: undefined });
    const { ask, data_dir } = await start(t, unstated, { models });
    for (const characters of [4_000, 4_001])
      await ask("m", undefined, { messages: user("x".repeat(characters)) });
    const prices = (await settled(data_dir, 2)).map((line) => line["prices"]);
    const { above_tokens: _, ...long } = LONG;
    assert.deepEqual(prices, [PRICE, long]);
  });

  it("must fit into a budget if the prompt may be that long", async (t) => {
    const withBudget = (amount: string) => start(t, replyOf(), { models, ...budget(amount) });
    const { ask, provider } = await withBudget("0.0045");
    const asks = async (name: string, characters: number) =>
      (await ask(name, undefined, { max_tokens: 100, messages: user("x".repeat(characters)) }))
        .status;
    // 100 tokens of the reply, and one token for each byte of the prompt's JSON.
    assert.equal(await asks("m", 1_000), 402);
    assert.equal(await asks("plain", 1_000), 200);
    assert.equal(provider.asked.length, 1);
    const short = await withBudget("0.0015");
    assert.equal((await short.ask("m", undefined, { max_tokens: 100 })).status, 200);
  });

  it("applies from the reload that adds the first such price", async (t) => {
    const provider = await startProvider(t, replyOf());
    const data_dir = folder();
    const config = configFor(provider.url, ["m"], { data_dir, models: { m: { price: PRICE } } });
    const extensions = await loader.load(
      (entry) => entry.checks || entry.serves || isNeededBy(config, entry),
    );
    assert.ok(extensions.every(({ name }) => name !== "prices"));
    const { chat, gateway } = await startGateway(t, config, { extensions });
    const long_prompts = [LONG];
    gateway.reload(checkConfig(merge(config, { models: { m: { long_prompts } } }) as object));
    await chat({ model: "m", messages: user("hi") });
    const [line] = await settled(data_dir, 1);
    assert.equal(line?.["cost"], "19");
  });

  it("is rejected with lengths that do not ascend", () => {
    const refused = /^models\.m\.long_prompts: expected each above_tokens to be more than the one /;
    for (const first of [longer, LONG]) {
      const over = { models: { m: { price: PRICE, long_prompts: [first, LONG] } } };
      const config = configFor("http://127.0.0.1:9", ["m"], over);
      assert.throws(() => checkConfig(config), { message: refused });
    }
  });

  for (const setting of [{ long_prompts: [LONG] }, { service_tiers: models.m.service_tiers }])
    it(`is rejected if only ${Object.keys(setting)} have prices`, () => {
      const message = "models.m.price: is required with long_prompts or service_tiers";
      const config = configFor("http://127.0.0.1:9", ["m"], { models: { m: setting } });
      assert.throws(() => checkConfig(config), { message });
    });
});
