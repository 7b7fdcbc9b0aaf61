// Checks of values without members: what passes, which message refuses the rest, which JSON Schema
// they carry.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { literal, number, string } from "../../../src/core/schema/checker.ts";
import { refused } from "../../support/checks.ts";

describe("string", () => {
  it("accepts any string, empty ones too", () => {
    assert.equal(string()(""), "");
    assert.equal(string()("\u0000é𝄞"), "\u0000é𝄞");
  });

  for (const [value, got] of [
    [null, "null"],
    [[], "an array"],
    [{}, "an object"],
    [1, "a number"],
    [true, "a boolean"],
    [undefined, "nothing"],
  ] as const) {
    it(`refuses ${got}`, () =>
      refused(string(), value, "invalid_type", `expected a string, got ${got}`));
  }

  it("min: accepts the shortest that is allowed, refuses one shorter", () => {
    assert.equal(string({ min: 1 })("a"), "a");
    refused(string({ min: 1 }), "", "invalid_value", "expected a string that is not empty");
  });

  it("pattern: says what is expected and shows what came", () => {
    const check = string({ pattern: /^[a-z]{1,3}$/, expected: "1 to 3 letters" });
    assert.equal(check("abc"), "abc");
    refused(check, "abcd", "invalid_value", 'expected 1 to 3 letters, got "abcd"');
  });

  it("pattern: without words of its own the pattern is shown", () =>
    refused(string({ pattern: /^x$/ }), "y", "invalid_value", 'expected ^x$, got "y"'));

  it("shows a value of up to 60 characters whole, a longer one cut", () => {
    const check = string({ pattern: /^x$/, expected: "x" });
    refused(check, "y".repeat(58), "invalid_value", `expected x, got "${"y".repeat(58)}"`);
    refused(check, "y".repeat(59), "invalid_value", `expected x, got "${"y".repeat(56)}...`);
  });

  it("secret: never shows the value", () =>
    refused(
      string({ pattern: /^x$/, expected: "x", secret: true }),
      "CANARY",
      "invalid_value",
      "expected x",
    ));

  it("carries its schema", () => {
    assert.deepEqual(string().schema, { type: "string" });
    assert.deepEqual(string({ min: 1, pattern: /^a+$/ }).schema, {
      type: "string",
      minLength: 1,
      pattern: "^a+$",
    });
  });
});

describe("number", () => {
  const range = number({ min: -2, max: 2 });
  for (const value of [-2, -1.5, 0, 2])
    it(`accepts ${value} in -2 to 2`, () => assert.equal(range(value), value));
  for (const value of [-2.0000001, 2.0000001, Infinity, -Infinity, NaN]) {
    it(`refuses ${value} in -2 to 2`, () =>
      refused(range, value, "invalid_value", `expected a number from -2 to 2, got ${value}`));
  }

  it("without bounds still refuses what is not finite", () => {
    assert.equal(number()(-1e300), -1e300);
    refused(number(), JSON.parse("1e400"), "invalid_value", "expected a number, got Infinity");
  });
  it("integer: a fraction is of the wrong type", () => {
    const check = number({ min: 1, integer: true });
    assert.equal(check(JSON.parse("3.0")), 3);
    refused(check, 1.5, "invalid_type", "expected an integer, got 1.5");
    refused(check, "1", "invalid_type", "expected an integer, got a string");
    refused(check, 0, "invalid_value", "expected an integer of at least 1, got 0");
    refused(check, Infinity, "invalid_value", "expected an integer of at least 1, got Infinity");
  });

  it("integer: exact up to 2^53 - 1, refused from there on", () => {
    assert.equal(number({ integer: true })(2 ** 53 - 1), 2 ** 53 - 1);
    refused(
      number({ integer: true }),
      2 ** 53,
      "invalid_value",
      "expected an integer below 2^53, got 9007199254740992",
    );
  });

  it("carries its schema", () => {
    assert.deepEqual(number().schema, { type: "number" });
    assert.deepEqual(number({ min: 0, max: 2 }).schema, { type: "number", minimum: 0, maximum: 2 });
    assert.deepEqual(number({ min: 0, integer: true }).schema, {
      type: "integer",
      minimum: 0,
      maximum: 2 ** 53 - 1,
    });
    assert.deepEqual(number({ max: 20, integer: true }).schema, { type: "integer", maximum: 20 });
  });
});

describe("literal", () => {
  it("accepts each of its values", () =>
    assert.deepEqual(
      ["a", "b"].map((value) => literal("a", "b")(value)),
      ["a", "b"],
    ));
  it("refuses others", () =>
    refused(literal("a", "b"), "c", "invalid_value", 'expected one of "a", "b", got "c"'));
  it("refuses names that every object has", () =>
    refused(literal("a"), "constructor", "invalid_value", 'expected "a", got "constructor"'));
  it("carries its schema", () => assert.deepEqual(literal("a", "b").schema, { enum: ["a", "b"] }));
});
