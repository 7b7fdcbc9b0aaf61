// The spend log of one process: one write per turn, segments and their names, and rejected requests
// if somebody deletes, changes or takes over a segment.

import assert from "node:assert/strict";
import fs, {
  appendFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { dirname, join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { acquireSocketLock } from "../../../../src/extensions/scale/data-files/index.ts";
import { hasWriter, socketOf } from "../../../../src/extensions/money/ledger/index.ts";
import { entries, linesOf, segmentPath, segments } from "../../../support/books.ts";
import { folder } from "../../../support/folder.ts";
import { startSpendLog } from "../../../support/spend-log.ts";
import { waitFor, within } from "../../../support/wait.ts";

const DAY_MS = 86_400_000;
const FIRST = "2026-01-31.0001.jsonl";

/** The sockets of the segments being written. */
const claimed = (dataDir: string): string[] =>
  readdirSync(join(dataDir, "spend")).filter((name) => name.endsWith(".sock"));

/** Whether a promise resolves within two turns of the event loop. */
async function resolvesSoon(promise: Promise<void>): Promise<boolean> {
  let isDone = false;
  promise.then(() => {
    isDone = true;
  });
  await turn();
  await turn();
  return isDone;
}

describe("the spend log", () => {
  it("writes the lines of one turn together, in order", async (t) => {
    const { dataDir, open, settle } = await startSpendLog(t);
    const path = segmentPath(dataDir);
    const [first, second] = [open("a"), open("b")];
    assert.equal(readFileSync(path, "utf8"), "");
    assert.equal(first.opened, second.opened, "one promise a turn");
    await first.opened;
    assert.deepEqual(
      linesOf(path).map(({ type, time, gateway_request_id }) => [type, time, gateway_request_id]),
      ["a", "b"].map((id) => ["open", "2026-01-31T12:00:00.000Z", id]),
    );
    const ids = linesOf(path).map(({ spend_id }) => spend_id);
    assert.notEqual(ids[0], ids[1]);
    await Promise.all([settle(second), settle(first)]);
    const settled = entries(dataDir).map((entry) => entry.settle["gateway_request_id"]);
    assert.deepEqual(settled, ["b", "a"]);
    assert.equal(statSync(path).mode & 0o777, 0o600);
  });

  it("writes open lines exactly as other programs know them", async (t) => {
    const { dataDir, log } = await startSpendLog(t);
    const holdId = "0123456789abcdef01234567";
    const opening = { requestId: 'a "q"\n', account: "ö", keyId: "k", modelRequested: "m" };
    await log.open({ ...opening, stream: false, holdId }).opened;
    await log.open({ ...opening, stream: true, holdId: holdId.toUpperCase(), hold: "0.5" }).opened;
    const id = readFileSync(join(dataDir, "gateway-id"), "utf8").slice(0, 8);
    const about = String.raw`"gateway_request_id":"a \"q\"\n","account":"ö","key_id":"k","model_requested":"m"`;
    const time = '"time":"2026-01-31T12:00:00.000Z"';
    assert.equal(
      readFileSync(segmentPath(dataDir), "utf8"),
      `{"type":"open","spend_id":"sp_${id}${holdId}",${time},${about},"stream":false}\n` +
        `{"type":"open","spend_id":"sp_${id}${holdId.toUpperCase()}",${time},${about},` +
        '"stream":true,"hold":"0.5"}\n',
    );
  });

  it("begins a new segment on a new day, and closes the old one once it is settled", async (t) => {
    const { dataDir, clock, open, settle } = await startSpendLog(t);
    const entry = open();
    await entry.opened;
    clock.advance(DAY_MS);
    await waitFor(() => {
      clock.advance(1_000); // One look per step: the jump over a day causes only one.
      return claimed(dataDir).length === 2;
    }, "the second segment");
    assert.equal(await hasWriter(segmentPath(dataDir)), true);
    await settle(entry);
    clock.advance(1_000);
    await waitFor(() => claimed(dataDir).length === 1, "the first segment to be closed");
    assert.equal(await hasWriter(segmentPath(dataDir)), false);
    assert.deepEqual(claimed(dataDir), ["2026-02-01.0001.sock"]);
    assert.deepEqual(segments(dataDir), [FIRST, "2026-02-01.0001.jsonl"]);
    assert.equal(entries(dataDir).length, 1, "both lines are in the first");
  });

  it("begins a new segment when the current one is full", async (t) => {
    const { dataDir, clock, request } = await startSpendLog(t, { segmentBytes: 100 });
    await request();
    clock.advance(1_000);
    await waitFor(() => segments(dataDir).length === 2, "the second segment");
  });

  it("never reuses a name, even if the file is gone", async (t) => {
    const namesTaken = ["2026-01-31.0007.jsonl", "2026-01-30.0009.jsonl"];
    const { dataDir } = await startSpendLog(t, { namesTaken });
    assert.deepEqual(segments(dataDir), ["2026-01-31.0008.jsonl"]);
    for (const name of ["2026-01-31.0010.sock", "2026-01-31.tgz"])
      writeFileSync(join(dataDir, "spend", name), "");
    await startSpendLog(t, { dataDir });
    assert.equal(segments(dataDir)[1], "2026-01-31.0011.jsonl");
  });

  it("rejects requests while its folder cannot be created, and recovers by itself", async (t) => {
    const dataDir = folder();
    writeFileSync(join(dataDir, "spend"), "in the way");
    const { clock, log, told, open, request } = await startSpendLog(t, { dataDir });
    assert.match(log.fault() ?? "", /EEXIST/);
    assert.throws(open, { code: "server_overloaded" });
    rmSync(join(dataDir, "spend"));
    clock.advance(1_000);
    await waitFor(() => log.fault() === null, "the log to recover");
    assert.deepEqual(told(), ["spend_log_failed", "spend_log_recovered"]);
    await request();
  });

  it("rejects requests until the disk accepts the data, logs that once, and stays closed after a broken file", async (t) => {
    const { dataDir, clock, log, open, settle, told } = await startSpendLog(t);
    const failing = t.mock.method(fs, "fsync", (_fd: number, done: (error: Error) => void) =>
      setImmediate(done, new Error("EIO")),
    );
    syncBuiltinESMExports();
    const entry = open();
    await entry.opened;
    for (const times of [1, 2]) {
      clock.advance(1_000);
      await waitFor(() => failing.mock.callCount() === times, "the disk to be asked");
      await turn();
      await turn();
      assert.equal(log.fault(), "EIO");
    }
    log.fail("a file was changed");
    log.fail("another reason");
    failing.mock.restore();
    syncBuiltinESMExports();
    clock.advance(1_000);
    await waitFor(() => told().includes("spend_log_recovered"), "the log to recover");
    assert.equal(log.fault(), "a file was changed");
    assert.throws(open, { code: "server_overloaded" });
    await settle(entry);
    assert.equal(entries(dataDir).length, 1);
    assert.deepEqual(told(), ["spend_log_failed", "spend_log_failed", "spend_log_recovered"]);
  });

  it("leaves only its lines when it is closed, and no timer", async (t) => {
    const { dataDir, clock, request, close } = await startSpendLog(t);
    await request();
    await close();
    assert.deepEqual(readdirSync(join(dataDir, "spend")), [FIRST]);
    assert.equal(clock.pending(), 0);
  });

  it("waits for the last settle lines when it is closed, for at most 2 s", async (t) => {
    const { dataDir, clock, open, settle, close } = await startSpendLog(t);
    const [first, second] = [open(), open()];
    const closing = close();
    await waitFor(() => clock.pending() === 1, "the wait");
    await settle(first);
    clock.advance(2_000);
    await closing;
    assert.equal(linesOf(segmentPath(dataDir)).length, 3);
    assert.equal(await hasWriter(segmentPath(dataDir)), false, "left to other processes");
    const other = join(folder(), "a file that gets the number of the closed one");
    const numbers = Array.from({ length: 30 }, () => fs.openSync(other, "a"));
    settle(second);
    await turn();
    await turn();
    for (const number of numbers) fs.closeSync(number);
    assert.equal(readFileSync(other, "utf8"), "");
  });

  it("waits no longer for them than they take", async (t) => {
    const { clock, open, settle, close } = await startSpendLog(t);
    const entry = open();
    const closing = close();
    await waitFor(() => clock.pending() === 1, "the wait");
    await settle(entry);
    await within(closing, "the end");
  });

  it("says so if the disk refuses what was written last", async (t) => {
    const { request, told, close } = await startSpendLog(t);
    await request();
    t.mock.method(fs, "fsync", (_fd: number, done: (error: Error) => void) =>
      setImmediate(done, new Error("EIO")),
    );
    syncBuiltinESMExports();
    await close();
    t.mock.restoreAll();
    syncBuiltinESMExports();
    assert.deepEqual(told(), ["spend_log_failed"]);
  });

  it("keeps no claim on a segment that cannot be begun", async (t) => {
    const { openSync } = fs;
    t.mock.method(fs, "openSync", (path: string, ...how: [string, number]) => {
      if (path.endsWith(FIRST)) throw new Error("ENOSPC");
      return openSync(path, ...how);
    });
    syncBuiltinESMExports();
    const { dataDir, clock, log } = await startSpendLog(t);
    assert.equal(log.fault(), "ENOSPC");
    assert.deepEqual(claimed(dataDir), []);
    t.mock.restoreAll();
    syncBuiltinESMExports();
    clock.advance(1_000);
    await waitFor(() => log.fault() === null, "the log to recover");
    assert.deepEqual(segments(dataDir), [FIRST]);
  });

  it("takes another name if another process has claimed the same", async (t) => {
    const dataDir = folder();
    await Promise.all([startSpendLog(t, { dataDir }), startSpendLog(t, { dataDir })]);
    assert.deepEqual(segments(dataDir), [FIRST, "2026-01-31.0002.jsonl"]);
  });
});

describe("a segment under a running log", () => {
  /** A log with one settled request, and one in flight. */
  async function running(t: TestContext) {
    const log = await startSpendLog(t);
    await log.request();
    const entry = log.open();
    await entry.opened;
    return { ...log, entry, path: segmentPath(log.dataDir) };
  }

  const CASES: [name: string, word: string, damage: (path: string) => void][] = [
    ["deleted", "deleted", (path) => rmSync(path)],
    [
      "moved with its folder",
      "deleted",
      (path) => renameSync(dirname(path), `${dirname(path)}.moved`),
    ],
    [
      "replaced by a copy",
      "replaced",
      (path) => {
        writeFileSync(`${path}.copy`, readFileSync(path));
        renameSync(`${path}.copy`, path);
      },
    ],
    ["cut", "changed", (path) => truncateSync(path, 10)],
    ["added to", "changed", (path) => appendFileSync(path, "{}\n")],
  ];
  for (const [name, word, damage] of CASES) {
    it(`that is ${name}: nothing is written or restored, and requests are rejected`, async (t) => {
      const { clock, log, events, told, fencings, open, settle, entry, path, close } =
        await running(t);
      damage(path);
      const left = existsSync(path) ? readFileSync(path, "utf8") : undefined;
      clock.advance(1_000);
      await waitFor(() => log.fault() !== null, "the fault");
      assert.match(
        log.fault() ?? "",
        new RegExp(`^${FIRST} was ${word} while .*stop the gateway, restore .*books rebuild`),
      );
      assert.throws(open, { code: "server_overloaded" });
      const reply = settle(entry);
      assert.equal(await resolvesSoon(reply), false, "the reply is held back");
      clock.advance(5_000);
      await turn();
      const closing = close();
      await waitFor(() => clock.pending() === 1, "the wait for the last lines");
      clock.advance(2_000);
      await within(Promise.all([closing, reply]), "the end");
      assert.equal(existsSync(path) ? readFileSync(path, "utf8") : undefined, left);
      assert.deepEqual(told(), ["spend_segment_broken"]);
      assert.deepEqual([events[0]?.["level"], events[0]?.["segment"]], ["error", FIRST]);
      assert.deepEqual(fencings, []);
    });
  }

  for (const isStolen of [true, false]) {
    const what = isStolen ? "taken by another process" : "gone";
    it(`whose socket is ${what}: the log is fenced before its next write`, async (t) => {
      const { clock, log, told, fencings, open, settle, entry, path } = await running(t);
      const socket = socketOf(path);
      rmSync(socket);
      const release = isStolen ? await acquireSocketLock(socket) : undefined;
      t.after(() => release?.());
      const left = readFileSync(path, "utf8");
      clock.advance(20); // Not yet a second: the next write looks.
      assert.equal(await resolvesSoon(settle(entry)), false);
      assert.equal(readFileSync(path, "utf8"), left);
      assert.match(log.fault() ?? "", /another process took over 2026-01-31\.0001\.jsonl/);
      assert.deepEqual(fencings, [log.fault()]);
      assert.deepEqual(told(), ["spend_log_fenced"]);
      assert.throws(open, { code: "server_overloaded" });
      clock.advance(1_000);
      await turn();
      assert.equal(existsSync(socket), isStolen, "another's socket is kept");
    });
  }
});
