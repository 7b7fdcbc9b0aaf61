// The machine's timers: fired or cancelled, they stay so.

import assert from "node:assert/strict";
import test from "node:test";
import { systemClock, type Timer } from "../../src/core/clock.ts";

/** How many timers the process has set. */
const timersSet = () =>
  process.getActiveResourcesInfo().filter((resource) => resource === "Timeout").length;

test("a timer that has fired is not set again", async () => {
  const timer = await new Promise<Timer>((resolve) => {
    // After the callback, as Node looks at its timers once more when that has ended.
    const set = systemClock.after(1, () => setImmediate(resolve, set));
  });
  timer.refresh();
  const remaining = timersSet();
  timer.cancel();
  assert.equal(remaining, 0);
});

test("a cancelled timer is not set again, and one that is set again fires once", async () => {
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

test("a timer never fires too early by the monotonic clock", async () => {
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
