// A spend log on a disk that is full: a write that the disk cuts short goes on where it stopped, a
// request is refused, a reply waits for its line.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { closeSync, openSync, statSync, unlinkSync, writeSync } from "node:fs";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { entries, segmentPath, segments } from "../../../support/books.ts";
import { folder } from "../../../support/folder.ts";
import { startSpendLog } from "../../../support/spend-log.ts";
import { waitFor, within } from "../../../support/wait.ts";

const mount = (path: string): boolean =>
  spawnSync("mount", ["-t", "tmpfs", "-o", "size=512k", "none", path]).status === 0;
const unmount = (path: string) => spawnSync("umount", ["-l", path]);

function cannotMount(): string | false {
  const path = folder();
  if (!mount(path)) return "the system lets this user mount no file system: it takes root";
  unmount(path);
  return false;
}

/** Takes all the room that is left, and returns the way to give it back. */
function fill(dir: string): () => void {
  const file = join(dir, "filler");
  const fd = openSync(file, "a");
  try {
    for (;;) writeSync(fd, Buffer.alloc(4_096));
  } catch (error) {
    assert.equal((error as NodeJS.ErrnoException).code, "ENOSPC");
  }
  closeSync(fd);
  return () => unlinkSync(file);
}

async function onSmallDisk(t: TestContext) {
  const dataDir = folder();
  assert.ok(mount(dataDir));
  t.after(() => {
    unmount(dataDir);
  });
  const log = await startSpendLog(t, { dataDir });
  /** Lets the log look once a second until something is so. */
  const lookUntil = (isSo: () => boolean, what: string) =>
    waitFor(() => {
      log.clock.advance(1_000);
      return isSo();
    }, what);
  return { ...log, lookUntil, path: segmentPath(dataDir) };
}

describe("a full disk", { skip: cannotMount() }, () => {
  it("cuts a write short: requests are refused, replies wait, and nothing is lost", async (t) => {
    const disk = await onSmallDisk(t);
    const { dataDir, clock, log, told, open, settle, request, path, lookUntil } = disk;
    await request();
    const underWay = open("under way");
    await underWay.opened;
    const giveBack = fill(dataDir);
    // More than the rest of the file's last page, in one write.
    const refused = Array.from({ length: 40 }, (_, n) => open(`refused ${n}`));
    const before = statSync(path).size;
    for (const { opened } of refused) await assert.rejects(opened, { code: "server_overloaded" });
    assert.equal(statSync(path).size, before, "the part that had room is taken back");
    assert.equal(log.fault(), `ENOSPC: no space left on device, write ${path}`);
    assert.throws(open, { code: "server_overloaded" });

    await within(settle(refused[0]!), "the end of a request that could not be opened");

    let isSettled = false;
    const replies = Promise.all([underWay, ...refused].map(settle)).then(() => {
      isSettled = true;
    });
    clock.advance(1_000);
    await turn();
    await turn();
    assert.equal(isSettled, false, "the last byte waits for the line");
    assert.deepEqual(told(), ["spend_log_failed"], "it is told once");

    giveBack();
    await lookUntil(() => log.fault() === null, "the log to recover");
    await within(replies, "the replies");
    await request();
    assert.equal(entries(dataDir).length, 1 + 1 + 40 + 1);
    assert.deepEqual(told(), ["spend_log_failed", "spend_log_recovered"]);
  });

  it("holds nothing up for longer because another segment was deleted", async (t) => {
    const { dataDir, clock, told, open, settle, path, lookUntil } = await onSmallDisk(t);
    open("first");
    clock.advance(86_400_000);
    await lookUntil(() => segments(dataDir).length === 2, "the second segment");
    const second = open("x".repeat(5_000));
    await second.opened;
    const giveBack = fill(dataDir);
    const reply = settle(second);
    await turn();
    assert.deepEqual(told(), ["spend_log_failed"]);
    unlinkSync(path);
    await lookUntil(() => told().includes("spend_segment_broken"), "the loss to be found");
    giveBack();
    clock.advance(1_000);
    await within(reply, "the reply of the other segment");
    assert.deepEqual(told(), ["spend_log_failed", "spend_segment_broken"]);
  });
});
