// The counter that checks JSON texts before they are parsed: it counts values and new property
// names exactly, whatever strings contain.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createJsonCounter } from "../../../../src/extensions/bounds/json-bounds/index.ts";
import { LONG } from "../../../support/long.ts";
import { startEffort } from "../../../support/effort.ts";

const TOO_MANY_VALUES = "more than 10 values";
const TOO_MANY_NAMES = "more than 10 different property names";
const numbered = <T>(count: number, make: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, index) => make(index));
const count = (...texts: string[]): string | undefined => {
  const counter = createJsonCounter(10, 10);
  return texts.map((text) => counter.add(text)).at(-1);
};
const list = (count: number, element: string) => `[${numbered(count, () => element).join(",")}]`;
const members = (count: number) => `{${numbered(count, () => '"a":1').join(",")}}`;
const object = (names: readonly string[]) =>
  `{${names.map((name) => `${JSON.stringify(name)}:1`).join("")}}`;

describe("the count of values", () => {
  for (const [name, within, beyond] of [
    ["elements of a list", list(10, "1"), list(11, "1")],
    ["empty lists", list(5, "[]"), list(6, "[]")],
    ["empty objects", list(5, "{}"), list(6, "{}")],
    ["nesting", "[".repeat(10), "[".repeat(11)],
    ["nesting in both kinds", '{"a":['.repeat(5), `${'{"a":['.repeat(5)}[`],
    ["members", members(10), members(11)],
  ] as const) {
    it(`${name}: ten pass, one more is too many`, () => {
      assert.equal(createJsonCounter(10, 100).add(within), undefined);
      assert.equal(createJsonCounter(10, 100).add(beyond), TOO_MANY_VALUES);
    });
  }

  it("the contents of a string do not count, whatever they escape", () => {
    for (const text of [
      "[[[[[[[[[[[[",
      ",,,,,,,,,,,,",
      '"[,"[,"[,"[,"[,"[,',
      '\\"\\\\"[[[[[[[[[[[,',
      "\\",
    ])
      assert.equal(count(JSON.stringify([text, text])), undefined, text);
  });

  it("an unterminated string takes the rest of the text", () => {
    assert.equal(count(`["${"[".repeat(100)}`), undefined);
    assert.equal(count('["\\'), undefined);
  });

  it("several texts of one request are counted together", () => {
    assert.equal(count("[1,2,3,4]", "[1,2,3,4]"), undefined);
    assert.equal(count("[1,2,3,4]", "[1,2,3,4]", "[1,2,3]"), TOO_MANY_VALUES);
  });

  it("a text beyond the limit does not count: a smaller one may still pass", () => {
    assert.equal(count("[1,2,3,4,5]", "[1,2,3,4,5,6]", "[1,2,3,4,5]"), undefined);
  });
});

describe("the count of property names", () => {
  const names = (from: number, count: number) => numbered(count, (index) => `n${from + index}`);
  it("ten new names pass, one more is too many, in one object or in many", () => {
    assert.equal(count(object(names(0, 10))), undefined);
    assert.equal(count(object(names(0, 11))), TOO_MANY_NAMES);
    const objects = (count: number) => names(0, count).map((name) => object([name]));
    assert.equal(createJsonCounter(100, 10).add(objects(10).join("")), undefined);
    assert.equal(createJsonCounter(100, 10).add(objects(11).join("")), TOO_MANY_NAMES);
  });

  it("an object with the names of an earlier one has no new names, at any depth", () => {
    const same = object(["a", "b", "c"]);
    assert.equal(createJsonCounter(1_000_000, 3).add(list(1_000, same)), undefined);
    const nested = `{"a":1"b":${same}"c":${same}}`;
    assert.equal(createJsonCounter(1_000_000, 3).add(list(1_000, nested)), undefined);
  });

  it("the same names in another order are new", () => {
    const both = `[${object(["a", "b"])}${object(["b", "a"])}]`;
    assert.equal(createJsonCounter(100, 4).add(both), undefined);
    assert.notEqual(createJsonCounter(100, 3).add(both), undefined);
  });

  it("after 1,000 different continuations of one beginning, each further one is always new", () => {
    const objects = numbered(1_500, (index) => object([`n${index}`])).join("");
    assert.equal(createJsonCounter(1e6, 1_500).add(objects), undefined);
    assert.equal(createJsonCounter(1e6, 2_000).add(objects + objects), undefined);
    assert.notEqual(createJsonCounter(1e6, 1_999).add(objects + objects), undefined);
  });

  it("names are distinguished: 40,000 random ones are 40,000, short or long", () => {
    for (const prefix of ["", "a name of more than thirty characters "]) {
      const random = object(numbered(40_000, (index) => `${prefix}${index}`));
      assert.notEqual(createJsonCounter(1e6, 39_990).add(random), undefined);
    }
  });
});

it("counting takes linear time for many colons after one long name, and many quotes after backslashes", () => {
  const length = LONG ? 2_000_000 : 300_000;
  const texts = [
    `{"${"x".repeat(length)}"${":".repeat(length)}`,
    `"${"\\\\".repeat(length)}"`,
    `"${'\\"'.repeat(length)}"`,
  ];
  const effort = startEffort();
  for (const text of texts) createJsonCounter(1e9, 1e9).add(text);
  const took = effort();
  assert.ok(took < 2_600, `it took ${took.toFixed(0)} units`); // quadratic: minutes
});
