// The deadlines of one attempt: which runs when, and what restarts it.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ProviderError } from "../../../src/core/providers/provider-error.ts";
import { Deadlines } from "../../../src/core/routing/deadlines.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { TIMEOUTS } from "../../support/routing.ts";

function setUp(attemptMs?: number) {
  const clock = createFakeClock();
  const expired: string[] = [];
  const deadlines = new Deadlines(clock, { timeouts: TIMEOUTS, attemptMs }, (error) => {
    expired.push(`${error.code}: ${error.message}`);
  });
  return { clock, deadlines, expired };
}

describe("the deadlines of an attempt", () => {
  it("expire when no first token comes in time", () => {
    const { clock, deadlines, expired } = setUp();
    deadlines.sent();
    clock.advance(59_999);
    assert.deepEqual(expired, []);
    clock.advance(1);
    assert.deepEqual(expired, ["upstream_timeout: first_token_ms of 60000 ms is over"]);
  });

  it("give each piece of a stream idle_ms anew, with one timer", () => {
    const { clock, deadlines, expired } = setUp();
    deadlines.sent();
    for (let piece = 0; piece < 10; piece += 1) {
      deadlines.streaming();
      assert.equal(clock.pending(), 1);
      clock.advance(29_999);
    }
    assert.deepEqual(expired, []);
    clock.advance(1);
    assert.deepEqual(expired, ["upstream_timeout: idle_ms of 30000 ms is over"]);
  });

  it("give a finished reply closing_ms", () => {
    const { clock, deadlines, expired } = setUp();
    deadlines.streaming();
    deadlines.closing();
    clock.advance(2_000);
    assert.deepEqual(expired, ["upstream_timeout: closing_ms of 2000 ms is over"]);
  });

  it("do not run while the client has no room", () => {
    const { clock, deadlines, expired } = setUp();
    deadlines.streaming();
    deadlines.pause();
    clock.advance(1_000_000);
    assert.deepEqual(expired, []);
    deadlines.streaming();
    clock.advance(30_000);
    assert.equal(expired.length, 1);
  });

  it("bound the attempt as a whole where its provider has a total_ms, whatever comes", () => {
    const { clock, deadlines, expired } = setUp(40_000);
    for (let piece = 0; piece < 4; piece += 1) {
      deadlines.streaming();
      clock.advance(10_000);
    }
    assert.deepEqual(expired, ["upstream_timeout: total_ms of 40000 ms is over"]);
    deadlines.clear();
    assert.equal(clock.pending(), 0);
  });

  it("give the body of a refusal one second, and end with the refusal", () => {
    const { clock, deadlines, expired } = setUp(500);
    deadlines.sent();
    deadlines.refused(() => new ProviderError("model_overloaded", "status 429"));
    clock.advance(999);
    assert.deepEqual(expired, []);
    clock.advance(1);
    assert.deepEqual(expired, ["model_overloaded: status 429"]);
  });
});
