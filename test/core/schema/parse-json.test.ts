// JSON texts from outside: small ones are parsed at once, large ones may be refused before.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { isLarge, parseText } from "../../../src/core/schema/large-json.ts";
import { runSync } from "../../../src/core/turns.ts";
import { slots } from "../../../src/core/extension/places.ts";
import { installed } from "../../support/config.ts";

const LARGE_CHARS = 32 * 1024;
const jsonExcess = installed.filled(slots.jsonExcess);
const retain = (): void => undefined;
const listOf = (count: number): string => JSON.stringify(Array<number>(count).fill(1));
const parse = (text: string, maxValues = 10): unknown =>
  runSync(parseText(text, maxValues, { jsonExcess, retain }));

describe("parseText", () => {
  it("parses a small text and a large one", () => {
    assert.deepEqual(parse('{"a":[1]}'), { a: [1] });
    const text = "x".repeat(LARGE_CHARS);
    assert.equal(parse(JSON.stringify(text)), text);
  });

  it("does not count a text that is too short to hold much", () => {
    assert.equal((parse(listOf(10_000)) as unknown[]).length, 10_000);
  });

  it("rejects a large text with more values than the bound, if something counts them", () => {
    assert.throws(() => parse(listOf(LARGE_CHARS), 1_000), {
      name: "RangeError",
      message: "more than 1000 values",
    });
    const json = runSync(parseText(listOf(LARGE_CHARS), 1_000, { jsonExcess: undefined, retain }));
    assert.equal((json as unknown[]).length, LARGE_CHARS);
  });

  it("rejects what is no JSON, small or large", () => {
    assert.throws(() => parse("{"), SyntaxError);
    assert.throws(() => parse(`${" ".repeat(LARGE_CHARS)}{`), SyntaxError);
  });

  it("can stop before and after the parse of a large text, whose values it has counted then", () => {
    const text = listOf(LARGE_CHARS);
    assert.equal(isLarge(text), true);
    const retained: number[] = [];
    const bounds = { jsonExcess, retain: (bytes: number) => retained.push(bytes) };
    const steps = parseText(text, 100_000, bounds);
    for (const counted of [[], [100 * (LARGE_CHARS + 1)]]) {
      assert.deepEqual(steps.next(), { done: false, value: undefined });
      assert.deepEqual(retained, counted);
    }
    assert.deepEqual(steps.next().value, JSON.parse(text));
  });
});
