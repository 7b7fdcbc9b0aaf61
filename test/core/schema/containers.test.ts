// Checks of arrays and objects: members, paths, the first issue or every one.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { nullable } from "../../../src/config/fields.ts";
import {
  array,
  boolean,
  byType,
  number,
  object,
  optional,
  record,
  refine,
  string,
  variant,
  withDefault,
  type Check,
} from "../../../src/core/schema/checker.ts";
import { issuesOf, refused } from "../../support/checks.ts";

describe("array", () => {
  it("returns the checked elements in a new array", () => {
    const given = ["a", "b"];
    const out = array(refine(string(), (text) => text.toUpperCase()))(given);
    assert.deepEqual(out, ["A", "B"]);
    assert.deepEqual(given, ["a", "b"]);
  });
  it("min: at the limit and one under it", () => {
    assert.deepEqual(array(string(), { min: 1 })(["a"]), ["a"]);
    refused(array(string(), { min: 1 }), [], "invalid_value", "expected at least 1 element, got 0");
    refused(
      array(string(), { min: 2 }),
      ["a"],
      "invalid_value",
      "expected at least 2 elements, got 1",
    );
  });

  it("max: at the limit and one past it", () => {
    assert.equal(array(string(), { max: 4 })(["a", "b", "c", "d"]).length, 4);
    refused(
      array(string(), { max: 4 }),
      ["a", "b", "c", "d", "e"],
      "invalid_value",
      "expected at most 4 elements, got 5",
    );
  });

  it("too many elements are refused before any of them is looked at", () => {
    let looked = 0;
    const check = array(
      refine(string(), (text) => {
        looked += 1;
        return text;
      }),
      { max: 1 },
    );
    refused(check, ["a", "b"], "invalid_value", "expected at most 1 elements, got 2");
    assert.equal(looked, 0);
  });

  it("carries its schema", () => {
    assert.deepEqual(array(string()).schema, { type: "array", items: { type: "string" } });
    assert.deepEqual(array(string(), { min: 1, max: 4 }).schema, {
      type: "array",
      items: { type: "string" },
      minItems: 1,
      maxItems: 4,
    });
  });
});

describe("object", () => {
  const check = object({ a: string(), b: optional(number()) });

  it("returns the declared fields only, in a new object", () => {
    const given = { a: "x", b: 1, c: "unknown" };
    const out = check(given);
    assert.deepEqual(out, { a: "x", b: 1 });
    assert.notEqual(out, given);
  });
  for (const [value, got] of [
    [[], "an array"],
    [null, "null"],
    ["x", "a string"],
  ] as const) {
    it(`refuses ${got}`, () =>
      refused(check, value, "invalid_type", `expected an object, got ${got}`));
  }

  it("builds the whole path on the way out", () =>
    refused(
      object({ list: array(object({ "odd name": check })) }),
      { list: [{ "odd name": { a: "x" } }, { "odd name": { a: 1 } }] },
      "invalid_type",
      "expected a string, got a number",
      'list[1]["odd name"].a',
    ));

  it("does not take inherited properties for fields", () => {
    refused(
      object({ toString: string() }),
      {},
      "missing_required_parameter",
      "is required",
      "toString",
    );
    refused(
      check,
      Object.create({ a: "inherited" }),
      "missing_required_parameter",
      "is required",
      "a",
    );
  });

  it("a __proto__ key is an unknown field like any other, and pollutes nothing", () => {
    const out = check(JSON.parse('{"a":"x","__proto__":{"b":5,"polluted":true}}'));
    assert.deepEqual(Object.keys(out), ["a", "b"]);
    assert.equal(out.b, undefined);
    assert.equal(Object.getPrototypeOf(out), Object.prototype);
    assert.equal(({} as { polluted?: unknown }).polluted, undefined);
    refused(
      check,
      JSON.parse('{"__proto__":{"a":"x"}}'),
      "missing_required_parameter",
      "is required",
      "a",
    );
  });

  it("strict: an unknown field is a fault that names the known ones", () =>
    refused(
      object({ a: string(), b: optional(string()) }, { strict: true }),
      { a: "x", bb: 1 },
      "invalid_value",
      "is not a known field; known here: a, b",
      "bb",
    ));

  it("strict: __proto__ is an unknown field too", () =>
    refused(
      object({ a: string() }, { strict: true }),
      JSON.parse('{"a":"x","__proto__":1}'),
      "invalid_value",
      "is not a known field; known here: a",
      "__proto__",
    ));

  it("without `all` it stops at the first fault", () => {
    let looked = 0;
    const counting = refine(string(), (text) => {
      looked += 1;
      return text;
    });
    assert.deepEqual(
      issuesOf(object({ a: counting, b: counting, c: counting }), { a: "x", b: 1, c: "y" }),
      [["b", "invalid_type", "expected a string, got a number"]],
    );
    assert.equal(looked, 1);
    assert.equal(issuesOf(object({ a: string(), b: string() }), {}).length, 1);
    assert.equal(issuesOf(array(string()), [1, 2]).length, 1);
  });

  it("with `all` it gathers every fault below it, in order, nothing twice", () => {
    const deep = object(
      {
        a: string(),
        list: array(object({ n: number({ min: 0 }) }, { strict: true })),
        map: record(boolean()),
      },
      { strict: true },
    );
    assert.deepEqual(
      issuesOf(
        deep,
        { list: [{ n: -1 }, {}, { n: 1, m: 2 }], map: { x: 1, y: true, z: null }, typo: 0 },
        true,
      ),
      [
        ["a", "missing_required_parameter", "is required"],
        ["list[0].n", "invalid_value", "expected a number of at least 0, got -1"],
        ["list[1].n", "missing_required_parameter", "is required"],
        ["list[2].m", "invalid_value", "is not a known field; known here: n"],
        ["map.x", "invalid_type", "expected a boolean, got a number"],
        ["map.z", "invalid_type", "expected a boolean, got null"],
        ["typo", "invalid_value", "is not a known field; known here: a, list, map"],
      ],
    );
  });

  it("with `all` gathering goes on through optional, withDefault, nullable, byType, variant and refine", () => {
    const two = object({ x: string(), y: string() });
    const wrapped: Record<string, Check<unknown>> = {
      optional: optional(two),
      withDefault: withDefault(two, { x: "", y: "" }),
      nullable: nullable(two),
      byType: byType({ object: two }),
      variant: variant("x", { k: object({ y: string(), z: string() }) }),
      refine: refine(two, (value) => value),
    };
    for (const [name, each] of Object.entries(wrapped))
      assert.equal(issuesOf(each, { x: name === "variant" ? "k" : 1, y: 2 }, true).length, 2, name);
  });

  it("an error that is no ValidationError passes through as it is", () => {
    const bug = new TypeError("a bug");
    const broken = object({
      a: refine(string(), () => {
        throw bug;
      }),
    });
    assert.throws(
      () => broken({ a: "x" }),
      (error) => error === bug,
    );
    assert.throws(
      () => broken({ a: "x" }, true),
      (error) => error === bug,
    );
  });

  it("carries its schema", () => {
    assert.deepEqual(check.schema, {
      type: "object",
      properties: { a: { type: "string" }, b: { type: ["number", "null"] } },
      required: ["a"],
    });
    assert.deepEqual(object({ b: optional(string()) }, { strict: true }).schema, {
      type: "object",
      properties: { b: { type: ["string", "null"] } },
      additionalProperties: false,
    });
  });
});
