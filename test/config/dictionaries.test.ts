// Checks of dictionaries, and of settings that may each be left out.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { partial, record } from "../../src/config/dictionaries.ts";
import { number, object, string } from "../../src/core/schema/checker.ts";
import { refused } from "../support/checks.ts";

describe("record", () => {
  const check = record(number());
  it("returns a Map", () =>
    assert.deepEqual(
      check({ a: 1, "b c": 2 }),
      new Map([
        ["a", 1],
        ["b c", 2],
      ]),
    ));
  it("takes __proto__ and constructor as names", () => {
    const out = check(JSON.parse('{"__proto__":1,"constructor":2}'));
    assert.deepEqual(
      [...out],
      [
        ["__proto__", 1],
        ["constructor", 2],
      ],
    );
  });
  it("says which value is wrong", () =>
    refused(check, { "a b": "x" }, "invalid_type", "expected a number, got a string", '["a b"]'));
  it("refuses an empty name", () =>
    refused(check, { "": 1 }, "invalid_value", "a name must not be empty", '[""]'));
  it("refuses an array", () =>
    refused(check, [1], "invalid_type", "expected an object, got an array"));
  it("carries its schema", () =>
    assert.deepEqual(check.schema, { type: "object", additionalProperties: { type: "number" } }));
});

describe("partial", () => {
  const check = object(partial({ a: number(), b: string() }), { strict: true });
  it("lets each field be absent or null", () =>
    assert.deepEqual(check({ b: null }), { a: undefined, b: undefined }));
  it("checks the fields that are there", () =>
    refused(check, { a: "x" }, "invalid_type", "expected a number, got a string", "a"));
});
