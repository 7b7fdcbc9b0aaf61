// Which files in the spend log's folder are segments; open requests of a dead process, which are
// settled as interrupted; and segments on a full disk: a write that the disk cut short continues
// where it stopped, requests are rejected, replies wait for their lines.

import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import fs, { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { settleInterrupted, socketOf } from "../../../../src/extensions/money/ledger/index.ts";
import { segmentsIn } from "../../../../src/extensions/money/ledger/segment-names.ts";
import { acquireSocketLock } from "../../../../src/extensions/scale/data-files/index.ts";
import type { OpenLine } from "../../../../src/extensions/money/records/index.ts";
import * as books from "../../../support/books.ts";
import { createFakeClock } from "../../../support/fake-clock.ts";
import { folder } from "../../../support/folder.ts";
import { NOON, startSpendLog } from "../../../support/spend-log.ts";
import { waitFor, within } from "../../../support/wait.ts";

const { linesOf, openLine, settleLine, textOf } = books;

const open = (n: number, over: object = {}) => openLine(n, over) as OpenLine;
const options = { currency: "EUR", clock: createFakeClock(NOON + 5_000) };

/** A segment that no process writes. */
function left(text: string): string {
  const dir = join(folder({ inMemory: true }), "spend");
  mkdirSync(dir);
  const path = join(dir, "2026-01-31.0001.jsonl");
  writeFileSync(path, text);
  return path;
}

describe("settleInterrupted", () => {
  it("settles requests as interrupted: no usage, no cost, other values unchanged", async () => {
    const before = textOf([open(1), open(2, { account: "Zürich" }), settleLine(1)]);
    const path = left(before);
    const end = Buffer.byteLength(before);
    const began = performance.now();
    const opens = [open(2, { account: "Zürich" })];
    assert.equal(await settleInterrupted(path, end, opens, options), true);
    const waited = performance.now() - began;
    assert.ok(waited > 45, `${waited} ms: a process without its socket looks within 10 ms`);
    assert.ok(readFileSync(path, "utf8").startsWith(before));
    const nothing = { model_served: null, provider: null, http_status: null, finish_reason: null };
    const interrupted = settleLine(2, {
      ...{ account: "Zürich", time: "2026-01-31T12:00:05.000Z", status: "interrupted" },
      ...{
        ...nothing,
        first_token_ms: null,
        attempts: [],
        usage: books.NO_USAGE,
        usage_source: "none",
      },
      ...{ cost: "0", currency: "EUR", duration_ms: 5_000 },
    });
    assert.deepEqual(linesOf(path).slice(3), [interrupted]);
    assert.ok(!existsSync(socketOf(path)), "no socket is left");
  });

  it("changes nothing if a complete line was appended meanwhile", async () => {
    const path = left(textOf([open(1)]));
    const end = Buffer.byteLength(textOf([open(1)]));
    appendFileSync(path, textOf([settleLine(1)]));
    const before = readFileSync(path, "utf8");
    assert.equal(await settleInterrupted(path, end, [open(1)], options), false);
    assert.equal(readFileSync(path, "utf8"), before);
    assert.ok(!existsSync(socketOf(path)));
  });

  it("does not touch the segment of a process that responds", async (t) => {
    const before = textOf([open(1)]);
    const path = left(before);
    t.after((await acquireSocketLock(socketOf(path)))!);
    assert.equal(await settleInterrupted(path, before.length, [open(1)], options), false);
    assert.equal(readFileSync(path, "utf8"), before);
  });
});

it("finds segments, oldest first", () => {
  const dir = folder();
  const segments = ["2026-01-31.0001.jsonl", "2026-01-31.0002.jsonl", "2026-02-01.0001.jsonl"];
  const others = ["2026-01-31.0001.sock", "a.json", "2026-01-31.1.jsonl", `${segments[0]}.new`];
  for (const name of [...segments.toReversed(), ...others]) writeFileSync(join(dir, name), "");
  assert.deepEqual(segmentsIn(dir), segments);
});

it("reports what has the name of a segment and is not a file", () => {
  for (const [index, make] of [
    (path: string) => mkdirSync(path),
    (path: string) => fs.symlinkSync("/dev/null", path),
    (path: string) => execFileSync("mkfifo", [path]),
  ].entries()) {
    const dir = folder();
    make(join(dir, "2026-01-31.0001.jsonl"));
    const refused =
      /2026-01-31\.0001\.jsonl is not a file but has a segment's name: stop the gateway/;
    assert.throws(() => segmentsIn(dir), refused, `${index}`);
  }
});

const mount = (path: string): boolean =>
  spawnSync("mount", ["-t", "tmpfs", "-o", "size=512k", "none", path]).status === 0;
const unmount = (path: string) => spawnSync("umount", ["-l", path]);

function cannotMount(): string | false {
  const path = folder();
  if (!mount(path)) return "the system lets this user mount no file system: it takes root";
  unmount(path);
  return false;
}

/** Fills the disk. Returns a function that frees the space. */
function fill(dir: string): () => void {
  const file = join(dir, "filler");
  const fd = fs.openSync(file, "a");
  try {
    for (;;) fs.writeSync(fd, Buffer.alloc(4_096));
  } catch (error) {
    assert.equal((error as NodeJS.ErrnoException).code, "ENOSPC");
  }
  fs.closeSync(fd);
  return () => fs.unlinkSync(file);
}

async function onSmallDisk(t: TestContext) {
  const dataDir = folder();
  assert.ok(mount(dataDir));
  t.after(() => {
    unmount(dataDir);
  });
  const log = await startSpendLog(t, { dataDir });
  /** Lets the log retry once a second until `isSo`. */
  const lookUntil = (isSo: () => boolean, what: string) =>
    waitFor(() => {
      log.clock.advance(1_000);
      return isSo();
    }, what);
  return { ...log, lookUntil, path: books.segmentPath(dataDir) };
}

describe("a full disk", { skip: cannotMount() }, () => {
  it("cuts a write short: requests are rejected, replies wait, and nothing is lost", async (t) => {
    const disk = await onSmallDisk(t);
    const { dataDir, clock, log, told, open, settle, request, path, lookUntil } = disk;
    await request();
    const underWay = open("under way");
    await underWay.opened;
    const giveBack = fill(dataDir);
    // More than the rest of the file's last page, in one write.
    const refused = Array.from({ length: 40 }, (_, n) => open(`refused ${n}`));
    const before = fs.statSync(path).size;
    for (const { opened } of refused) await assert.rejects(opened, { code: "server_overloaded" });
    assert.equal(fs.statSync(path).size, before, "the partial write is undone");
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
    assert.deepEqual(told(), ["spend_log_failed"], "it is reported once");

    giveBack();
    await lookUntil(() => log.fault() === null, "the log to recover");
    await within(replies, "the replies");
    await request();
    assert.equal(books.entries(dataDir).length, 1 + 1 + 40 + 1);
    assert.deepEqual(told(), ["spend_log_failed", "spend_log_recovered"]);
  });

  it("delays nothing longer because another segment was deleted", async (t) => {
    const { dataDir, clock, told, open, settle, path, lookUntil } = await onSmallDisk(t);
    open("first");
    clock.advance(86_400_000);
    await lookUntil(() => books.segments(dataDir).length === 2, "the second segment");
    const second = open("x".repeat(5_000));
    await second.opened;
    const giveBack = fill(dataDir);
    const reply = settle(second);
    await turn();
    assert.deepEqual(told(), ["spend_log_failed"]);
    fs.unlinkSync(path);
    await lookUntil(() => told().includes("spend_segment_broken"), "the loss to be found");
    giveBack();
    clock.advance(1_000);
    await within(reply, "the reply of the other segment");
    assert.deepEqual(told(), ["spend_log_failed", "spend_segment_broken"]);
  });
});
