// JSON Schemas in the form that Anthropic takes.

import assert from "node:assert/strict";
import { it } from "node:test";
import { closedSchema } from "../../../../src/extensions/providers/anthropic/closed-schema.ts";

it("objects are closed at every level, and bounds are described in words", () =>
  assert.deepEqual(
    closedSchema({
      type: "object",
      additionalProperties: true,
      properties: {
        a: { type: ["object", "null"], properties: {} },
        n: { type: "number", description: "How warm", exclusiveMaximum: 60, multipleOf: 0.5 },
        // The names of properties are no keywords.
        minimum: { type: "string", minLength: 1, pattern: "^a" },
        days: {
          type: "array",
          minItems: 1,
          uniqueItems: true,
          items: { anyOf: [{ type: "object" }, { $ref: "#/$defs/d" }] },
        },
      },
      $defs: { d: { type: "integer", maximum: 3 } },
    }),
    {
      type: "object",
      additionalProperties: false,
      properties: {
        a: { type: ["object", "null"], properties: {}, additionalProperties: false },
        n: { type: "number", description: "How warm; exclusiveMaximum: 60; multipleOf: 0.5" },
        minimum: { type: "string", description: "minLength: 1; pattern: ^a" },
        days: {
          type: "array",
          description: "minItems: 1; uniqueItems: true",
          items: {
            anyOf: [{ type: "object", additionalProperties: false }, { $ref: "#/$defs/d" }],
          },
        },
      },
      $defs: { d: { type: "integer", description: "maximum: 3" } },
    },
  ));

it("data stay as they are, whatever they look like", () => {
  const schema = { const: { type: "object" }, enum: [{ minimum: 1 }], default: { type: "object" } };
  assert.deepEqual(closedSchema(schema), schema);
});

it("a name of __proto__ is one like any other", () => {
  const closed = closedSchema(JSON.parse('{"properties":{"__proto__":{"type":"object"}}}'));
  const text = '{"properties":{"__proto__":{"type":"object","additionalProperties":false}}}';
  assert.equal(JSON.stringify(closed), text);
});

it("an object of any names is told from one that may have more", () => {
  const named = { type: "object", properties: { a: {} } };
  const any = { type: "object" };
  for (const [schema, expected] of [
    [{ ...any, additionalProperties: { type: "string" } }, true],
    [{ ...named, additionalProperties: { type: "string" } }, true],
    [{ ...any, additionalProperties: true }, true],
    [{ ...any, properties: {}, additionalProperties: {} }, true],
    [{ ...named, additionalProperties: {} }, false],
    [{ ...named, additionalProperties: true }, false],
    [{ ...any, additionalProperties: { not: {} } }, false],
    [{ ...named, properties: { additionalProperties: { type: "string" } } }, false],
    [{ ...named, examples: [{ additionalProperties: { a: 1 } }] }, false],
    [{ type: "array", items: { ...any, additionalProperties: { type: "string" } } }, true],
  ] as const)
    assert.equal(closedSchema(schema) === undefined, expected, JSON.stringify(schema));
});
