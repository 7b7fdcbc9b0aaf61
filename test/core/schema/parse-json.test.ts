// JSON texts from outside: small ones are parsed at once, large ones may be refused before.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { isLarge, parseText } from "../../../src/core/schema/large-json.ts";
import { atOnce } from "../../../src/core/turns.ts";
import { slots } from "../../../src/core/extension/places.ts";
import { installed } from "../../support/config.ts";

const LARGE_CHARS = 32 * 1024;
const jsonExcess = installed.filled(slots.jsonExcess);
const retain = (): void => undefined;
const parse = (text: string, maxValues = 10): unknown =>
  atOnce(parseText(text, maxValues, { jsonExcess, retain }));

describe("parseText", () => {
  it("parses a small text and a large one", () => {
    assert.deepEqual(parse('{"a":[1]}'), { a: [1] });
    const text = "x".repeat(LARGE_CHARS);
    assert.equal(parse(JSON.stringify(text)), text);
  });

  it("does not count a text that is too short to hold much", () => {
    const text = JSON.stringify(Array.from({ length: 10_000 }, () => 1));
    const retained: number[] = [];
    const bounds = { jsonExcess, retain: (bytes: number) => retained.push(bytes) };
    assert.equal((atOnce(parseText(text, 10, bounds)) as unknown[]).length, 10_000);
    assert.deepEqual(retained, []);
  });

  it("rejects a large text with more values than the bound", () => {
    const text = JSON.stringify(Array.from({ length: LARGE_CHARS }, () => 1));
    assert.throws(() => parse(text, 1_000), {
      name: "RangeError",
      message: "more than 1000 values",
    });
  });

  it("parses what a large text holds where nothing bounds it", () => {
    const text = JSON.stringify(Array.from({ length: LARGE_CHARS }, () => 1));
    const json = atOnce(parseText(text, 1_000, { jsonExcess: undefined, retain }));
    assert.equal((json as unknown[]).length, LARGE_CHARS);
  });

  it("rejects what is no JSON, small or large", () => {
    assert.throws(() => parse("{"), SyntaxError);
    assert.throws(() => parse(`${" ".repeat(LARGE_CHARS)}{`), SyntaxError);
  });

  it("can stop before and after the parse of a large text", () => {
    const text = JSON.stringify("x".repeat(LARGE_CHARS));
    assert.equal(isLarge(text), true);
    const steps = parseText(text, 10, { jsonExcess, retain });
    assert.deepEqual(steps.next(), { done: false, value: undefined });
    assert.deepEqual(steps.next(), { done: false, value: undefined });
    assert.equal(steps.next().value, JSON.parse(text));
  });

  it("counts the values of a large text before it stops after the parse", () => {
    const text = JSON.stringify(Array.from({ length: LARGE_CHARS }, () => 1));
    const retained: number[] = [];
    const steps = parseText(text, 100_000, {
      jsonExcess,
      retain: (bytes) => retained.push(bytes),
    });
    steps.next();
    assert.deepEqual(retained, []);
    steps.next();
    assert.deepEqual(retained, [100 * (LARGE_CHARS + 1)]);
  });
});
