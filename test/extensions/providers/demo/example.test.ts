// Values by example: what is taken from a schema, and that a hostile one costs no time.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { exampleOf } from "../../../../src/extensions/providers/demo/example.ts";
import { startEffort } from "../../../support/effort.ts";

const example = (schema: object) => exampleOf({ ...schema }, "Why?");
const named = (count: number, make: (index: number) => unknown) =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`p${index}`, make(index)]));
/** An object with all of these properties, each of which is required. */
const all = (properties: object) => ({
  type: "object",
  properties,
  required: Object.keys(properties),
});
const TREE = { a: 1, b: [{ a: 1, b: [] }] };
const NODE = { $ref: "#/$defs/node" };

describe("an example", () => {
  for (const [schema, value] of [
    [{ const: 7 }, 7],
    [{ const: null }, null],
    [{ enum: ["a", "b"] }, "a"],
    [{ type: "integer", minimum: 5 }, 5],
    [{ type: "integer", minimum: -10, maximum: -2 }, -2],
    [{ type: "number", maximum: -1 }, -1],
    [{ type: "string" }, "Why?"],
    [{ type: "string", format: "date" }, "2026-01-01"],
    [{ type: ["null", "boolean"] }, true],
    [{ type: ["null"] }, null],
    [{ type: "array", items: { type: "null" }, minItems: 2 }, [null, null]],
    [{ type: "array", items: { type: "array", items: { const: 1 }, minItems: 2 } }, [[1, 1]]],
    [{ anyOf: [{ type: "null" }, { type: "integer" }] }, 1],
    [{ oneOf: [all({ a: { const: 1 } }), all({ b: { const: 2 } })] }, { a: 1 }],
    [{ properties: { city: { type: "string" } } }, { city: "Oslo" }],
    [{ type: "object", properties: { a: { const: 1 }, b: {} }, required: ["a"] }, { a: 1 }],
    [{ ...all({ a: { const: 1 } }), anyOf: [{ required: ["b"] }] }, { a: 1 }],
    [{ ...all({ a: { allOf: [NODE] } }), $defs: { node: { const: 1 } } }, { a: 1 }],
    [{ ...NODE, $defs: { node: { $ref: "#/$defs/b" }, b: { type: "integer", minimum: 7 } } }, 7],
    [all({ a: { const: 1 }, b: { $ref: "#/properties/a" } }), { a: 1, b: 1 }],
    [{ type: "object", required: ["absent"] }, { absent: null }],
    [all({ a: { const: 1 }, b: { type: "array", items: { $ref: "#" } } }), TREE],
    [{ enum: {}, type: 5, properties: "x", required: 1, anyOf: "x", oneOf: null, $ref: 1 }, {}],
  ] as const)
    it(`of ${JSON.stringify(schema)} is ${JSON.stringify(value)}`, () =>
      assert.deepEqual(example(schema), value));

  it("ends where a schema that refers to itself allows it", () => {
    const node = { anyOf: [{ $ref: "#" }, { type: "null" }] };
    assert.ok(JSON.stringify(example(all({ left: node, right: node }))).length < 200);
  });
});

describe("a hostile schema", () => {
  const self = { $ref: "#" };
  const long = "x".repeat(250_000);
  const list = (items: object) => ({ type: "array", minItems: 1e15, items });
  const next = (index: number) => ({ $ref: `#/$defs/p${index + 1}` });
  const DOUBLING = { ...next(-1), $defs: named(40, (at) => all({ a: next(at), b: next(at) })) };
  const TEXTLESS = { toString: 1, valueOf: 1 };
  for (const [name, schema] of [
    ["ten required properties of itself", all(named(10, () => self))],
    ["ten lists of itself", all(named(10, () => list(self)))],
    ["doubling references", DOUBLING],
    ["a large constant in a long list", list({ const: long })],
    ["a long reference in a long list", list({ $ref: `#/${"a/".repeat(120_000)}` })],
    ["a long name in a long list", list({ type: "object", required: [long] })],
    ["lists of lists", list(list(list({ type: "string" })))],
    [
      "names that every object has",
      { ...all({ constructor: self }), $ref: "#/__proto__/toString" },
    ],
    ["bounds of a number that contradict", { type: "integer", minimum: 5, maximum: 3 }],
    ["bounds of a list that contradict", { type: "array", minItems: 2, maxItems: 1 }],
    [
      "keywords that cannot become text",
      { ...all({ a: { type: "string", format: TEXTLESS } }), required: ["a", TEXTLESS] },
    ],
    ...["#/$defs/%", "http://127.0.0.1/x", "", "#/a/b/c"].map(
      (at) => [`a reference to ${at}`, all({ a: { $ref: at } })] as const,
    ),
  ] as const)
    it(`${name}: is made at once, and is short`, () => {
      const effort = startEffort();
      const text = JSON.stringify(example(schema));
      const took = effort();
      assert.ok(took < 60, `it took ${took.toFixed(0)} units`);
      assert.ok(text.length < 1_000_000, `a text of ${text.length} characters`);
    });
});
