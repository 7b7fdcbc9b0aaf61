// JSON texts from outside: small ones are parsed at once, large ones may be refused before.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { parseLarge } from "../../../src/core/schema/large-json.ts";
import { extension } from "../../../src/extensions/json-bounds/index.ts";

const LARGE_CHARS = 256 * 1024;
const parse = (text: string, maxValues = 10): Promise<unknown> =>
  parseLarge(text, maxValues, extension.jsonExcess);

describe("parseLarge", () => {
  it("parses a small text and a large one", async () => {
    assert.deepEqual(await parse('{"a":[1]}'), { a: [1] });
    const text = "x".repeat(LARGE_CHARS);
    assert.equal(await parse(JSON.stringify(text)), text);
  });

  it("does not count a text that is too short to hold much", async () => {
    const text = JSON.stringify(Array.from({ length: 100_000 }, () => 1));
    assert.equal(((await parse(text)) as unknown[]).length, 100_000);
  });

  it("rejects a large text with more values than the bound", async () => {
    const text = JSON.stringify(Array.from({ length: LARGE_CHARS }, () => 1));
    await assert.rejects(parse(text, 1_000), {
      name: "RangeError",
      message: "more than 1000 values",
    });
  });

  it("parses what a large text holds where nothing bounds it", async () => {
    const text = JSON.stringify(Array.from({ length: LARGE_CHARS }, () => 1));
    const json = await parseLarge(text, 1_000, undefined);
    assert.equal((json as unknown[]).length, LARGE_CHARS);
  });

  it("rejects what is no JSON, small or large", async () => {
    await assert.rejects(parse("{"), SyntaxError);
    await assert.rejects(parse(`${" ".repeat(LARGE_CHARS)}{`), SyntaxError);
  });

  it("gives other work a turn around a large text", async () => {
    let turns = 0;
    const count = (): void => {
      turns += 1;
      if (turns < 10) setImmediate(count);
    };
    setImmediate(count);
    await parse(JSON.stringify("x".repeat(LARGE_CHARS)));
    assert.ok(turns >= 2, `${turns} turns`);
  });
});
