// Time: the system clock's timers, which stay fired or cancelled, and the queue for large work,
// which runs one step per pass of the event loop.

import assert from "node:assert/strict";
import test, { describe, it } from "node:test";
import { systemClock, type Timer } from "../../src/core/clock.ts";
import { Cancel } from "../../src/core/http/cancel.ts";
import { waitForTurn, runInTurns, type Steps } from "../../src/core/turns.ts";
import { keepBusy } from "../support/effort.ts";
import { within } from "../support/wait.ts";

/** The number of timers that the process has set. */
const timersSet = () =>
  process.getActiveResourcesInfo().filter((resource) => resource === "Timeout").length;

test("a timer that has fired does not run again", async () => {
  const timer = await new Promise<Timer>((resolve) => {
    // After the callback, because Node checks its timers once more when it ends.
    const set = systemClock.after(1, () => setImmediate(resolve, set));
  });
  timer.refresh();
  const remaining = timersSet();
  timer.cancel();
  assert.equal(remaining, 0);
});

test("a cancelled timer stays cancelled, and one that is set anew fires once", async () => {
  const cancelled = systemClock.after(60_000, () => assert.fail("it was cancelled"));
  assert.equal(timersSet(), 1);
  cancelled.cancel();
  cancelled.refresh();
  assert.equal(timersSet(), 0);
  let fired = 0;
  await new Promise<void>((resolve) => {
    const timer = systemClock.after(5, () => {
      fired += 1;
      setImmediate(resolve);
    });
    timer.refresh();
  });
  assert.deepEqual([fired, timersSet()], [1, 0]);
});

test("a timer never fires early by the monotonic clock", async () => {
  const waits = Array.from({ length: 60 }, (_, index) => 1 + index / 3);
  const passed = await Promise.all(
    waits.map((ms) => {
      const startedAt = systemClock.monotonic();
      return new Promise<number>((resolve) =>
        systemClock.after(ms, () => resolve(systemClock.monotonic() - startedAt - ms)),
      );
    }),
  );
  assert.ok(Math.min(...passed) >= 0, `${Math.min(...passed)} ms`);
});

it("waitForTurn runs one step per pass, in the order of the calls", async () => {
  let pass = 0;
  let running = true;
  const next = (): void => {
    pass += 1;
    if (running) setImmediate(next);
  };
  setImmediate(next);
  const seen: [name: number, pass: number][] = [];
  const steps = [1, 2, 3, 4, 5].map(async (name) => {
    await waitForTurn();
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

describe("runInTurns", () => {
  it("yields once a step has taken long, and never runs beside another one", async () => {
    const order: string[] = [];
    function* noting(name: string): Steps<void> {
      for (let count = 0; count < 3; count += 1) {
        order.push(name);
        keepBusy(25);
        yield;
      }
    }
    const both = ["a", "b"].map((name) => runInTurns(noting(name), new Cancel()));
    await within(Promise.all(both), "both");
    assert.deepEqual(order, ["a", "b", "a", "b", "a", "b"]);
  });

  it("throws the reason of a cancellation, and takes no further step", async () => {
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

  it("ends on cancellation before others have their turn, so that nothing is retained", async () => {
    const cancel = new Cancel();
    const order: string[] = [];
    function* long(): Steps<void> {
      keepBusy(25);
      cancel.abort(new Error("left"));
      yield;
    }
    const ended = runInTurns(long(), cancel).catch(() => order.push("ended"));
    const others = waitForTurn().then(() => order.push("others"));
    await within(Promise.all([ended, others]), "both");
    assert.deepEqual(order, ["ended", "others"]);
  });
});
