// `explain`: an alias's candidates in order, with reasons, and why other models are excluded; and
// the guarantees of unequal candidates, about which `check` warns.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ValidationError } from "../../../../src/core/schema/checker.ts";
import { configFile } from "../../../support/books.ts";
import { lines, outputOf } from "../../../support/command.ts";
import { checkConfig } from "../../../support/config.ts";
import { runHere } from "../../../support/run-here.ts";

describe("explain", () => {
  const price = (input_cache_miss: number, output: number) => ({ input_cache_miss, output });
  const lab = { provider: "lab", quality_score: 50, price: price(0.4, 0.8) };
  const config = configFile({
    providers: { lab: { dialect: "openai", base_url: "http://127.0.0.1:1" } },
    models: {
      cheap: { ...lab, context_tokens: 8_000 },
      good: { ...lab, reasoning: true, reasoning_score: 80, quality_score: 90, price: price(1, 1) },
      odd: { provider: "lab", reasoning: true, supports: [] },
    },
    aliases: {
      think: { policy: "reasoning" },
      value: { policy: "value" },
      mine: { models: ["odd", "cheap"], enabled: false },
    },
  });

  it("prints the candidates in order with reasons, and why others are excluded", async () => {
    const stdout = outputOf(await runHere(["explain", "value", "--config", config]));
    assert.deepEqual(lines(stdout), [
      "value: models by quality_score per blended price (3 parts input, 1 part output), highest first",
      "  rank  model  provider  why",
      "     1  cheap  lab       quality_score 50 / blended price 0.5 USD = 100.00",
      "     2  good   lab       quality_score 90 / blended price 1 USD = 90.00",
      "     -  odd    lab       out: no quality_score",
      "A request goes to the first model that supports what it needs, that its key may use and whose provider is healthy. GET /status on the admin listener shows which are.",
      "Wrapped around each request, outermost first: budgets, fastest, cache-hints, context-room, provider-limits, left-streams, key-pool, capacity.",
    ]);
  });

  it("needs no secrets, like other commands that call no provider", async () => {
    const file = configFile({
      providers: { lab: { vendor: "deepseek", api_key: "$NO_SUCH_VARIABLE" } },
      models: { m: { provider: "lab" } },
      aliases: { a: { models: ["m"] } },
      keys: [{ account: "acme", key: "$file:none" }],
    });
    const { code, stderr } = await runHere(["explain", "a", "--config", file]);
    assert.deepEqual([code, stderr], [0, ""]);
  });

  it("says that no request goes to the candidates of a disabled alias", async () => {
    const { stdout } = await runHere(["explain", "mine", "--config", config]);
    assert.match(stdout, /^mine \(disabled\): /);
    assert.match(stdout, /not exist for clients: every request gets 404 model_not_found/);
    assert.doesNotMatch(stdout, /A request goes to/);
  });

  for (const [alias, ...expected] of [
    [
      "think",
      "reasoning, true",
      "1 good: reasoning_score 80",
      "2 odd: thinks, but has no reasoning_score",
      "null cheap: out: not a reasoning model (reasoning is not true)",
    ],
    [
      "mine",
      "list, false",
      "1 odd: number 1 in the alias's list",
      "2 cheap: number 2 in the alias's list",
    ],
  ] as const)
    it(`${alias} --json, for programs`, async () => {
      const { stdout } = await runHere(["explain", alias, "--json", "--config", config]);
      const { policy, enabled, candidates } = JSON.parse(stdout);
      const rows = candidates.map(({ rank, model, why }: any) => `${rank} ${model}: ${why}`);
      assert.deepEqual([`${policy}, ${enabled}`, ...rows], expected);
    });

  it("an alias without a candidate: explain shows its requests' error, check warns", async () => {
    const none = configFile({
      providers: { demo: { dialect: "demo" } },
      models: { m: { provider: "demo" } },
      aliases: { empty: { policy: "value" } },
    });
    const { stdout } = await runHere(["explain", "empty", "--config", none]);
    assert.match(stdout, /There is no candidate: every request gets 503/);
    const { code, stderr } = await runHere(["check", "--config", none]);
    assert.deepEqual([code, lines(stderr).length], [0, 1]);
    assert.match(stderr, /warning: aliases\.empty has no candidate: every request/);
  });

  for (const [name, words] of [
    ["good", "is a model, not an alias, and has no fallback; aliases: think, value, mine"],
    ["ghost", "is not an alias here; aliases: think, value, mine"],
  ] as const)
    it(`${name}, which is not an alias: one line, exit 1`, async () => {
      const { code, stderr } = await runHere(["explain", name, "--config", config]);
      assert.deepEqual([code, stderr], [1, `chat-gateway: '${name}' ${words}\n`]);
    });
});

describe("unequal candidates of an alias", () => {
  const model = (reasoning_score: number, blended: number) => ({
    provider: "demo",
    ...{ reasoning: true, reasoning_score, quality_score: 10 },
    price: { input_cache_miss: blended, output: blended },
  });
  const settings = (b: object, alias: object) => ({
    providers: { demo: { dialect: "demo" } },
    models: { a: model(60, 1), b },
    aliases: { x: alias },
  });
  const policy = "reasoning";
  const [value, bounded] = [{ policy: "value" }, { policy: "value", min_score: 4 }];
  const [like, dearer, weaker] = [model(30, 10), model(59, 10.1), model(29, 1)];
  const cheaper = { ...model(60, 0.5), quality_score: 4 };
  const dear = /^falls back as far as b, which costs more than ten times as much as a: max_price/;
  const weak = /^falls back as far as b, which scores less than half of a: max_price/;

  for (const [situation, b, alias, warning, isOut = false] of [
    ["within ten times the price and half of the score", like, { policy }, undefined],
    ["more than ten times as dear", dearer, { policy }, dear],
    ["less than half of the score", weaker, { policy }, weak],
    ["both", model(29, 11), { policy }, /costs more than ten .*scores less than half of a/],
    ["a price that the operator has bounded", dearer, { policy, max_price: 10.1 }, undefined],
    ["a bound that leaves the dear one out", dearer, { policy, max_price: 10 }, undefined, true],
    ["a bound that leaves the weak one out", weaker, { policy, min_score: 29.5 }, undefined, true],
    ["as good, at less for the money", { ...like, quality_score: 9 }, value, undefined],
    ["at half the price, but not half as good", cheaper, value, weak],
    ["a quality that is bounded", { ...model(60, 1), quality_score: 4 }, bounded, undefined],
    ["a list, the operator's own choice", model(1, 1_000), { models: ["a", "b"] }, undefined],
    ["an alias that is switched off", dearer, { policy, enabled: false }, undefined],
  ] as const)
    it(situation, async () => {
      const file = configFile(settings(b, alias));
      const checked = await runHere(["check", "--json", "--config", file]);
      const found = JSON.parse(checked.stdout).warnings.filter(
        ({ path, message }: any) => path === "aliases.x" && !message.includes("context_tokens"),
      );
      assert.equal(found.length, warning ? 1 : 0);
      if (warning) assert.match(found[0].message, warning);
      const explained = await runHere(["explain", "x", "--json", "--config", file]);
      const { candidates } = JSON.parse(explained.stdout);
      const ranks = candidates.map((each: any) => `${each.model} ${each.rank}`);
      assert.deepEqual(ranks, ["a 1", `b ${isOut ? null : 2}`]);
      if (isOut) assert.match(candidates[1].why, /^out: .*(above max_price|below min_score) /);
    });

  it("have no guaranteed limits in a list, from which these candidates are rejected", () => {
    for (const bound of [{ min_score: 1 }, { max_price: 1 }]) {
      const config = settings(like, { models: ["a"], ...bound });
      assert.throws(() => checkConfig(config), ValidationError);
    }
  });
});
