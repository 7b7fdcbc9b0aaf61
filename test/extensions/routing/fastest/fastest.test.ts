// The policy "fastest": which models are candidates, and in which order they are tried, with a
// clock and random numbers that the test sets.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { byTime } from "../../../../src/extensions/routing/fastest/index.ts";
import { createMedians } from "../../../../src/extensions/routing/fastest/medians.ts";
import { isNeededBy } from "../../../../src/config/loader.ts";
import { checkConfig, loader } from "../../../support/config.ts";
import { createFakeClock } from "../../../support/fake-clock.ts";
import { configFor, json, startGateway, user } from "../../../support/gateway.ts";
import { speak, startProvider } from "../../../support/provider.ts";
import { until } from "../../../support/wait.ts";
import { issueLines } from "../../../support/token-service.ts";

const scored = (quality_score: number) => ({ quality_score, reasoning: false });
const settings = (alias: object) =>
  configFor("http://127.0.0.1:9", ["a", "b", "c"], {
    models: { a: scored(90), b: scored(80), c: scored(40) },
    aliases: { x: { policy: "fastest", ...alias } },
  });

it("medians of times to first token cover the last ten minutes, and at most 500 samples", () => {
  const clock = createFakeClock();
  const medians = createMedians(clock.monotonic);
  assert.equal(medians.of("a"), undefined);
  for (const ms of [10, 1000, 30]) medians.add("a", ms);
  assert.equal(medians.of("a"), 30);
  clock.advance(599_999);
  medians.add("a", 5);
  assert.equal(medians.of("a"), 30);
  clock.advance(1_000);
  assert.equal(medians.of("a"), 5);
  clock.advance(599_000);
  assert.equal(medians.of("a"), undefined);
  medians.add("a", 7);
  assert.equal(medians.of("a"), 7, "it counts at once");
  for (let i = 0; i < 2_000; i += 1) medians.add("b", i);
  assert.equal(medians.of("b"), 1_750);
});

describe("the order of the policy fastest", () => {
  /** Orders the candidates a, b and c of the alias x, with these medians. */
  function bench(times: Readonly<Record<string, number>>, chances: readonly number[] = []) {
    const clock = createFakeClock();
    const medians = createMedians(clock.monotonic);
    for (const [name, ms] of Object.entries(times)) medians.add(name, ms);
    const left = [...chances];
    const states: Record<string, string> = {};
    const aliases = new Map(["fastest", "value"].map((policy, at) => ["xy"[at], { policy }]));
    const wrap = byTime(medians, () => left.shift() ?? 0.99);
    const candidates = ["a", "b", "c"].map((name) => ({
      name,
      status: () => ({ retryMs: states[name] === undefined ? 0 : 5 }),
    }));
    const orderOf = async (stream = true, model = "x"): Promise<string> => {
      let order = "";
      const complete = wrap((async (_chat: object, models: readonly { name: string }[]) => {
        order = models.map(({ name }) => name).join("");
      }) as never);
      await complete(
        { model, stream } as never,
        candidates as never,
        (() => undefined) as never,
        { clock, config: { aliases } } as never,
      );
      return order;
    };
    return { clock, orderOf, states };
  }

  it("is by median, with another model first in one of fifty streams", async () => {
    const times = { a: 3, b: 1, c: 2 };
    assert.equal(await bench(times).orderOf(), "bca");
    assert.equal(await bench(times, [0.0199, 0.6]).orderOf(), "abc");
    assert.equal(await bench(times, [0.02, 0.6]).orderOf(), "bca");
    assert.equal(await bench(times, [0.0199, 0.6]).orderOf(false), "bca");
    assert.equal(await bench(times).orderOf(true, "y"), "abc", "another policy has its own order");
  });

  it("puts a model without a time first, once a minute", async () => {
    const { clock, orderOf } = bench({ a: 3, b: 1 });
    assert.equal(await orderOf(false), "bac", "only streams are measured");
    assert.equal(await orderOf(), "cba");
    assert.equal(await orderOf(), "bac");
    clock.advance(60_000);
    assert.equal(await orderOf(), "cba");
  });

  it("puts models with open breakers last", async () => {
    const { orderOf, states } = bench({ a: 3, b: 1, c: 2 });
    states["b"] = "open";
    assert.equal(await orderOf(), "cab");
  });
});

describe("an alias with the policy fastest", () => {
  it("has the models of at least min_quality as candidates, for reasons that stay true", () => {
    const { ranking } = checkConfig(settings({ min_quality: 50 })).aliases.get("x")!;
    const ranks = ranking.map(({ model, rank }) => `${model} ${rank}`);
    assert.deepEqual(ranks, ["a 1", "b 2", "c null"]);
    assert.equal(ranking[0]?.why, "quality_score 90, which counts until it is measured");
    const other = settings({ policy: "reasoning", min_quality: 50 });
    const issue =
      /^aliases\.x\.min_quality: bounds quality_score; the policy reasoning has min_score/;
    assert.match(issueLines(() => checkConfig(other)).join(), issue);
  });

  it("tries each model once, then keeps to the faster one, and shows the medians", async (t) => {
    t.mock.method(Math, "random", () => 0.99);
    const clock = createFakeClock();
    const provider = await startProvider(t, (asked) => {
      clock.advance(asked.body["model"] === "a" ? 60 : 40);
      return speak("Hi.")(asked);
    });
    const models = { a: scored(90), b: scored(80) };
    const config = configFor(provider.url, ["a", "b"], { models });
    // The policy is added by a reload: a gateway loads its extensions only at start.
    const extensions = await loader.load(
      (entry) => entry.checks || entry.serves || isNeededBy(config, entry),
    );
    const { chat, gateway } = await startGateway(t, config, { ...clock, extensions });
    const aliases = { x: { policy: "fastest" } };
    gateway.reload(checkConfig({ ...config, aliases }));
    const served: string[] = [];
    for (let i = 0; i < 5; i += 1) {
      const answer = await chat({ model: "x", messages: user("hi"), stream: true });
      served.push(/"model":"(\w)"/.exec(await answer.text())?.[1] ?? "");
    }
    assert.deepEqual(served.slice(0, 2).sort(), ["a", "b"]);
    assert.deepEqual(served.slice(2), ["b", "b", "b"]);
    const status = await until(async () => {
      const { first_token_ms: times } = await json(await fetch(`${gateway.adminAddress()}/status`));
      return times?.a > times?.b ? times : undefined;
    }, "the medians in /status");
    assert.deepEqual(Object.keys(status).sort(), ["a", "b"]);
  });
});
