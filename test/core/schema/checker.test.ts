// The schema checker, rule by rule: what passes and as what, what is refused and with which path, code and message, and
// which JSON Schema each check carries.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  array,
  boolean,
  byType,
  ValidationError,
  fail,
  faultText,
  jsonObject,
  lenient,
  literal,
  nullable,
  number,
  object,
  optional,
  pathText,
  record,
  refine,
  string,
  variant,
  withDefault,
  type Check,
  type IssueCode,
} from "../../../src/core/schema/checker.ts";

type Plain = readonly [path: string, code: IssueCode, message: string];

/** The faults of a refusal, as path, code and message; fails if the value is accepted or something else is thrown. */
function faults(check: Check<unknown>, value: unknown, all = false): Plain[] {
  try {
    check(value, all);
  } catch (error) {
    assert.ok(error instanceof ValidationError, `not a ValidationError: ${String(error)}`);
    return error.faults.map((fault) => [pathText(fault.path), fault.code, fault.message] as const);
  }
  return assert.fail(`accepted: ${JSON.stringify(value)}`);
}

const refused = (
  check: Check<unknown>,
  value: unknown,
  code: IssueCode,
  message: string,
  path = "",
) => assert.deepEqual(faults(check, value), [[path, code, message]]);

/** `[[...]]`, or `{"a":{"a":...}}`, of so many levels. */
function nested(levels: number, wrap: (inner: unknown) => unknown): unknown {
  let value: unknown = 0;
  for (let level = 0; level < levels; level += 1) value = wrap(value);
  return value;
}

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

describe("boolean", () => {
  it("accepts true and false", () =>
    assert.deepEqual(
      [true, false].map((value) => boolean()(value)),
      [true, false],
    ));
  for (const [value, got] of [
    ["true", "a string"],
    [0, "a number"],
    [null, "null"],
  ] as const) {
    it(`refuses ${got}`, () =>
      refused(boolean(), value, "invalid_type", `expected a boolean, got ${got}`));
  }
  it("carries its schema", () => assert.deepEqual(boolean().schema, { type: "boolean" }));
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

  it("with a lower bound alone says so", () =>
    refused(number({ min: 1 }), 0, "invalid_value", "expected a number of at least 1, got 0"));
  it("refuses a number in a string", () =>
    refused(range, "1", "invalid_type", "expected a number, got a string"));
  it("refuses a boolean", () =>
    refused(range, true, "invalid_type", "expected a number, got a boolean"));

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
  it("refuses another type", () =>
    refused(literal("a", "b"), 1, "invalid_type", 'expected one of "a", "b", got a number'));
  it("carries its schema", () => assert.deepEqual(literal("a", "b").schema, { enum: ["a", "b"] }));
});

describe("array", () => {
  it("returns the checked elements in a new array", () => {
    const given = ["a", "b"];
    const out = array(refine(string(), (text) => text.toUpperCase()))(given);
    assert.deepEqual(out, ["A", "B"]);
    assert.deepEqual(given, ["a", "b"]);
  });

  it("refuses an object", () =>
    refused(array(string()), {}, "invalid_type", "expected an array, got an object"));
  it("says which element is wrong", () =>
    refused(array(string()), ["a", 2], "invalid_type", "expected a string, got a number", "[1]"));

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

  it("says which required field is missing", () =>
    refused(check, { b: 1 }, "missing_required_parameter", "is required", "a"));
  it("null in a required field is of the wrong type, not missing", () =>
    refused(check, { a: null }, "invalid_type", "expected a string, got null", "a"));
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
      faults(object({ a: counting, b: counting, c: counting }), { a: "x", b: 1, c: "y" }),
      [["b", "invalid_type", "expected a string, got a number"]],
    );
    assert.equal(looked, 1);
    assert.equal(faults(object({ a: string(), b: string() }), {}).length, 1);
    assert.equal(faults(array(string()), [1, 2]).length, 1);
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
      faults(
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
      assert.equal(faults(each, { x: name === "variant" ? "k" : 1, y: 2 }, true).length, 2, name);
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

describe("jsonObject", () => {
  const objects = (levels: number) => nested(levels, (inner) => ({ a: inner }));
  it("passes any object on as it is", () => {
    const given = JSON.parse('{"a":[1,{"b":null}],"__proto__":{"c":1}}');
    assert.equal(jsonObject()(given), given);
    assert.equal(JSON.stringify(jsonObject()(given)), '{"a":[1,{"b":null}],"__proto__":{"c":1}}');
  });
  it("refuses what is not an object", () => {
    refused(jsonObject(), [], "invalid_type", "expected an object, got an array");
    refused(jsonObject(), "{}", "invalid_type", "expected an object, got a string");
  });
  it("is bounded in depth: at the limit and one past it", () => {
    assert.ok(jsonObject(3)(objects(3)));
    refused(jsonObject(3), objects(4), "invalid_value", "expected at most 3 levels of nesting");
    assert.ok(jsonObject()(objects(100)));
    refused(jsonObject(), objects(101), "invalid_value", "expected at most 100 levels of nesting");
  });
  it("counts arrays as levels too", () => {
    assert.ok(jsonObject(3)({ a: [[1]] }));
    refused(jsonObject(3), { a: [[[]]] }, "invalid_value", "expected at most 3 levels of nesting");
  });
  it("does not exhaust the stack on 100,000 levels", () => {
    refused(
      jsonObject(),
      objects(100_000),
      "invalid_value",
      "expected at most 100 levels of nesting",
    );
    refused(
      jsonObject(),
      { a: nested(100_000, (inner) => [inner]) },
      "invalid_value",
      "expected at most 100 levels of nesting",
    );
  });
  it("carries its schema", () => assert.deepEqual(jsonObject().schema, { type: "object" }));
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
  it("refuses a missing tag", () =>
    refused(check, { text: "hi" }, "missing_required_parameter", "is required", "type"));
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
  it("refuses what is not an object", () =>
    refused(check, "text", "invalid_type", "expected an object, got a string"));
  it("refuses by the rules of the tagged check", () =>
    refused(check, { type: "text" }, "missing_required_parameter", "is required", "text"));
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

describe("paths and messages", () => {
  for (const [path, text] of [
    [[], ""],
    [["messages", 2, "role"], "messages[2].role"],
    [["a", "b"], "a.b"],
    [[0, "x"], "[0].x"],
    [["models", "deepseek-v3.1", "price"], "models.deepseek-v3.1.price"],
    [["aliases", "auto/chat", "models", 0], "aliases.auto/chat.models[0]"],
    [["models", "a b", "price"], 'models["a b"].price'],
    [["models", "a..b"], 'models["a..b"]'],
    [["models", 'a"]'], 'models["a\\"]"]'],
    [["models", ""], 'models[""]'],
    [["$defs", "x"], "$defs.x"],
  ] as const) {
    it(`${JSON.stringify(path)} is ${text || "empty"}`, () => assert.equal(pathText(path), text));
  }

  it("a fault's text leads with the path, if there is one", () => {
    assert.equal(
      faultText({ path: ["a", 0], code: "invalid_value", message: "is wrong" }),
      "a[0]: is wrong",
    );
    assert.equal(faultText({ path: [], code: "invalid_value", message: "is wrong" }), "is wrong");
  });

  it("a ValidationError's message is one line a fault", () =>
    assert.throws(() => object({ a: string(), b: string() })({ a: 1 }, true), {
      message: "a: expected a string, got a number\nb: is required",
    }));

  it("fail throws one fault, by default at the root", () => {
    assert.throws(
      () => fail("invalid_value", "no"),
      (error) =>
        error instanceof ValidationError &&
        error.faults.length === 1 &&
        error.faults[0]?.path.length === 0,
    );
  });
});
