// Checks of values without members: what passes, which message refuses the rest, which JSON Schema
// they carry.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { boolean, literal, number, string } from "../../../src/core/schema/checker.ts";
import { refused } from "../../support/checks.ts";

const short = string({ pattern: /^[a-z]{1,3}$/, expected: "1 to 3 letters" });
const x = string({ pattern: /^x$/, expected: "x" });
const range = number({ min: -2, max: 2 });
const count = number({ min: 1, integer: true });
const whole = number({ integer: true });
const letter = literal("a", "b");

it("scalars pass as they are", () => {
  for (const [check, ...values] of [
    [string(), "", "\u0000é𝄞"],
    [string({ min: 1 }), "a"],
    [short, "abc"],
    [boolean(), true, false],
    [range, -2, -1.5, 0, 2],
    [number(), -1e300],
    [count, JSON.parse("3.0")],
    [whole, 2 ** 53 - 1],
    [letter, "a", "b"],
  ] as const)
    for (const value of values) assert.equal(check(value), value);
});

describe("a scalar is refused", () => {
  for (const [value, got] of [
    [null, "null"],
    [[], "an array"],
    [{}, "an object"],
    [1, "a number"],
    [true, "a boolean"],
    [undefined, "nothing"],
  ] as const)
    it(`of another type: ${got}`, () =>
      refused(string(), value, "invalid_type", `expected a string, got ${got}`));

  for (const [check, value, message] of [
    [string({ min: 1 }), "", "expected a string that is not empty"],
    [short, "abcd", 'expected 1 to 3 letters, got "abcd"'],
    [string({ pattern: /^x$/ }), "y", 'expected ^x$, got "y"'],
    // A value of up to 60 characters is shown whole, a longer one cut, a secret not at all.
    [x, "y".repeat(58), `expected x, got "${"y".repeat(58)}"`],
    [x, "y".repeat(59), `expected x, got "${"y".repeat(56)}...`],
    [string({ pattern: /^x$/, expected: "x", secret: true }), "CANARY", "expected x"],
    ...[-2.0000001, 2.0000001, Infinity, -Infinity, NaN].map(
      (value) => [range, value, `expected a number from -2 to 2, got ${value}`] as const,
    ),
    [number(), JSON.parse("1e400"), "expected a number, got Infinity"],
    [number({ min: 0 }), -1, "expected a number of at least 0, got -1"],
    [count, 0, "expected an integer of at least 1, got 0"],
    [count, Infinity, "expected an integer of at least 1, got Infinity"],
    [whole, 2 ** 53, "expected an integer below 2^53, got 9007199254740992"],
    [letter, "c", 'expected one of "a", "b", got "c"'],
    [literal("a"), "constructor", 'expected "a", got "constructor"'],
  ] as const)
    it(`with the words: ${message.slice(0, 60)}`, () =>
      refused(check, value, "invalid_value", message));

  for (const [check, value, message] of [
    [boolean(), "true", "expected a boolean, got a string"],
    [number(), "1", "expected a number, got a string"],
    [count, 1.5, "expected an integer, got 1.5"],
    [count, "1", "expected an integer, got a string"],
    [letter, 1, 'expected one of "a", "b", got a number'],
  ] as const)
    it(`as of another type: ${message}`, () => refused(check, value, "invalid_type", message));
});

it("scalars carry their schemas", () => {
  for (const [check, schema] of [
    [string(), { type: "string" }],
    [string({ min: 1, pattern: /^a+$/ }), { type: "string", minLength: 1, pattern: "^a+$" }],
    [boolean(), { type: "boolean" }],
    [number(), { type: "number" }],
    [range, { type: "number", minimum: -2, maximum: 2 }],
    [count, { type: "integer", minimum: 1, maximum: 2 ** 53 - 1 }],
    [number({ max: 20, integer: true }), { type: "integer", maximum: 20 }],
    [letter, { enum: ["a", "b"] }],
  ] as const)
    assert.deepEqual(check.schema, schema);
});
