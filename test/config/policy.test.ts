// The order in which policies and lists rank models.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { rank } from "../../src/config/policy.ts";
import { settingsFor } from "../support/routing.ts";

const price = (input_cache_miss: number, output: number) => ({ input_cache_miss, output });
const order = (ranked: ReturnType<typeof rank>) =>
  ranked.map(({ model, rank: place }) => [model, place]);

describe("policy reasoning", () => {
  const settings = settingsFor({
    plain: { reasoning_score: 99 },
    unknown: { reasoning: true },
    weak: { reasoning: true, reasoning_score: 10 },
    strong: { reasoning: true, reasoning_score: 80 },
    equal: { reasoning: true, reasoning_score: 80 },
  });

  it("ranks the strongest first, and leaves out models that do not think", () => {
    const ranked = rank(settings, { policy: "reasoning", enabled: true });
    assert.deepEqual(order(ranked), [
      ["strong", 1],
      ["equal", 2],
      ["weak", 3],
      ["unknown", 4],
      ["plain", null],
    ]);
    assert.equal(ranked[3]!.why, "thinks, but has no reasoning_score");
  });
});

describe("policy value", () => {
  const settings = settingsFor({
    dear: { quality_score: 90, price: price(10, 30) },
    cheap: { quality_score: 60, price: price(0.1, 0.3) },
    free: { quality_score: 5, price: price(0, 0) },
    unpriced: { quality_score: 70 },
    unscored: { price: price(1, 1) },
  });

  it("ranks quality per blended price, free models first, and leaves out what is unknown", () => {
    const ranked = rank(settings, { policy: "value", enabled: true });
    assert.deepEqual(order(ranked), [
      ["free", 1],
      ["cheap", 2],
      ["dear", 3],
      ["unpriced", null],
      ["unscored", null],
    ]);
    assert.equal(ranked[1]!.why, "quality_score 60 / blended price 0.15 USD = 400.00");
    assert.equal(ranked[0]!.why, "quality_score 5 / blended price 0 USD = free");
  });
});

describe("a bound of a policy", () => {
  const settings = settingsFor({
    dear: { quality_score: 90, price: price(10, 30), reasoning: true, reasoning_score: 90 },
    cheap: { quality_score: 60, price: price(0.1, 0.3), reasoning: true, reasoning_score: 40 },
    free: { quality_score: 5, reasoning: true, reasoning_score: 41 },
    unscored: { reasoning: true },
  });

  it("min_score leaves out models with a lower score, and those without one", () => {
    const ranked = rank(settings, { policy: "reasoning", min_score: 41, enabled: true });
    assert.deepEqual(order(ranked), [
      ["dear", 1],
      ["free", 2],
      ["cheap", null],
      ["unscored", null],
    ]);
    assert.deepEqual(
      ranked.slice(2).map(({ why }) => why),
      [
        "out: reasoning_score 40, below min_score 41",
        "out: thinks, but has no reasoning_score, below min_score 41",
      ],
    );
  });

  it("max_price leaves out models whose blended price is higher; no price is no cost", () => {
    const ranked = rank(settings, { policy: "reasoning", max_price: 0.15, enabled: true });
    assert.deepEqual(order(ranked), [
      ["free", 1],
      ["cheap", 2],
      ["unscored", 3],
      ["dear", null],
    ]);
    assert.equal(ranked[3]!.why, "out: blended price 15 USD above max_price 0.15");
  });

  it("min_quality and min_score leave out models with a lower quality_score", () => {
    for (const policy of ["value", "fastest"] as const)
      for (const bound of [{ min_quality: 60 }, { min_score: 60 }]) {
        const ranked = rank(settings, { policy, ...bound, enabled: true });
        const candidates = ranked.filter((row) => row.rank !== null).map(({ model }) => model);
        assert.deepEqual(candidates.sort(), ["cheap", "dear"], policy);
        const free = ranked.find(({ model }) => model === "free");
        assert.match(free!.why, /^out: .*(no price|below min_\w+ 60)$/);
      }
  });
});
