// A spend log on a disk that is full: a write that the disk cuts short goes on where it stopped, a
// request is refused, a reply waits for its line.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { closeSync, openSync, readFileSync, statSync, unlinkSync, writeSync } from "node:fs";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { hasWriter } from "../../../../src/extensions/money/ledger/index.ts";
import { entries, segmentPath } from "../../../support/books.ts";
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
  return { ...log, path: segmentPath(dataDir) };
}

describe("a full disk", { skip: cannotMount() }, () => {
  it("cuts a write short: requests are refused, replies wait, and nothing is lost", async (t) => {
    const { dataDir, clock, log, told, open, settle, request, path } = await onSmallDisk(t);
    await request();
    const underWay = open("under way");
    await underWay.opened;
    const giveBack = fill(dataDir);
    const before = statSync(path).size;
    const refused = open("refused".repeat(1_000)); // More than the rest of the file's last page.
    await assert.rejects(refused.opened, { code: "server_overloaded" });
    assert.equal(statSync(path).size, before, "the part that had room is taken back");
    assert.match(log.fault() ?? "", /ENOSPC/);
    assert.throws(open, { code: "server_overloaded" });

    let isSettled = false;
    const replies = Promise.all([underWay, refused].map(settle)).then(() => {
      isSettled = true;
    });
    clock.advance(1_000);
    await turn();
    await turn();
    assert.equal(isSettled, false, "the last byte waits for the line");
    assert.deepEqual(told(), ["spend_log_failed"], "it is told once");

    giveBack();
    await waitFor(() => {
      clock.advance(1_000);
      return log.fault() === null;
    }, "the log to recover");
    await within(replies, "the replies");
    await request();
    assert.equal(entries(dataDir).length, 1 + 1 + 1 + 1);
    assert.deepEqual(told(), ["spend_log_failed", "spend_log_recovered"]);
  });

  it("lets replies go when the log is closed, and leaves their requests to others", async (t) => {
    const { dataDir, clock, open, settle, close, path } = await onSmallDisk(t);
    const entry = open();
    await entry.opened;
    const giveBack = fill(dataDir);
    await assert.rejects(open("refused".repeat(1_000)).opened);
    const reply = settle(entry);
    const closing = close();
    await waitFor(() => clock.pending() === 1, "the wait for the last lines");
    clock.advance(2_000);
    await within(Promise.all([closing, reply]), "the end");
    assert.equal(await hasWriter(path), false);
    assert.doesNotMatch(readFileSync(path, "utf8"), /settle/);
    giveBack();
  });
});
