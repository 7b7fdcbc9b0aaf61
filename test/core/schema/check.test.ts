// What a check reports: paths, the text of an issue, the error.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  fail,
  issueText,
  object,
  pathText,
  string,
  ValidationError,
} from "../../../src/core/schema/checker.ts";

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
      issueText({ path: ["a", 0], code: "invalid_value", message: "is wrong" }),
      "a[0]: is wrong",
    );
    assert.equal(issueText({ path: [], code: "invalid_value", message: "is wrong" }), "is wrong");
  });

  it("a ValidationError's message is one line a fault", () =>
    assert.throws(() => object({ a: string(), b: string() })({ a: 1 }, true), {
      message: "a: expected a string, got a number\nb: is required",
    }));

  it("a ValidationError has no stack, and leaves that of other errors as it was", () => {
    const error = new ValidationError([{ path: ["a"], code: "invalid_value", message: "no" }]);
    assert.equal(error.stack, "Error: a: no");
    assert.match(new Error("other").stack!, /\n {4}at /);
  });

  it("fail throws one fault, by default at the root", () => {
    assert.throws(
      () => fail("invalid_value", "no"),
      (error) =>
        error instanceof ValidationError &&
        error.issues.length === 1 &&
        error.issues[0]?.path.length === 0,
    );
  });
});
