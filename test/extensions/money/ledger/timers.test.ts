// Repeated listeners and deadlines, on a clock that the test moves.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { repeat, waitAtMost } from "../../../../src/extensions/money/ledger/timers.ts";
import { createFakeClock } from "../../../support/fake-clock.ts";

describe("repeat", () => {
  it("calls the listener once every interval until it is stopped", () => {
    const clock = createFakeClock();
    let calls = 0;
    const stop = repeat(clock, 100, () => {
      calls += 1;
    });
    clock.advance(99);
    assert.equal(calls, 0);
    clock.advance(201);
    assert.equal(calls, 3);
    stop();
    clock.advance(1_000);
    assert.deepEqual([calls, clock.pending()], [3, 0]);
  });
});

describe("waitAtMost", () => {
  it("resolves with the work, and leaves no timer", async () => {
    const clock = createFakeClock();
    await waitAtMost(clock, 100, Promise.resolve());
    assert.equal(clock.pending(), 0);
  });

  it("resolves when the time is up, although the work goes on", async () => {
    const clock = createFakeClock();
    const waiting = waitAtMost(clock, 100, new Promise(() => undefined));
    clock.advance(100);
    await waiting;
  });

  it("rejects if the work does, and leaves no timer", async () => {
    const clock = createFakeClock();
    await assert.rejects(waitAtMost(clock, 100, Promise.reject(new Error("no"))), {
      message: "no",
    });
    assert.equal(clock.pending(), 0);
  });
});
