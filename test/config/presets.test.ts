// Vendor presets and traits, and the order in which policies and lists rank models.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { checkConfig as checkCoreConfig } from "../../src/config/check.ts";
import { partial } from "../../src/config/fields.ts";
import vendorsJson from "../../src/config/vendors.json" with { type: "json" };
import { traitsOf } from "../../src/config/vendors.ts";
import { createSecretFiles } from "../../src/config/secrets.ts";
import { install } from "../../src/core/extension/install.ts";
import { traitChecks } from "../../src/config/traits.ts";
import { withOverrides } from "../../src/core/routing/model.ts";
import {
  boolean,
  array,
  byType,
  literal,
  nonEmpty,
  object,
  optional,
  pathText,
  record,
  type ValidationError,
} from "../../src/core/schema/checker.ts";
import { formats } from "../support/config.ts";
import { rank } from "../../src/config/policy.ts";
import { settingsFor } from "../support/routing.ts";

describe("vendor presets", () => {
  it("set known traits only, and the generic one sets every required trait", () => {
    const switches = [...formats.dialects.values()].flatMap((dialect) => dialect.thinkingSwitches);
    const fields = { ...traitChecks, thinking: literal(...switches) };
    const traits = object(partial(fields), { strict: true });
    const texts = record(nonEmpty);
    const common = {
      dialect: literal(...formats.dialects.keys()),
      base_url: optional(nonEmpty),
      needs_key: optional(boolean()),
      like: optional(literal(...Object.keys(vendorsJson))),
      traits: optional(traits),
      reasoning: optional(traits),
    };
    const row = object(
      {
        ...common,
        title: nonEmpty,
        note: nonEmpty,
        hosts: optional(texts),
        versioned: optional(traits),
        variants: optional(record(object(common, { strict: true }))),
        by_model: optional(
          array(array(byType({ string: nonEmpty, object: traits }), { min: 2, max: 3 })),
        ),
      },
      { strict: true },
    );
    const rows = record(row)(vendorsJson, true);
    assert.ok(rows.size > 10);
    object(fields, { strict: true })(vendorsJson.generic.traits, true);
  });

  it("with unknown formats cause one issue", () => {
    const nothing = { extensions: [], entries: [], installed: install([]) };
    const core = { env: {}, secretFiles: createSecretFiles(""), ...nothing };
    const faulty = (path: string, provider: object) =>
      assert.throws(
        () => checkCoreConfig({ providers: { x: provider }, models: {} }, core),
        ({ issues }: ValidationError) => issues.map((each) => pathText(each.path)).join() === path,
      );
    const base_url = "http://x";
    faulty("providers.x.vendor", { vendor: "anthropic", dialect: "openai", base_url });
    faulty("providers.x.vendor", { vendor: "anthropic", thinking: "thinking" });
    faulty("providers.x.dialect", { dialect: "anthropic", thinking: "thinking" });
    faulty("providers.x.thinking", { vendor: "deepseek", thinking: "adaptive" });
  });
});

it("traits are the vendor's, overridden by the provider's, overridden by the model's", () => {
  const traits = traitsOf(
    { vendor: "deepseek", think_tags: true, max_temperature: 1 },
    { reasoning: false, max_temperature: 0.5 },
  );
  assert.deepEqual(
    [traits.thinking, traits.think_tags, traits.max_temperature, traits.tool_choice],
    ["thinking", true, 0.5, "all"],
  );
});

it("overrides are the fields that are set and that the general object has", () => {
  const general: { a: number; b: number } = { a: 1, b: 2 };
  assert.deepEqual(withOverrides(general, { a: 3, b: undefined, c: 4 }), { a: 3, b: 2 });
});

it("a path set without a path for streams applies to streams too", () => {
  const model = { reasoning: false };
  const vertex = { vendor: "vertex", dialect: "gemini" };
  assert.match(traitsOf(vertex, model).stream_path!, /streamGenerateContent/);
  const own = traitsOf({ ...vertex, path: "/own" }, model);
  assert.deepEqual([own.path, own.stream_path], ["/own", "/own"]);
  const ofModel = traitsOf(
    { ...vertex, path: "/own" },
    { ...model, path: "/m", stream_path: "/s" },
  );
  assert.deepEqual([ofModel.path, ofModel.stream_path], ["/m", "/s"]);
});

it("headers and query parameters of vendor, provider and model add up", () => {
  const provider = { vendor: "anthropic", headers: { "x-team": "search" }, query: { a: "1" } };
  const model = { reasoning: false, headers: { "x-team": "chat" }, query: { b: "2" } };
  const { headers, query } = traitsOf(provider, model);
  assert.deepEqual(headers, { "anthropic-version": "2023-06-01", "x-team": "chat" });
  assert.deepEqual(query, { a: "1", b: "2" });
});

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

  it("with min_quality or min_score skips models with a lower quality_score", () => {
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
