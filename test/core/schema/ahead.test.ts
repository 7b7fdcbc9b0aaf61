// Long lists that are checked ahead, in steps: the result and the issues are those of one check.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { chatRequest, message as chatMessage } from "../../../src/core/openai/request.ts";
import {
  withCheckedAhead,
  array,
  checkInSteps,
  number,
  object,
  string,
} from "../../../src/core/schema/checker.ts";
import { runSync } from "../../../src/core/turns.ts";
import { LONG } from "../../support/long.ts";
import { createRandom } from "../../support/random.ts";

const element = withCheckedAhead(object({ a: number() }));
const whole = object({ name: string(), list: array(element, { min: 1 }) });
const steps = (value: unknown) =>
  checkInSteps(whole, value, (value as { list?: unknown } | null)?.list, element);
const ahead = (value: unknown) => runSync(steps(value));
const listOf = (length: number): object[] => Array.from({ length }, (_, a) => ({ a }));

describe("checkInSteps", () => {
  it("can stop between elements", () => {
    const running = steps({ name: "x", list: listOf(1_000) });
    let stops = 0;
    while (!running.next().done) stops += 1;
    assert.equal(stops, 20);
  });

  it("leaves the value as it came, for others who read it", () => {
    const value = { name: "x", list: listOf(3) };
    const before = structuredClone(value);
    ahead(value);
    assert.deepEqual(value, before);
  });
});

describe("a chat completion", () => {
  it("gives the same in steps as at once, for requests that are right and wrong", (t) => {
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
});
