// Vendors' presets and traits.

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
  literal,
  nonEmpty,
  object,
  optional,
  pathText,
  record,
  type ValidationError,
} from "../../src/core/schema/checker.ts";
import { formats } from "../support/config.ts";

describe("vendor presets", () => {
  it("state known traits only, and the generic one all that must be stated", () => {
    const switches = [...formats.dialects.values()].flatMap((dialect) => dialect.thinkingSwitches);
    const fields = { ...traitChecks, thinking: literal(...switches) };
    const traits = object(partial(fields), { strict: true });
    const texts = record(nonEmpty);
    const common = {
      dialect: literal(...formats.dialects.keys()),
      base_url: optional(nonEmpty),
      like: optional(literal(...Object.keys(vendorsJson))),
      traits: optional(traits),
      reasoning: optional(traits),
    };
    const row = object(
      {
        ...common,
        title: nonEmpty,
        note: nonEmpty,
        needs_key: optional(boolean()),
        hosts: optional(texts),
        versioned: optional(traits),
        variants: optional(record(object(common, { strict: true }))),
        by_model: optional(array(array(nonEmpty, { min: 2, max: 2 }))),
      },
      { strict: true },
    );
    const rows = record(row)(vendorsJson, true);
    assert.ok(rows.size > 10);
    object(fields, { strict: true })(vendorsJson.generic.traits, true);
  });

  it("of formats that nothing knows are one fault", () => {
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

it("overrides are those fields that are stated, and that the general object has", () => {
  const general: { a: number; b: number } = { a: 1, b: 2 };
  assert.deepEqual(withOverrides(general, { a: 3, b: undefined, c: 4 }), { a: 3, b: 2 });
});

it("a path that is stated without one of streams is that of streams, too", () => {
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
