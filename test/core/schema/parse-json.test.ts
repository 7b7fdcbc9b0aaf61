// JSON texts from outside: large ones are parsed in steps. What is refused: chat/request-checks.test.ts.

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

describe("parseText", () => {
  it("counts the values of a large text only if something counts them", () => {
    const json = runSync(parseText(listOf(LARGE_CHARS), 1_000, { jsonExcess: undefined, retain }));
    assert.equal((json as unknown[]).length, LARGE_CHARS);
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
