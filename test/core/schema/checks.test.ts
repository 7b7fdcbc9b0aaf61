// Checks of values, where no request, reply or configuration of other tests covers them: messages,
// bounds, the first issue or all of them, paths, and JSON Schemas.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { nullable } from "../../../src/config/fields.ts";
import {
  array,
  boolean,
  byType,
  fail,
  issueText,
  jsonObject,
  lenient,
  literal,
  number,
  object,
  optional,
  pathText,
  record,
  refine,
  string,
  ValidationError,
  variant,
  withDefault,
  type Check,
  type IssueCode,
} from "../../../src/core/schema/checker.ts";
import { thrownBy } from "../../support/wait.ts";

/** An issue with its path as text. */
type Issue = readonly [path: string, code: IssueCode, message: string];

/** The issues of a rejected value. Fails if it is accepted or another error is thrown. */
const issuesOf = (check: Check<unknown>, value: unknown, all = false): Issue[] =>
  thrownBy(ValidationError, () => check(value, all)).issues.map(
    (issue) => [pathText(issue.path), issue.code, issue.message] as const,
  );

/** The expected issue. Without a path it is about the value itself. */
type Expected = readonly [code: IssueCode, message: string, path?: string];

/** Asserts that the value is rejected with this one issue. */
const refused = (check: Check<unknown>, value: unknown, ...[code, message, path = ""]: Expected) =>
  assert.deepEqual(issuesOf(check, value), [[path, code, message]]);

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

const x = string({ pattern: /^x$/, expected: "x" });
const whole = number({ integer: true });
const bug = new TypeError("a bug");
/** A check with a bug. */
const broken = refine(string(), () => {
  throw bug;
});

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

describe("a value is rejected", () => {
  for (const [check, value, message, path] of [
    [array(string(), { min: 1 }), [], "expected at least 1 element, got 0"],
    [array(string(), { min: 2 }), ["a"], "expected at least 2 elements, got 1"],
    [array(string(), { max: 1 }), [1, 2], "expected at most 1 elements, got 2"],
    [strict, { a: "x", bb: 1 }, "is not a known field; known here: a, b", "bb"],
    [
      numbers,
      { "": 1 },
      "expected a name, neither empty nor with NUL or half of a character",
      '[""]',
    ],
    ...["image", "__proto__"].map(
      (type) => [tagged, { type }, wrongTag(`"${type}"`), "type"] as const,
    ),
    [jsonObject({ maxValues: 2 }), { a: 1, b: 2 }, "expected at most 2 values"],
    [jsonObject({ maxChars: 6 }), { a: 12 }, "expected at most 6 characters of JSON"],
    // A value of up to 60 characters is shown whole, a longer one truncated, a secret never.
    [x, "y".repeat(58), `expected x, got "${"y".repeat(58)}"`],
    [x, "y".repeat(59), `expected x, got "${"y".repeat(56)}...`],
    [string({ pattern: /^x$/, expected: "x", secret: true }), "CANARY", "expected x"],
    [number({ min: -2, max: 2 }), NaN, "expected a number from -2 to 2, got NaN"],
    [number(), JSON.parse("1e400"), "expected a number, got Infinity"],
    [whole, 2 ** 53, "expected an integer below 2^53, got 9007199254740992"],
  ] as const)
    it(`with the message ${message.slice(0, 60)} (${path ?? "the root"})`, () =>
      refused(check, value, "invalid_value", message, path));

  it("as having the wrong type, with all allowed types listed, or as absent", () => {
    refused(union, 1, "invalid_type", "expected a string or an array or an object, got a number");
    refused(nullable(number()), undefined, "invalid_type", "expected a number, got nothing");
  });

  for (const [check, value, path] of [
    [fields, Object.create({ a: "inherited" }), "a"],
    [object({ toString: string() }), {}, "toString"],
    [tagged, parsed('{"__proto__":{"type":"mark"}}'), "type"],
  ] as const)
    it(`without ${path}: ${JSON.stringify(value)}`, () =>
      refused(check, value, "missing_required_parameter", "is required", path));
});

// core/chat/request-checks.test.ts tests the depth limit.
it("objects of any shape are accepted up to exactly their limits", () => {
  assert.ok(jsonObject({ maxValues: 2, maxChars: 7 })({ a: 1 }));
});

describe("issues", () => {
  it("without `all` are the first one, and nothing after it is checked", () => {
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

  it("with `all` are all of them, in order, without duplicates", () => {
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

  it("with `all` are collected through every composite check", () => {
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

  it("are not made of errors other than ValidationError, even by checks that drop invalid values", () => {
    for (const [check, all] of [
      [object({ a: broken }), false],
      [object({ a: broken }), true],
      [object({ a: lenient(broken) }), false],
    ] as const)
      assert.throws(
        () => check({ a: "x" }, all),
        (error) => error === bug,
      );
  });
});

// Other tests compare the published schemas of requests, replies and the configuration.
it("null beside a const has its own schema; what never fails has none", () => {
  const one = nullable(refine(number(), (n) => n, { const: 1 }));
  assert.deepEqual(one.schema, { anyOf: [{ type: "number", const: 1 }, { type: "null" }] });
  assert.deepEqual(lenient(string()).schema, {});
});

describe("paths and messages", () => {
  for (const [path, text] of [
    [[], ""],
    [[0, "x"], "[0].x"],
    [["models", "deepseek-v3.1", "price"], "models.deepseek-v3.1.price"],
    [["models", "a b", "price"], 'models["a b"].price'],
    [["models", "a..b"], 'models["a..b"]'],
    [["models", 'a"]'], 'models["a\\"]"]'],
    [["models", ""], 'models[""]'],
    [["$defs", "x"], "$defs.x"],
  ] as const)
    it(`${JSON.stringify(path)} is ${text || "empty"}`, () => assert.equal(pathText(path), text));

  it("a ValidationError's message has one line per issue, with the path if there is one", () => {
    assert.throws(() => object({ a: string(), b: string() })({ a: 1 }, true), {
      message: "a: expected a string, got a number\nb: is required",
    });
    const fault = { path: [], code: "invalid_value", message: "is wrong" } as const;
    assert.equal(issueText(fault), "is wrong");
  });

  it("a ValidationError has no stack, and other errors keep theirs", () => {
    const error = new ValidationError([{ path: ["a"], code: "invalid_value", message: "no" }]);
    assert.equal(error.stack, "Error: a: no");
    assert.match(new Error("other").stack!, /\n {4}at /);
  });

  it("fail throws one issue, by default at the root", () => {
    const atRoot = (error: unknown) =>
      error instanceof ValidationError && error.issues.length === 1 && !error.issues[0]!.path[0];
    assert.throws(() => fail("invalid_value", "no"), atRoot);
  });
});
