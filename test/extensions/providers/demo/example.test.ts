// Values by example: what is taken from a schema, and that a hostile one costs no time.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { exampleOf } from "../../../../src/extensions/providers/demo/example.ts";
import { startEffort } from "../../../support/effort.ts";

const example = (schema: Record<string, unknown>) => exampleOf(schema, "Why?");
const named = (count: number, make: (index: number) => unknown) =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`p${index}`, make(index)]));

describe("an example", () => {
  for (const [schema, value] of [
    [{ const: 7 }, 7],
    [{ enum: ["a", "b"] }, "a"],
    [{ type: "integer", minimum: 5 }, 5],
    [{ type: "number", maximum: -1 }, -1],
    [{ type: "string" }, "Why?"],
    [{ type: "string", format: "date" }, "2026-01-01"],
    [{ type: ["null", "boolean"] }, true],
    [{ type: "array", items: { type: "null" }, minItems: 2 }, [null, null]],
    [{ anyOf: [{ type: "null" }, { type: "integer" }] }, 1],
    [{ properties: { city: { type: "string" } } }, { city: "Oslo" }],
    [{ type: "object", properties: { a: { const: 1 }, b: {} }, required: ["a"] }, { a: 1 }],
    [{ $ref: "#/$defs/a", $defs: { a: { const: 1 } } }, 1],
    [{ type: "object", required: ["absent"] }, { absent: null }],
  ] as const)
    it(`of ${JSON.stringify(schema)} is ${JSON.stringify(value)}`, () =>
      assert.deepEqual(example(schema), value));

  it("ends where a schema that refers to itself allows it", () => {
    const node = { anyOf: [{ $ref: "#" }, { type: "null" }] };
    const schema = {
      type: "object",
      required: ["left", "right"],
      properties: { left: node, right: node },
    };
    assert.ok(JSON.stringify(example(schema)).length < 200);
  });
});

describe("a hostile schema", () => {
  const self = { $ref: "#" };
  const ten = named(10, () => self);
  for (const [name, schema] of [
    [
      "ten required properties of itself",
      { type: "object", properties: ten, required: Object.keys(ten) },
    ],
    [
      "ten lists of itself",
      {
        type: "object",
        properties: named(10, () => ({ type: "array", minItems: 1_000, items: self })),
        required: Object.keys(ten),
      },
    ],
    [
      "a large constant in a long list",
      { type: "array", minItems: 1_000, items: { const: "x".repeat(250_000) } },
    ],
    [
      "a long reference in a long list",
      { type: "array", minItems: 1_000, items: { $ref: `#/${"a/".repeat(120_000)}` } },
    ],
    [
      "many choices in a long list",
      {
        type: "array",
        minItems: 1_000,
        items: { anyOf: Array.from({ length: 9_000 }, () => ({ type: "null" })) },
      },
    ],
    [
      "a long name in a long list",
      {
        type: "array",
        minItems: 1_000,
        items: { type: "object", required: ["x".repeat(250_000)] },
      },
    ],
    [
      "many required names in a long list",
      {
        type: "array",
        minItems: 1_000,
        items: { type: "object", required: Object.keys(named(5_000, () => 0)) },
      },
    ],
  ] as const)
    it(`${name}: is made at once, and is short`, () => {
      const effort = startEffort();
      const text = JSON.stringify(example(schema));
      const took = effort();
      assert.ok(took < 60, `it took ${took.toFixed(0)} units`);
      assert.ok(text.length < 1_000_000, `a text of ${text.length} characters`);
    });
});
