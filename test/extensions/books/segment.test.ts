// A segment while its process writes it: one write a turn, replies that wait for the disk, and
// files that somebody deletes, replaces or cuts.

import assert from "node:assert/strict";
import { existsSync, readFileSync, renameSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { ledgerUnavailable } from "../../../src/core/ledger/ledger.ts";
import type { OpenRecord, SettleRecord } from "../../../src/extensions/books/spend-log/records.ts";
import { openSegment } from "../../../src/extensions/books/spend-log/segment.ts";
import {
  claimSegment,
  type SegmentClaim,
} from "../../../src/extensions/books/spend-log/segment-claim.ts";
import { claimFileOf } from "../../../src/extensions/books/spend-log/segment-names.ts";
import { linesOf, openLine, settleLine, textOf } from "../../support/books.ts";
import { folder } from "../../support/folder.ts";

const NAME = "2026-01-31.0001.jsonl";
const NEXT = "2026-01-31.0002.jsonl";
const open = (n: number) => openLine(n) as OpenRecord;
const settle = (n: number) => settleLine(n) as SettleRecord;

async function create(t: TestContext) {
  const dir = folder();
  const path = join(dir, NAME);
  const failures: unknown[] = [];
  const segment = openSegment((await claimSegment(path)) as SegmentClaim, (error) => {
    failures.push(error);
    return ledgerUnavailable(error);
  });
  let isOpen = true;
  const close = () => {
    if (isOpen) segment.close();
    isOpen = false;
  };
  t.after(close);
  const reserve = async () => (await claimSegment(join(dir, NEXT))) as SegmentClaim;
  return { dir, path, segment, failures, close, reserve };
}

describe("a segment", () => {
  it("writes the lines of one turn together, in their order", async (t) => {
    const { path, segment } = await create(t);
    const first = segment.open(open(1));
    const second = segment.open(open(2));
    assert.equal(readFileSync(path, "utf8"), "");
    await Promise.all([first.opened, second.opened]);
    assert.deepEqual(linesOf(path), [open(1), open(2)]);
    assert.equal(segment.size(), Buffer.byteLength(textOf([open(1), open(2)])));
  });

  it("counts what is unsettled, and tells when nothing is", async (t) => {
    const { path, segment } = await create(t);
    await segment.whenSettled();
    const entry = segment.open(open(1));
    assert.equal(segment.unsettled(), 1);
    let isSettled = false;
    const waiting = segment.whenSettled().then(() => {
      isSettled = true;
    });
    await entry.opened;
    assert.equal(isSettled, false);
    await entry.settle(settle(1));
    await waiting;
    assert.deepEqual([segment.unsettled(), linesOf(path)], [0, [open(1), settle(1)]]);
  });

  it("that is closed leaves no claim, unless a request is unsettled", async (t) => {
    const settled = await create(t);
    settled.close();
    assert.ok(!existsSync(claimFileOf(settled.path)));
    const unsettled = await create(t);
    await unsettled.segment.open(open(1)).opened;
    unsettled.close();
    assert.equal(readFileSync(claimFileOf(unsettled.path), "utf8"), "");
  });

  it("whose file was deleted has all lines again, in its place", async (t) => {
    const { path, segment, reserve } = await create(t);
    const entry = segment.open(open(1));
    await entry.opened;
    rmSync(path);
    assert.equal(segment.isLost(), true);
    const { bytes, lines } = await segment.restore(reserve);
    assert.deepEqual([bytes, lines], [Buffer.byteLength(textOf([open(1)])), 1]);
    await entry.settle(settle(1));
    assert.deepEqual(linesOf(path), [open(1), settle(1)]);
    assert.deepEqual([segment.isLost(), segment.name()], [false, NAME]);
  });

  it("whose name another segment has taken goes on under the next name", async (t) => {
    const { dir, path, segment, reserve } = await create(t);
    const entry = segment.open(open(1));
    await entry.opened;
    const others = textOf([openLine(7), settleLine(7)]);
    rmSync(path);
    writeFileSync(path, others);
    await segment.restore(reserve);
    await entry.settle(settle(1));
    assert.equal(segment.name(), NEXT);
    assert.equal(readFileSync(path, "utf8"), others);
    assert.deepEqual(linesOf(join(dir, NEXT)), [open(1), settle(1)]);
  });

  it("reports once how much was cut off in its place", async (t) => {
    const { path, segment } = await create(t);
    await segment.open(open(1)).opened;
    const size = segment.size();
    truncateSync(path, 10);
    assert.equal(segment.isLost(), true);
    assert.deepEqual([segment.takeOverwritten(), segment.takeOverwritten()], [size - 10, 0]);
    assert.equal(segment.isLost(), false);
  });

  it("that was moved away with its folder is lost", async (t) => {
    const { dir, segment } = await create(t);
    renameSync(dir, `${dir}.moved`);
    assert.equal(segment.isLost(), true);
    renameSync(`${dir}.moved`, dir);
    assert.equal(segment.isLost(), false);
  });

  it("leaves no trace of looking for room", async (t) => {
    const { path, segment } = await create(t);
    await segment.open(open(1)).opened;
    segment.retry();
    assert.equal(readFileSync(path, "utf8"), textOf([open(1)]));
  });

  it("refuses a request whose open line cannot be written, and holds back a reply", async (t) => {
    const { segment, failures, close } = await create(t);
    const entry = segment.open(open(1));
    await entry.opened;
    close(); // From here on every write fails.
    await assert.rejects(segment.open(open(2)).opened, { code: "server_overloaded" });
    let isWritten = false;
    entry.settle(settle(1)).then(() => {
      isWritten = true;
    });
    await turn();
    await turn();
    assert.equal(isWritten, false);
    assert.equal(failures.length, 2);
  });
});
