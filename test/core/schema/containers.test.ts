// Checks of values with members, and of values of several kinds, as far as no request or
// configuration of other tests shows them: words of refusals, bounds, the first issue or every one.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { nullable } from "../../../src/config/fields.ts";
import {
  array,
  boolean,
  byType,
  jsonObject,
  literal,
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
import { issuesOf, nested, refused } from "../../support/checks.ts";

const fields = object({ a: string(), b: optional(number()) });
const strict = object({ a: string(), b: optional(string()) }, { strict: true });
const numbers = record(number());
const union = byType({
  string: string({ min: 1 }),
  array: array(string(), { max: 2 }),
  object: object({ n: number() }),
});
const tagged = variant("type", {
  text: object({ type: literal("text"), text: string() }),
  mark: object({ type: literal("mark") }),
});
const parsed = (text: string): unknown => JSON.parse(text);

it("a name that is __proto__ pollutes nothing", () => {
  const out = fields(parsed('{"a":"x","__proto__":{"b":5,"polluted":true}}'));
  assert.deepEqual(Object.keys(out), ["a", "b"]);
  assert.equal(out.b, undefined);
  assert.equal(Object.getPrototypeOf(out), Object.prototype);
  assert.equal(({} as { polluted?: unknown }).polluted, undefined);
  const names = [...numbers(parsed('{"__proto__":1,"constructor":2}')).keys()];
  assert.deepEqual(names, ["__proto__", "constructor"]);
});

const wrongTag = (got: string) => `expected one of "text", "mark", got ${got}`;

describe("a container is refused", () => {
  for (const [check, value, message, path] of [
    [array(string(), { min: 1 }), [], "expected at least 1 element, got 0"],
    [array(string(), { min: 2 }), ["a"], "expected at least 2 elements, got 1"],
    [array(string(), { max: 1 }), [1, 2], "expected at most 1 elements, got 2"],
    [strict, { a: "x", bb: 1 }, "is not a known field; known here: a, b", "bb"],
    [numbers, { "": 1 }, "expected a name without characters that no text can have", '[""]'],
    ...["image", "__proto__"].map(
      (type) => [tagged, { type }, wrongTag(`"${type}"`), "type"] as const,
    ),
    [jsonObject({ maxValues: 2 }), { a: 1, b: 2 }, "expected at most 2 values"],
    [jsonObject({ maxChars: 6 }), { a: 12 }, "expected at most 6 characters of JSON"],
  ] as const)
    it(`with the words: ${message} (${path ?? "the root"})`, () =>
      refused(check, value, "invalid_value", message, path));

  it("as of another type, whose words name all that it may be of", () =>
    refused(union, 1, "invalid_type", "expected a string or an array or an object, got a number"));

  for (const [check, value, path] of [
    [fields, Object.create({ a: "inherited" }), "a"],
    [object({ toString: string() }), {}, "toString"],
    [tagged, parsed('{"__proto__":{"type":"mark"}}'), "type"],
  ] as const)
    it(`without ${path}: ${JSON.stringify(value)}`, () =>
      refused(check, value, "missing_required_parameter", "is required", path));
});

it("objects of any shape are bounded at their limits, and not before", () => {
  assert.ok(jsonObject()(nested(100, (inner) => ({ a: inner })) as object));
  assert.ok(jsonObject({ maxValues: 2, maxChars: 7 })({ a: 1 }));
});

describe("issues", () => {
  it("without `all` are the first one, and nothing is looked at after it", () => {
    let looked = 0;
    const counting = refine(string(), (text) => {
      looked += 1;
      return text;
    });
    const three = object({ a: counting, b: counting, c: counting });
    assert.deepEqual(issuesOf(three, { a: "x", b: 1, c: "y" }), [
      ["b", "invalid_type", "expected a string, got a number"],
    ]);
    assert.equal(issuesOf(array(counting, { max: 1 }), ["a", "b"]).length, 1);
    assert.equal(looked, 1);
  });

  it("with `all` are all of them, in order, nothing twice", () => {
    const list = array(object({ n: number({ min: 0 }) }, { strict: true }));
    const deep = object({ a: string(), list, map: record(boolean()) }, { strict: true });
    const map = { x: 1, y: true, z: null };
    assert.deepEqual(
      issuesOf(deep, { list: [{ n: -1 }, {}, { n: 1, m: 2 }], map, typo: 0 }, true),
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

  it("with `all` are gathered through every check that is made of others", () => {
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

  it("are not made of an error that is no ValidationError", () => {
    const bug = new TypeError("a bug");
    const broken = object({
      a: refine(string(), () => {
        throw bug;
      }),
    });
    for (const all of [false, true])
      assert.throws(
        () => broken({ a: "x" }, all),
        (error) => error === bug,
      );
  });
});

it("containers carry their schemas", () => {
  const words = { type: "array", items: { type: "string" } };
  const text = { type: { enum: ["text"] }, text: { type: "string" } };
  const mark = { type: { enum: ["mark"] } };
  const b = { b: { type: ["string", "null"] } };
  for (const [check, schema] of [
    [array(string()), words],
    [array(string(), { min: 1, max: 4 }), { ...words, minItems: 1, maxItems: 4 }],
    [
      object({ b: optional(string()) }, { strict: true }),
      { type: "object", properties: b, additionalProperties: false },
    ],
    [
      tagged,
      {
        anyOf: [
          { type: "object", properties: text, required: ["type", "text"] },
          { type: "object", properties: mark, required: ["type"] },
        ],
      },
    ],
  ] as const)
    assert.deepEqual(check.schema, schema);
});
