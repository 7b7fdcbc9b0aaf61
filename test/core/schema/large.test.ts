// Large JSON in steps that yield to other work: texts are parsed and long lists checked ahead, with
// the same result and issues as in one step.

import assert from "node:assert/strict";
import { it } from "node:test";
import { slots } from "../../../src/core/extension/places.ts";
import { chatRequest, message as chatMessage } from "../../../src/core/openai/request.ts";
import {
  array,
  checkInSteps,
  number,
  object,
  string,
  withCheckedAhead,
} from "../../../src/core/schema/checker.ts";
import { isLarge, parseText } from "../../../src/core/schema/large-json.ts";
import { runSync } from "../../../src/core/turns.ts";
import { installed } from "../../support/config.ts";
import { LONG } from "../../support/long.ts";
import { createRandom } from "../../support/random.ts";

const LARGE_CHARS = 32 * 1024;
const jsonExcess = installed.filled(slots.jsonExcess);
const retain = (): void => undefined;
const onesOf = (count: number): string => JSON.stringify(Array<number>(count).fill(1));

it("parseText counts the values of a large text only if a counter is set", () => {
  const json = runSync(parseText(onesOf(LARGE_CHARS), 1_000, { jsonExcess: undefined, retain }));
  assert.equal((json as unknown[]).length, LARGE_CHARS);
});

it("parseText can stop before and after it parses a large text, and has then counted its values", () => {
  const text = onesOf(LARGE_CHARS);
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

const element = withCheckedAhead(object({ a: number() }));
const whole = object({ name: string(), list: array(element, { min: 1 }) });
const steps = (value: unknown) =>
  checkInSteps(whole, value, (value as { list?: unknown } | null)?.list, element);
const ahead = (value: unknown) => runSync(steps(value));
const listOf = (length: number): object[] => Array.from({ length }, (_, a) => ({ a }));

it("checkInSteps can stop between elements", () => {
  const running = steps({ name: "x", list: listOf(1_000) });
  let stops = 0;
  while (!running.next().done) stops += 1;
  assert.equal(stops, 20);
});

it("checkInSteps leaves the value unchanged for its other readers", () => {
  const value = { name: "x", list: listOf(3) };
  const before = structuredClone(value);
  ahead(value);
  assert.deepEqual(value, before);
});

it("a chat completion has the same result in steps as at once, valid or invalid", (t) => {
  const seed = Date.now() % 1_000_000;
  t.diagnostic(`seed ${seed}`);
  const { pick, between } = createRandom(seed);
  const values = [undefined, null, 1, "", "x", [], [null], {}, { type: "text", text: "y" }];
  const message = () => ({
    role: pick(["user", "assistant", "system", "developer", "tool", "robot"]),
    content: pick([...values, "x", "x", "x", [{ type: "text", text: "z" }]]),
    tool_calls: pick([undefined, undefined, [{ id: "c", function: { name: "f" } }]]),
    tool_call_id: pick([undefined, "c"]),
  });
  let right = 0;
  for (let round = 0; round < (LONG ? 20_000 : 2_000); round += 1) {
    const json = {
      model: pick(["m", "m", "m", undefined]),
      messages: Array.from({ length: between(0, 3) }, message),
      temperature: pick([undefined, 1, 3]),
    };
    const outcome = (check: () => unknown): unknown => {
      try {
        return check();
      } catch (error) {
        return (error as Error).message;
      }
    };
    const expected = outcome(() => chatRequest(json));
    if (typeof expected !== "string") right += 1;
    assert.deepEqual(
      outcome(() => runSync(checkInSteps(chatRequest, json, json.messages, chatMessage))),
      expected,
      JSON.stringify(json),
    );
  }
  assert.ok(right > 20, `${right} of them were right`);
});
