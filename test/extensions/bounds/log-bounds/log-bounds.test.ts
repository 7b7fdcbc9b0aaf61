// A log whose reader may be too slow: what is kept for it is bounded, what is dropped is counted.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createLineLog } from "../../../../src/core/http/line-log.ts";
import { boundLog, MAX_BACKLOG } from "../../../../src/extensions/bounds/log-bounds/index.ts";
import { createStalledReader } from "../../../support/stalled-reader.ts";
import { waitFor } from "../../../support/wait.ts";

describe("a line log", () => {
  it("keeps 8 MB for a reader that stalls, drops the rest, and tells how much when it goes on", async () => {
    const reader = createStalledReader();
    let dropped = 0;
    const recovered: number[] = [];
    const write = boundLog(reader.stream, {
      dropped: () => (dropped += 1),
      recovered: (lines) => recovered.push(lines),
    });
    const log = createLineLog(write);
    const line = { text: "x".repeat(1_000) };
    const count = 20_000;
    for (let at = 0; at < count; at += 1) {
      log.write(line);
      if (at % 100 === 99) await new Promise(setImmediate);
    }
    assert.ok(reader.stream.writableLength <= MAX_BACKLOG, `${reader.stream.writableLength}`);
    assert.ok(reader.stream.writableLength > MAX_BACKLOG * 0.9, "what may be kept is kept");
    assert.ok(dropped > count / 2);
    assert.deepEqual(recovered, []);
    reader.resume();
    await waitFor(() => recovered.length > 0, "the log to recover");
    assert.deepEqual(recovered, [dropped]);
    assert.equal(reader.lines().length + dropped, count);
    log.write(line);
    log.flush();
    assert.equal(reader.lines().length + dropped, count + 1, "it goes on");
    assert.ok(
      reader.lines().every((each) => JSON.parse(each).text.length === 1_000),
      "whole lines",
    );
  });

  it("drops nothing for a reader that keeps up, however much comes in one turn", async () => {
    const reader = createStalledReader();
    reader.resume();
    const write = boundLog(reader.stream, {
      dropped: () => assert.fail("a line was dropped"),
      recovered: () => assert.fail("nothing was dropped"),
    });
    const log = createLineLog(write);
    for (let at = 0; at < 20_000; at += 1) log.write({ at, text: "x".repeat(1_000) });
    await new Promise(setImmediate);
    assert.equal(reader.lines().length, 20_000);
  });
});
