// Checks of single values, and checks made of another one, as far as no request, reply or
// configuration of other tests shows them: words of refusals, and JSON Schemas.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { nullable } from "../../../src/config/fields.ts";
import {
  array,
  lenient,
  literal,
  number,
  optional,
  refine,
  string,
  withDefault,
} from "../../../src/core/schema/checker.ts";
import { refused } from "../../support/checks.ts";

const x = string({ pattern: /^x$/, expected: "x" });
const range = number({ min: -2, max: 2 });
const whole = number({ integer: true });

describe("a value is refused", () => {
  for (const [check, value, message] of [
    // A value of up to 60 characters is shown whole, a longer one cut, a secret not at all.
    [x, "y".repeat(58), `expected x, got "${"y".repeat(58)}"`],
    [x, "y".repeat(59), `expected x, got "${"y".repeat(56)}...`],
    [string({ pattern: /^x$/, expected: "x", secret: true }), "CANARY", "expected x"],
    [range, NaN, "expected a number from -2 to 2, got NaN"],
    [number(), JSON.parse("1e400"), "expected a number, got Infinity"],
    [whole, 2 ** 53, "expected an integer below 2^53, got 9007199254740992"],
  ] as const)
    it(`with the words: ${message.slice(0, 60)}`, () =>
      refused(check, value, "invalid_value", message));
});

it("an absent value that may not be is named", () => {
  refused(nullable(number()), undefined, "invalid_type", "expected a number, got nothing");
});

it("values that may be absent carry their schemas", () => {
  const one = refine(number(), (n) => n, { const: 1 });
  const words = { type: ["array", "null"], items: { type: "string" } };
  for (const [check, schema] of [
    [optional(string({ min: 1 })), { type: ["string", "null"], minLength: 1 }],
    [optional(literal("a")), { anyOf: [{ enum: ["a"] }, { type: "null" }] }],
    [nullable(one), { anyOf: [{ type: "number", const: 1 }, { type: "null" }] }],
    [withDefault(number(), 1), { type: ["number", "null"], default: 1 }],
    [withDefault(array(string()), ["a"]), words],
    [lenient(string()), {}],
    [whole, { type: "integer", maximum: 2 ** 53 - 1 }],
  ] as const)
    assert.deepEqual(check.schema, schema);
});

it("what drops a wrong value does not hide a bug", () => {
  const bug = new TypeError("a bug");
  const broken = refine(string(), () => {
    throw bug;
  });
  assert.throws(
    () => lenient(broken)("x"),
    (error) => error === bug,
  );
});
