// The queue for work that grows with what is sent: one step in a pass of the event loop.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Cancel } from "../../src/core/http/cancel.ts";
import { runInTurns, ownTurn, type Steps } from "../../src/core/turns.ts";
import { within } from "../support/wait.ts";

/** Keeps the event loop busy. */
function busy(ms: number): void {
  const until = performance.now() + ms;
  while (performance.now() < until);
}

describe("ownTurn", () => {
  it("lets one step run in a pass, in the order in which they were asked for", async () => {
    let pass = 0;
    let running = true;
    const next = (): void => {
      pass += 1;
      if (running) setImmediate(next);
    };
    setImmediate(next);
    const seen: [name: number, pass: number][] = [];
    const steps = [1, 2, 3, 4, 5].map(async (name) => {
      await ownTurn();
      seen.push([name, pass]);
    });
    await within(Promise.all(steps), "all steps");
    running = false;
    assert.deepEqual(
      seen.map(([name]) => name),
      [1, 2, 3, 4, 5],
    );
    assert.equal(new Set(seen.map(([, at]) => at)).size, 5);
  });
});

describe("runInTurns", () => {
  it("stops for others once a step has taken long, and never runs beside another one", async () => {
    const order: string[] = [];
    function* noting(name: string): Steps<void> {
      for (let count = 0; count < 3; count += 1) {
        order.push(name);
        busy(25);
        yield;
      }
    }
    const both = ["a", "b"].map((name) => runInTurns(noting(name), new Cancel()));
    await within(Promise.all(both), "both");
    assert.deepEqual(order, ["a", "b", "a", "b", "a", "b"]);
  });

  it("throws the reason of a cancellation, and does no further step", async () => {
    const cancel = new Cancel();
    let done = 0;
    function* endless(): Steps<never> {
      for (;;) {
        done += 1;
        if (done === 3) cancel.abort(new Error("left"));
        yield;
      }
    }
    await assert.rejects(within(runInTurns(endless(), cancel), "the end"), { message: "left" });
    assert.equal(done, 3);
  });

  it("ends with a cancellation before others have their turn, so that nothing is kept meanwhile", async () => {
    const cancel = new Cancel();
    const order: string[] = [];
    function* long(): Steps<void> {
      busy(25);
      cancel.abort(new Error("left"));
      yield;
    }
    const ended = runInTurns(long(), cancel).catch(() => order.push("ended"));
    const others = ownTurn().then(() => order.push("others"));
    await within(Promise.all([ended, others]), "both");
    assert.deepEqual(order, ["ended", "others"]);
  });
});
