// When segments are deleted: by all that says how old they are, and never by a clock that has just jumped.

import assert from "node:assert/strict";
import { existsSync, readFileSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import {
  handMade,
  openLine,
  segmentPath,
  segments,
  settleLine,
  textOf,
  usageCount,
  usageRecords,
} from "./support/books.ts";
import { folder } from "./support/folder.ts";
import { serve } from "./support/ledger.ts";
import { waitFor } from "./support/wait.ts";

const DAY = 86_400_000;
const START = Date.parse("2026-03-01T12:00:00Z");
const KEEP = { spend: { keep_days: 10 } };

/** A segment with one request that ended at `time`, last written then, named after the day of `named`. */
function segmentOf(dir: string, n: number, time: number, named = time): string {
  const name = `${new Date(named).toISOString().slice(0, 10)}.${String(n).padStart(4, "0")}.jsonl`;
  const at = new Date(time).toISOString();
  handMade(dir, name, textOf([openLine(n, { time: at }), settleLine(n, { time: at })]), "let go");
  utimesSync(segmentPath(dir, name), time / 1_000, time / 1_000);
  return name;
}

/** One life of a gateway by this clock: two passes of the sync at least. */
async function pass(t: TestContext, dir: string, now: number): Promise<void> {
  const run = await serve(t, dir, KEEP, { now: () => now });
  await run.stop();
}

describe("a clock that is ahead by more than keep_days, and then right again", () => {
  it("deletes nothing too early, and what is old in time", async (t) => {
    const dir = folder();
    const young = segmentOf(dir, 1, START - DAY);
    await pass(t, dir, START);
    for (let hour = 0; hour < 20; hour += 5)
      await pass(t, dir, START + 900 * DAY + (hour * DAY) / 24);
    assert.deepEqual(segments(dir), [young], "while it is ahead");
    await pass(t, dir, START + DAY / 24);
    await pass(t, dir, START + 2 * (DAY / 24));
    assert.deepEqual(segments(dir), [young], "when it is right again");
    for (let day = 1; day <= 12; day += 0.5) await pass(t, dir, START + day * DAY);
    assert.deepEqual(segments(dir), [], "when it is old");
    assert.equal(usageRecords(dir).length, 1);
  });

  it("within the life of one process: requests of both times are copied, and nothing is deleted", async (t) => {
    const dir = folder();
    const young = segmentOf(dir, 1, START - DAY);
    const clock = { now: START };
    const run = await serve(t, dir, KEEP, { now: () => clock.now });
    const ask = async () =>
      (
        await run.gw.chat(
          { model: "demo-chat", messages: [{ role: "user", content: "hi" }] },
          { authorization: "Bearer sk-demo" },
        )
      ).text();
    await ask();
    await waitFor(() => existsSync(join(dir, "clock.json")), "the clock to be noted");
    clock.now = START + 900 * DAY;
    await waitFor(() => segments(dir).some((name) => name.startsWith("2028")), "its segment");
    await ask();
    await waitFor(() => usageCount(dir) === 3, "three records");
    clock.now = START + DAY / 24;
    await waitFor(
      () => segments(dir).some((name) => /^2026-03-01\.0002/.test(name)),
      "a segment of the right day",
    );
    await ask();
    await waitFor(() => usageCount(dir) === 4, "the request after it, whose segment sorts before");
    assert.ok(segments(dir).includes(young));
    await run.stop();
    assert.ok(segments(dir).includes(young));
  });

  it("hides no lag: what is not copied is late by the steady clock too", async (t) => {
    const dir = folder();
    const clock = { now: START + 900 * DAY };
    const run = await serve(t, dir, KEEP, { now: () => clock.now });
    await run.ask(1);
    writeFileSync(join(dir, "usage", "cursor.json"), "{"); // nothing can be copied from here on
    await waitFor(
      () => run.gw.diagnostics.some(({ event }) => event === "usage_sync_failed"),
      "the fault",
    );
    clock.now = START;
    const first = (await run.usage()).lag_seconds ?? 0;
    const began = performance.now();
    await waitFor(() => performance.now() - began > 50, "some time to pass");
    const second = (await run.usage()).lag_seconds ?? 0;
    assert.ok(second >= first + 0.05, `${first} s, then ${second} s`);
  });
});

describe("a segment", { concurrency: 2 }, () => {
  for (const [what, time, named, modified] of [
    ["whose newest line is younger than its name and its file say", -1, -30, -30],
    ["whose file was written lately", -30, -30, -1],
    ["whose name has a later day", -30, -1, -30],
  ] as const) {
    it(`${what} is kept`, async (t) => {
      const dir = folder();
      const name = segmentOf(dir, 1, START + time * DAY, START + named * DAY);
      const at = (START + modified * DAY) / 1_000;
      utimesSync(segmentPath(dir, name), at, at);
      await pass(t, dir, START);
      await pass(t, dir, START);
      assert.deepEqual(segments(dir), [name]);
    });
  }

  it("that is old by all of them is deleted, also beside one that is dated in the future", async (t) => {
    const dir = folder();
    segmentOf(dir, 1, START - 30 * DAY);
    const future = segmentOf(dir, 2, START + 900 * DAY);
    await pass(t, dir, START);
    await pass(t, dir, START);
    assert.deepEqual(segments(dir), [future]);
  });

  it("is deleted a day after a gateway that was long away has come back", async (t) => {
    const dir = folder();
    await pass(t, dir, START);
    const old = segmentOf(dir, 1, START - DAY);
    await pass(t, dir, START + 30 * DAY);
    assert.deepEqual(segments(dir), [old]);
    assert.match(
      readFileSync(join(dir, "clock.json"), "utf8"),
      /"delete_nothing_until":"2026-04-01/,
    );
    await pass(t, dir, START + 30.9 * DAY);
    assert.deepEqual(segments(dir), [old]);
    await pass(t, dir, START + 31.1 * DAY);
    assert.deepEqual(segments(dir), []);
  });
});
