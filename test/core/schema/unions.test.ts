// Checks that choose one of several by type or by tag.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  array,
  byType,
  literal,
  number,
  object,
  string,
  variant,
} from "../../../src/core/schema/checker.ts";
import { refused } from "../../support/checks.ts";

describe("byType", () => {
  const check = byType({
    string: string({ min: 1 }),
    array: array(string(), { max: 2 }),
    object: object({ n: number() }),
  });
  it("checks each type by its own rules", () => {
    assert.equal(check("a"), "a");
    assert.deepEqual(check(["a", "b"]), ["a", "b"]);
    assert.deepEqual(check({ n: 1, m: 2 }), { n: 1 });
  });
  it("keeps the exact path and message of the rule that applied", () => {
    refused(check, "", "invalid_value", "expected a string that is not empty");
    refused(check, ["a", 1], "invalid_type", "expected a string, got a number", "[1]");
    refused(check, { n: "x" }, "invalid_type", "expected a number, got a string", "n");
  });
  for (const [value, got] of [
    [1, "a number"],
    [true, "a boolean"],
    [null, "null"],
  ] as const) {
    it(`refuses ${got}`, () =>
      refused(
        check,
        value,
        "invalid_type",
        `expected a string or an array or an object, got ${got}`,
      ));
  }
  it("refuses a type that it has no check for", () =>
    refused(
      byType({ string: string(), array: array(string()) }),
      {},
      "invalid_type",
      "expected a string or an array, got an object",
    ));
  it("carries its schema", () =>
    assert.deepEqual(byType({ string: string(), array: array(string()) }).schema, {
      anyOf: [{ type: "string" }, { type: "array", items: { type: "string" } }],
    }));
});

describe("variant", () => {
  const check = variant("type", {
    text: object({ type: literal("text"), text: string() }),
    mark: object({ type: literal("mark") }),
  });
  it("checks by the tag", () => {
    assert.deepEqual(check({ type: "text", text: "hi", more: 1 }), { type: "text", text: "hi" });
    assert.deepEqual(check({ type: "mark", text: 5 }), { type: "mark" });
  });
  it("refuses an unknown tag", () =>
    refused(
      check,
      { type: "image" },
      "invalid_value",
      'expected one of "text", "mark", got "image"',
      "type",
    ));
  for (const tag of ["__proto__", "constructor", "toString"]) {
    it(`refuses ${tag} as a tag`, () =>
      refused(
        check,
        { type: tag },
        "invalid_value",
        `expected one of "text", "mark", got "${tag}"`,
        "type",
      ));
  }
  it("refuses a tag in __proto__", () =>
    refused(
      check,
      JSON.parse('{"__proto__":{"type":"mark"}}'),
      "missing_required_parameter",
      "is required",
      "type",
    ));
  it("refuses a tag of another type", () =>
    refused(
      check,
      { type: 1 },
      "invalid_type",
      'expected one of "text", "mark", got a number',
      "type",
    ));
  it("carries its schema", () =>
    assert.deepEqual(check.schema, {
      anyOf: [
        {
          type: "object",
          properties: { type: { enum: ["text"] }, text: { type: "string" } },
          required: ["type", "text"],
        },
        { type: "object", properties: { type: { enum: ["mark"] } }, required: ["type"] },
      ],
    }));
});
