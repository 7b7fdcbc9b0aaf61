// Checks made of another check: absent and null fields, further rules, values that are dropped.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { nullable } from "../../../src/config/fields.ts";
import {
  array,
  boolean,
  fail,
  lenient,
  literal,
  number,
  object,
  optional,
  refine,
  string,
  withDefault,
} from "../../../src/core/schema/checker.ts";
import { refused } from "../../support/checks.ts";

describe("absent and null", () => {
  it("optional: absent and null are undefined", () => {
    assert.equal(optional(string())(undefined), undefined);
    assert.equal(optional(string())(null), undefined);
    assert.equal(optional(string())("a"), "a");
    refused(optional(string()), 1, "invalid_type", "expected a string, got a number");
  });

  it("withDefault: absent and null are the default", () => {
    const check = withDefault(number({ min: 0, max: 2 }), 1);
    assert.deepEqual(
      [undefined, null, 0, 2].map((value) => check(value)),
      [1, 1, 0, 2],
    );
    refused(check, 3, "invalid_value", "expected a number from 0 to 2, got 3");
    assert.deepEqual(object({ t: check })({}), { t: 1 });
  });

  it("nullable: null is a value, absent is not", () => {
    const check = nullable(number());
    assert.equal(check(null), null);
    assert.equal(check(0), 0);
    refused(check, undefined, "invalid_type", "expected a number, got nothing");
    refused(object({ rpm: check }), {}, "missing_required_parameter", "is required", "rpm");
  });

  it("optional and withDefault of a nullable keep null apart from absent", () => {
    assert.deepEqual(object({ rpm: optional(nullable(number())) })({ rpm: null }), { rpm: null });
    assert.deepEqual(object({ rpm: optional(nullable(number())) })({}), { rpm: undefined });
    assert.equal(withDefault(nullable(number()), 60)(null), null);
    assert.equal(withDefault(nullable(number()), 60)(undefined), 60);
  });

  it("carry their schemas", () => {
    assert.deepEqual(optional(string({ min: 1 })).schema, {
      type: ["string", "null"],
      minLength: 1,
    });
    assert.deepEqual(optional(literal("a")).schema, { anyOf: [{ enum: ["a"] }, { type: "null" }] });
    assert.deepEqual(withDefault(number(), 1).schema, { type: ["number", "null"], default: 1 });
    assert.deepEqual(withDefault(array(string()), ["a"]).schema, {
      type: ["array", "null"],
      items: { type: "string" },
    });
    assert.deepEqual(nullable(boolean()).schema, { type: ["boolean", "null"] });
    const one = refine(number(), (n) => n, { const: 1 });
    for (const check of [optional(one), nullable(one)])
      assert.deepEqual(check.schema, { anyOf: [{ type: "number", const: 1 }, { type: "null" }] });
  });
});

describe("refine", () => {
  const even = refine(
    number({ integer: true }),
    (n) => (n % 2 === 0 ? n / 2 : fail("unsupported_value", "must be even", ["half"])),
    { multipleOf: 2 },
  );
  it("returns what the rule returns", () => assert.equal(even(8), 4));
  it("checks the inner rule first", () =>
    refused(even, "8", "invalid_type", "expected an integer, got a string"));
  it("refuses what the rule refuses, at the rule's path", () =>
    refused(object({ n: even }), { n: 3 }, "unsupported_value", "must be even", "n.half"));
  it("stays optional", () => {
    const check = object({ n: refine(optional(number()), (n) => n ?? -1) });
    assert.deepEqual(check({}), { n: -1 });
    assert.deepEqual(check({ n: null }), { n: -1 });
  });
  it("carries the schema with its own addition", () =>
    assert.deepEqual(even.schema, { type: "integer", maximum: 2 ** 53 - 1, multipleOf: 2 }));
});

describe("lenient", () => {
  it("takes what passes and drops the rest", () => {
    const check = object({ seed: lenient(number({ integer: true })) });
    assert.deepEqual(check({ seed: 7 }), { seed: 7 });
    for (const seed of ["7", 1.5, null, {}, [], undefined])
      assert.deepEqual(check({ seed }), { seed: undefined });
    assert.deepEqual(check({}), { seed: undefined });
  });
  it("does not hide a bug", () => {
    const bug = new TypeError("a bug");
    assert.throws(
      () =>
        lenient(
          refine(string(), () => {
            throw bug;
          }),
        )("x"),
      (error) => error === bug,
    );
  });
  it("carries a schema that allows anything", () => assert.deepEqual(lenient(string()).schema, {}));
});
