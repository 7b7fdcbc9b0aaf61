// JSON texts from outside: small ones are parsed at once, large ones are counted before.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { parseLarge } from "../../../src/core/schema/json-bounds.ts";

const LARGE_CHARS = 256 * 1024;

describe("parseLarge", () => {
  it("parses a small text and a large one", async () => {
    assert.deepEqual(await parseLarge('{"a":[1]}', 10), { a: [1] });
    const text = "x".repeat(LARGE_CHARS);
    assert.equal(await parseLarge(JSON.stringify(text), 10), text);
  });

  it("rejects a large text with more values than the bound", async () => {
    const text = JSON.stringify(Array.from({ length: LARGE_CHARS }, () => 1));
    await assert.rejects(parseLarge(text, 1_000), {
      name: "RangeError",
      message: "more than 1000 values",
    });
  });

  it("rejects what is no JSON, small or large", async () => {
    await assert.rejects(parseLarge("{", 10), SyntaxError);
    await assert.rejects(parseLarge(`${" ".repeat(LARGE_CHARS)}{`, 10), SyntaxError);
  });

  it("gives other work a turn around a large text", async () => {
    let turns = 0;
    const count = (): void => {
      turns += 1;
      if (turns < 10) setImmediate(count);
    };
    setImmediate(count);
    await parseLarge(JSON.stringify("x".repeat(LARGE_CHARS)), 10);
    assert.ok(turns >= 2, `${turns} turns`);
  });
});
