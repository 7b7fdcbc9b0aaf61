// JSON objects of any shape, bounded in depth.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { jsonObject } from "../../../src/core/schema/checker.ts";
import { refused, nested } from "../../support/checks.ts";

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
    assert.ok(jsonObject({ maxDepth: 3 })(objects(3)));
    refused(
      jsonObject({ maxDepth: 3 }),
      objects(4),
      "invalid_value",
      "expected at most 3 levels of nesting",
    );
    assert.ok(jsonObject()(objects(100)));
    refused(jsonObject(), objects(101), "invalid_value", "expected at most 100 levels of nesting");
  });
  it("counts arrays as levels too", () => {
    assert.ok(jsonObject({ maxDepth: 3 })({ a: [[1]] }));
    refused(
      jsonObject({ maxDepth: 3 }),
      { a: [[[]]] },
      "invalid_value",
      "expected at most 3 levels of nesting",
    );
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
