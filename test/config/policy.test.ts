// The order in which policies and lists rank models.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { rank } from "../../src/config/policy.ts";
import { settingsFor } from "../support/routing.ts";

const price = (input_cache_miss: number, output: number) => ({ input_cache_miss, output });
const reasoning = settingsFor({
  plain: { reasoning_score: 99 },
  unknown: { reasoning: true },
  weak: { reasoning: true, reasoning_score: 10 },
  strong: { reasoning: true, reasoning_score: 80 },
  equal: { reasoning: true, reasoning_score: 80 },
});
const value = settingsFor({
  dear: { quality_score: 90, price: price(10, 30) },
  cheap: { quality_score: 60, price: price(0.1, 0.3) },
  free: { quality_score: 5, price: price(0, 0) },
  unpriced: { quality_score: 70 },
  unscored: { price: price(1, 1) },
});
const both = settingsFor({
  dear: { quality_score: 90, price: price(10, 30), reasoning: true, reasoning_score: 90 },
  cheap: { quality_score: 60, price: price(0.1, 0.3), reasoning: true, reasoning_score: 40 },
  free: { quality_score: 5, reasoning: true, reasoning_score: 41 },
  unscored: { reasoning: true },
});

describe("a policy", () => {
  for (const [name, settings, alias, ranked, whys] of [
    [
      "reasoning ranks the strongest first, and leaves out models that do not think",
      reasoning,
      { policy: "reasoning" },
      ["strong 1", "equal 2", "weak 3", "unknown 4", "plain null"],
      { unknown: "thinks, but has no reasoning_score" },
    ],
    [
      "value ranks quality per blended price, free models first, and leaves out what is unknown",
      value,
      { policy: "value" },
      ["free 1", "cheap 2", "dear 3", "unpriced null", "unscored null"],
      {
        free: "quality_score 5 / blended price 0 USD = free",
        cheap: "quality_score 60 / blended price 0.15 USD = 400.00",
      },
    ],
    [
      "with min_score leaves out models with a lower score, and those without one",
      both,
      { policy: "reasoning", min_score: 41 },
      ["dear 1", "free 2", "cheap null", "unscored null"],
      {
        cheap: "out: reasoning_score 40, below min_score 41",
        unscored: "out: thinks, but has no reasoning_score, below min_score 41",
      },
    ],
    [
      "with max_price leaves out models whose blended price is higher; no price is no cost",
      both,
      { policy: "reasoning", max_price: 0.15 },
      ["free 1", "cheap 2", "unscored 3", "dear null"],
      { dear: "out: blended price 15 USD above max_price 0.15" },
    ],
  ] as const)
    it(name, () => {
      const rows = rank(settings, { ...alias, enabled: true });
      assert.deepEqual(
        rows.map((row) => `${row.model} ${row.rank}`),
        ranked,
      );
      for (const [model, why] of Object.entries(whys))
        assert.equal(rows.find((row) => row.model === model)!.why, why);
    });

  it("with min_quality or min_score leaves out models with a lower quality_score", () => {
    for (const policy of ["value", "fastest"] as const)
      for (const bound of [{ min_quality: 60 }, { min_score: 60 }]) {
        const ranked = rank(both, { policy, ...bound, enabled: true });
        const candidates = ranked.filter((row) => row.rank !== null).map(({ model }) => model);
        assert.deepEqual(candidates.sort(), ["cheap", "dear"], policy);
        const free = ranked.find(({ model }) => model === "free");
        assert.match(free!.why, /^out: .*(no price|below min_\w+ 60)$/);
      }
  });
});
