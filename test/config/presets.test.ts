// Vendors' presets and traits, from whichever formats are registered.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { compatibleDialectDefinition } from "../../src/extensions/providers/compatible/index.ts";
import { url } from "../../src/config/fields.ts";
import { traitFields } from "../../src/config/traits.ts";
import vendorsJson from "../../src/config/vendors.json" with { type: "json" };
import { traitsOf, vendorPreset, vendorPresets } from "../../src/config/vendors.ts";
import { partial, record } from "../../src/config/dictionaries.ts";
import { withOverrides } from "../../src/core/routing/model.ts";
import { boolean, literal, nonEmpty, object, optional } from "../../src/core/schema/checker.ts";
import { formats } from "../support/config.ts";

const PRESETS = vendorPresets([compatibleDialectDefinition]);
const native = {
  ...compatibleDialectDefinition,
  name: "anthropic",
  thinkingSwitches: ["adaptive", "budget"],
};

describe("vendor presets", () => {
  it("state known traits only, and the generic one all that must be stated", () => {
    const fields = traitFields([...formats.dialects.values()]);
    const traits = object(partial(fields), { strict: true });
    const row = object(
      {
        title: nonEmpty,
        dialect: literal(...formats.dialects.keys()),
        base_url: optional(url),
        needs_key: optional(boolean()),
        note: nonEmpty,
        traits,
        reasoning: optional(traits),
      },
      { strict: true },
    );
    const rows = record(row)(vendorsJson, true);
    assert.ok(rows.size > 10);
    object(fields, { strict: true })(vendorsJson.generic.traits, true);
  });

  it("have the vendors of the registered formats only", () => {
    assert.ok(PRESETS.has("deepseek"));
    assert.ok(!PRESETS.has("anthropic"));
    assert.ok(vendorPresets([compatibleDialectDefinition, native]).has("anthropic"));
  });

  it("are found by vendor, by a native format, and as the generic one by the OpenAI format", () => {
    const presets = vendorPresets([compatibleDialectDefinition, native]);
    assert.equal(vendorPreset(presets, { vendor: "openai" })?.title, "OpenAI");
    assert.equal(vendorPreset(presets, { dialect: "anthropic" })?.title, "Anthropic");
    assert.equal(vendorPreset(presets, { dialect: "openai" }), presets.get("generic"));
    assert.equal(vendorPreset(presets, { vendor: "nobody" }), undefined);
    assert.equal(vendorPreset(presets, {}), undefined);
  });

  it("have other traits for models that think", () => {
    const { traits, reasoningTraits } = PRESETS.get("openai")!;
    assert.ok(!traits.omit.includes("temperature") && reasoningTraits.omit.includes("temperature"));
  });
});

describe("traits", () => {
  it("are the vendor's, overridden by the provider's, overridden by the model's", () => {
    const traits = traitsOf(
      PRESETS,
      { vendor: "deepseek", think_tags: true, max_temperature: 1 },
      { reasoning: false, max_temperature: 0.5 },
    );
    assert.deepEqual(
      [traits.thinking, traits.think_tags, traits.max_temperature, traits.tool_choice],
      ["thinking", true, 0.5, "all"],
    );
  });

  it("know the thinking switches of the registered formats only", () => {
    const { thinking } = traitFields([compatibleDialectDefinition]);
    assert.equal(thinking("always"), "always");
    assert.throws(() => thinking("adaptive"));
    assert.equal(
      traitFields([compatibleDialectDefinition, native]).thinking("adaptive"),
      "adaptive",
    );
  });
});

it("overrides are those fields that are stated, and that the general object has", () => {
  const general: { a: number; b: number } = { a: 1, b: 2 };
  assert.deepEqual(withOverrides(general, { a: 3, b: undefined, c: 4 }), { a: 3, b: 2 });
  assert.deepEqual(withOverrides(general), general);
});
