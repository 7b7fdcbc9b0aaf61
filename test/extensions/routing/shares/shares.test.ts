// aliases.A.weights: which model is tried first, with random numbers that the test sets; what the
// draw excludes; sticky conversations; issues; what `explain` says.

import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { configFile } from "../../../support/books.ts";
import { checkConfig } from "../../../support/config.ts";
import { configFor, json, startWith, user } from "../../../support/gateway.ts";
import { speak, status, type Behaviour } from "../../../support/provider.ts";
import { runHere } from "../../../support/run-here.ts";
import { issueLines } from "../../../support/token-service.ts";

const split = { models: ["a", "b", "c"], weights: { a: 90, c: 10 } };

async function start(
  t: TestContext,
  behaviours: Record<string, Behaviour> = {},
  over: object = {},
) {
  let chance = 0;
  const clock = { now: 0 };
  t.mock.method(Math, "random", () => chance);
  const all = { a: speak("A."), b: speak("B."), c: speak("C."), ...behaviours };
  const aliases = { split, sticky: { ...split, sticky: true } };
  const breaker = { failures: 1, cooldown_ms: 600_000 };
  const config = { aliases, breaker, ...over };
  const { chat, provider } = await startWith(t, all, config, { monotonic: () => clock.now });
  /** The model that served if the random number is this one (0 to 1). */
  const servedAt = async (point: number, text = "hi", model = "split"): Promise<string> => {
    chance = point;
    return (await json(await chat({ model, messages: user(text) }))).model;
  };
  return { servedAt, provider, clock };
}

describe("an alias with weights", () => {
  it("tries the drawn model first, and never draws one without a weight", async (t) => {
    const { servedAt } = await start(t);
    const points = [0, 0.5, 0.899, 0.9, 0.999];
    const served = [];
    for (const point of points) served.push(await servedAt(point));
    assert.deepEqual(served, ["a", "a", "a", "c", "c"]);
  });

  it("falls back to the others in order", async (t) => {
    const { servedAt, provider } = await start(t, { a: status(500), c: status(500) });
    assert.equal(await servedAt(0.95), "b");
    const asked = provider.asked.map(({ body }) => body["model"]);
    assert.deepEqual(asked, ["c", "a", "b"]);
  });

  it("draws among models whose breakers are closed or allow a probe", async (t) => {
    let fails = true;
    const behaviour: Behaviour = (asked) => (fails ? status(500) : speak("A."))(asked);
    const { servedAt, provider, clock } = await start(t, { a: behaviour });
    assert.deepEqual([await servedAt(0), await servedAt(0)], ["b", "c"]);
    assert.equal(provider.asked.filter(({ body }) => body["model"] === "a").length, 1);
    fails = false;
    clock.now += 599_999;
    assert.equal(await servedAt(0), "c");
    clock.now += 1;
    assert.deepEqual([await servedAt(0), await servedAt(0)], ["a", "a"]);
  });

  it("draws among models with room for the prompt", async (t) => {
    const models = { a: { context_tokens: 1_000 } };
    const { servedAt } = await start(t, {}, { models });
    assert.equal(await servedAt(0), "a");
    const long = "word ".repeat(5_000);
    assert.deepEqual([await servedAt(0, long), await servedAt(0.999, long)], ["c", "c"]);
  });

  it("keeps a conversation at its drawn model if the alias is sticky", async (t) => {
    const { servedAt } = await start(t);
    assert.equal(await servedAt(0.95, "first", "sticky"), "c");
    assert.equal(await servedAt(0, "first", "sticky"), "c");
    assert.equal(await servedAt(0, "second", "sticky"), "a");
  });
});

describe("weights", () => {
  const models = ["a", "b"];
  const CASES: readonly [alias: object, issue: string][] = [
    [{ models, weights: { a: 1, b: 0 } }, ""],
    [{ models, weights: { a: 1, z: 1 } }, "weights.z: is not among the alias's models"],
    [{ models, weights: { a: 0 } }, "weights: expected a weight of more than 0"],
    [{ policy: "value", weights: { a: 1 } }, "weights: may only be set together with models"],
    [{ models, weights: { a: -1 } }, "weights.a: expected an integer from 0 to 1000000, got -1"],
    [{ models, weights: { a: 0.5 } }, "weights.a: expected an integer, got 0.5"],
  ];
  it("are rejected with their paths", () => {
    for (const [x, issue] of CASES) {
      const config = configFor("http://127.0.0.1:9", models, { aliases: { x } });
      const issues = issueLines(() => checkConfig(config));
      assert.deepEqual(issues, issue ? [`aliases.x.${issue}`] : []);
    }
  });

  it("are shown as shares by explain", async () => {
    const config = configFor("http://127.0.0.1:9", ["a", "b", "c"], { aliases: { split } });
    const { stdout } = await runHere(["explain", "split", "--config", configFile(config)]);
    assert.match(stdout, /Requests are split: a 90 %, c 10 %\./);
  });
});
