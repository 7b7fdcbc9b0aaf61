// Checks of values with members, and of values of several kinds: members, paths, the first issue or
// every one.

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

describe("a container passes", () => {
  it("with its known members, in a new value", () => {
    const upper = array(refine(string(), (text) => text.toUpperCase()));
    for (const [check, given, result] of [
      [upper, ["a", "b"], ["A", "B"]],
      [array(string(), { min: 1, max: 2 }), ["a"], ["a"]],
      [array(string(), { min: 1, max: 2 }), ["a", "b"], ["a", "b"]],
      [fields, { a: "x", b: 1, c: "unknown" }, { a: "x", b: 1 }],
      [numbers, { a: 1 }, new Map([["a", 1]])],
      [union, "a", "a"],
      [union, ["a", "b"], ["a", "b"]],
      [union, { n: 1, m: 2 }, { n: 1 }],
      [tagged, { type: "text", text: "hi", more: 1 }, { type: "text", text: "hi" }],
      [tagged, { type: "mark", text: 5 }, { type: "mark" }],
    ] as const) {
      const before = structuredClone(given);
      assert.deepEqual(check(given), result);
      assert.deepEqual(given, before);
    }
  });

  it("though a name in it is __proto__: that pollutes nothing", () => {
    const out = fields(parsed('{"a":"x","__proto__":{"b":5,"polluted":true}}'));
    assert.deepEqual(Object.keys(out), ["a", "b"]);
    assert.equal(out.b, undefined);
    assert.equal(Object.getPrototypeOf(out), Object.prototype);
    assert.equal(({} as { polluted?: unknown }).polluted, undefined);
    const names = [...numbers(parsed('{"__proto__":1,"constructor":2}')).keys()];
    assert.deepEqual(names, ["__proto__", "constructor"]);
  });

  it("as it is where any object will do", () => {
    const text = '{"a":[1,{"b":null}],"__proto__":{"c":1}}';
    const given = parsed(text);
    assert.equal(jsonObject()(given), given);
    assert.equal(JSON.stringify(given), text);
  });
});

const objects = (levels: number) => nested(levels, (inner) => ({ a: inner }));
const lists = (levels: number) => ({ a: nested(levels, (inner) => [inner]) });
const wrongTag = (got: string) => `expected one of "text", "mark", got ${got}`;
const UNKNOWN = "is not a known field; known here: a, b";
const DEEP = "expected at most 100 levels of nesting";

describe("a container is refused", () => {
  for (const [check, value, message, path] of [
    [array(string(), { min: 1 }), [], "expected at least 1 element, got 0"],
    [array(string(), { min: 2 }), ["a"], "expected at least 2 elements, got 1"],
    [array(string(), { max: 1 }), [1, 2], "expected at most 1 elements, got 2"],
    [strict, { a: "x", bb: 1 }, UNKNOWN, "bb"],
    [strict, parsed('{"a":"x","__proto__":1}'), UNKNOWN, "__proto__"],
    [numbers, { "": 1 }, "a name must not be empty", '[""]'],
    [union, "", "expected a string that is not empty"],
    ...["image", "__proto__", "constructor", "toString"].map(
      (type) => [tagged, { type }, wrongTag(`"${type}"`), "type"] as const,
    ),
    [jsonObject(), objects(101), DEEP],
    [jsonObject(), objects(100_000), DEEP],
    [jsonObject(), lists(100), DEEP],
    [jsonObject(), lists(100_000), DEEP],
    [jsonObject({ maxValues: 2 }), { a: 1, b: 2 }, "expected at most 2 values"],
    [jsonObject({ maxChars: 6 }), { a: 12 }, "expected at most 6 characters of JSON"],
  ] as const)
    it(`with the words: ${message} (${path ?? "the root"})`, () =>
      refused(check, value, "invalid_value", message, path));

  for (const [check, value, message, path] of [
    [fields, [], "expected an object, got an array"],
    [fields, null, "expected an object, got null"],
    [jsonObject(), [], "expected an object, got an array"],
    [numbers, [1], "expected an object, got an array"],
    [numbers, { "a b": "x" }, "expected a number, got a string", '["a b"]'],
    [array(string()), {}, "expected an array, got an object"],
    [
      object({ list: array(object({ "odd name": fields })) }),
      { list: [{ "odd name": { a: "x" } }, { "odd name": { a: 1 } }] },
      "expected a string, got a number",
      'list[1]["odd name"].a',
    ],
    [union, ["a", 1], "expected a string, got a number", "[1]"],
    [union, { n: "x" }, "expected a number, got a string", "n"],
    [union, 1, "expected a string or an array or an object, got a number"],
    [union, null, "expected a string or an array or an object, got null"],
    [byType({ string: string() }), {}, "expected a string, got an object"],
    [tagged, { type: 1 }, wrongTag("a number"), "type"],
    [tagged, { type: "text", text: 1 }, "expected a string, got a number", "text"],
  ] as const)
    it(`as of another type: ${message} (${path ?? "the root"})`, () =>
      refused(check, value, "invalid_type", message, path));

  for (const [check, value, path] of [
    [fields, {}, "a"],
    [fields, Object.create({ a: "inherited" }), "a"],
    [object({ toString: string() }), {}, "toString"],
    [fields, parsed('{"__proto__":{"a":"x"}}'), "a"],
    [tagged, {}, "type"],
    [tagged, parsed('{"__proto__":{"type":"mark"}}'), "type"],
  ] as const)
    it(`without ${path}: ${JSON.stringify(value)}`, () =>
      refused(check, value, "missing_required_parameter", "is required", path));
});

it("objects of any shape are bounded at their limits, and not before", () => {
  assert.ok(jsonObject()(objects(100)));
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
  for (const [check, schema] of [
    [array(string()), words],
    [array(string(), { min: 1, max: 4 }), { ...words, minItems: 1, maxItems: 4 }],
    [
      fields,
      {
        type: "object",
        properties: { a: { type: "string" }, b: { type: ["number", "null"] } },
        required: ["a"],
      },
    ],
    [
      object({ b: optional(string()) }, { strict: true }),
      {
        type: "object",
        properties: { b: { type: ["string", "null"] } },
        additionalProperties: false,
      },
    ],
    [numbers, { type: "object", additionalProperties: { type: "number" } }],
    [jsonObject(), { type: "object" }],
    [byType({ string: string(), array: array(string()) }), { anyOf: [{ type: "string" }, words] }],
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
