// JSON Schemas in the form that Anthropic takes.

import assert from "node:assert/strict";
import { it } from "node:test";
import { closedSchema } from "../../../../src/extensions/providers/anthropic/closed-schema.ts";

it("objects are closed at every level", () =>
  assert.deepEqual(
    closedSchema({
      type: "object",
      properties: { a: { type: ["object", "null"], properties: {} } },
      $defs: { b: { type: "object" } },
    }),
    {
      type: "object",
      properties: {
        a: { type: ["object", "null"], properties: {}, additionalProperties: false },
      },
      $defs: { b: { type: "object", additionalProperties: false } },
      additionalProperties: false,
    },
  ));

it("bounds are described in words, after the description that is there", () =>
  assert.deepEqual(
    closedSchema({ type: "string", minLength: 1, description: "A name", pattern: "^a" }),
    { type: "string", description: "A name; minLength: 1; pattern: ^a" },
  ));

it("a property may have the name of a keyword", () =>
  assert.deepEqual(closedSchema({ properties: { pattern: { type: "string" }, minimum: {} } }), {
    properties: { pattern: { type: "string" }, minimum: {} },
  }));

it("data stay as they are, whatever they look like", () => {
  const schema = { const: { type: "object" }, enum: [{ minimum: 1 }], default: { type: "object" } };
  assert.deepEqual(closedSchema(schema), schema);
});

it("a name of __proto__ is one like any other", () => {
  const closed = closedSchema(JSON.parse('{"properties":{"__proto__":{"type":"object"}}}'));
  const text = '{"properties":{"__proto__":{"type":"object","additionalProperties":false}}}';
  assert.equal(JSON.stringify(closed), text);
});
