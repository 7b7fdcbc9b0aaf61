// What a dead process has left in its segment is settled as interrupted, and a process that lives,
// but has lost its socket, does not write after that.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join, resolve } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { pathToFileURL } from "node:url";
import { systemClock } from "../../../../src/core/clock.ts";
import { BusyError } from "../../../../src/extensions/scale/data-files/index.ts";
import {
  createSpendLog,
  hasWriter,
  settleInterrupted,
  socketOf,
} from "../../../../src/extensions/money/ledger/index.ts";
import type { OpenRecord } from "../../../../src/extensions/money/records/index.ts";
import {
  linesOf,
  NO_USAGE,
  openLine,
  segmentPath,
  settleLine,
  textOf,
} from "../../../support/books.ts";
import { createFakeClock } from "../../../support/fake-clock.ts";
import { folder } from "../../../support/folder.ts";
import { NOON, SETTLEMENT, startSpendLog } from "../../../support/spend-log.ts";
import { waitFor, within } from "../../../support/wait.ts";

const open = (n: number, over: object = {}) => openLine(n, over) as OpenRecord;
const options = { currency: "EUR", clock: createFakeClock(NOON + 5_000) };

/** A segment that nobody writes. */
function left(text: string): string {
  const dir = join(folder(), "spend");
  mkdirSync(dir);
  const path = join(dir, "2026-01-31.0001.jsonl");
  writeFileSync(path, text);
  return path;
}

describe("settleInterrupted", () => {
  it("settles requests as interrupted: nothing used, nothing owed, the rest as it was", async () => {
    const before = textOf([open(1), open(2, { account: "Zürich" }), settleLine(1)]);
    const path = left(before);
    const end = Buffer.byteLength(before);
    await settleInterrupted(path, end, [open(2, { account: "Zürich" })], options);
    const { type: _, stream: __, ...about } = open(2, { account: "Zürich" });
    assert.ok(readFileSync(path, "utf8").startsWith(before));
    assert.deepEqual(linesOf(path).slice(3), [
      {
        type: "settle",
        ...about,
        time: "2026-01-31T12:00:05.000Z",
        model_served: null,
        provider: null,
        status: "interrupted",
        http_status: null,
        error_code: null,
        finish_reason: null,
        attempts: [],
        usage: NO_USAGE,
        usage_source: "none",
        cost: "0",
        currency: "EUR",
        first_token_ms: null,
        duration_ms: 5_000,
        prices: null,
      },
    ]);
    assert.ok(!existsSync(socketOf(path)), "no socket is left");
  });

  it("cuts off a torn last line first", async () => {
    const path = left(`${textOf([open(1)])}{"type":"settle","spend_id":"sp_`);
    const end = Buffer.byteLength(textOf([open(1)]));
    await settleInterrupted(path, end, [open(1)], options);
    assert.deepEqual(
      linesOf(path).map(({ type }) => type),
      ["open", "settle"],
    );
  });

  it("changes nothing if a whole line has come meanwhile", async () => {
    const path = left(textOf([open(1)]));
    const end = Buffer.byteLength(textOf([open(1)]));
    appendFileSync(path, textOf([settleLine(1)]));
    const before = readFileSync(path, "utf8");
    await assert.rejects(settleInterrupted(path, end, [open(1)], options), BusyError);
    assert.equal(readFileSync(path, "utf8"), before);
    assert.ok(!existsSync(socketOf(path)));
  });

  it("does not make a segment that is gone", async () => {
    const path = left("");
    rmSync(path);
    await assert.rejects(settleInterrupted(path, 0, [open(1)], options), { code: "ENOENT" });
    assert.ok(!existsSync(path) && !existsSync(socketOf(path)));
  });

  it("leaves the segment of a process that answers alone", async (t) => {
    const log = await startSpendLog(t);
    const path = segmentPath(log.dataDir);
    assert.equal(await hasWriter(path), true);
    await assert.rejects(settleInterrupted(path, 0, [], options), BusyError);
    await log.request();
    assert.equal(linesOf(path).length, 2);
  });
});

/** A log that writes on the machine's clock, so that it looks at its claim by itself. */
async function runningLog(t: TestContext) {
  const dataDir = folder();
  const fencings: string[] = [];
  const log = createSpendLog({
    dataDir,
    segmentBytes: 1024 ** 2,
    clock: systemClock,
    diagnose: () => undefined,
    namesTaken: () => [],
    fenced: (message) => fencings.push(message),
  });
  await log.start();
  t.after(() => log.close());
  return { log, fencings, path: segmentPath(dataDir) };
}

it("a process that lost its socket does not write after its segment was settled", async (t) => {
  const { log, fencings, path } = await runningLog(t);
  const request = {
    requestId: "r",
    account: "acme",
    keyId: "k",
    modelRequested: "m",
    stream: false,
  };
  const entry = log.open(request);
  await entry.opened;
  const opened = linesOf(path) as unknown as OpenRecord[];
  rmSync(socketOf(path));
  assert.equal(await hasWriter(path), false);
  const end = readFileSync(path).length;
  await settleInterrupted(path, end, opened, options);
  const settled = readFileSync(path, "utf8");
  entry.settle(SETTLEMENT);
  await waitFor(() => fencings.length > 0, "the fencing");
  assert.equal(readFileSync(path, "utf8"), settled);
  assert.throws(() => log.open(request), { code: "server_overloaded" });
});

it("a process that is killed leaves a segment that has no writer, with all that was written", async (t) => {
  const dataDir = folder();
  const source = pathToFileURL(resolve("test/support/spend-log.ts"));
  const script = `
    const { startSpendLog } = await import(${JSON.stringify(source.href)});
    const log = await startSpendLog({ after: () => undefined }, { dataDir: ${JSON.stringify(dataDir)} });
    await log.request();
    await log.open().opened;
    console.log("written");
    setInterval(() => undefined, 1000);
  `;
  const flags = ["--import", import.meta.resolve("tsx"), "--input-type=module"];
  const child = spawn(process.execPath, [...flags, "-e", script], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  t.after(() => child.kill("SIGKILL"));
  await within(once(child.stdout, "data"), "the lines of the process");
  const path = segmentPath(dataDir);
  assert.equal(await hasWriter(path), true);
  child.kill("SIGKILL");
  await within(once(child, "exit"), "the end of the process");
  assert.equal(await hasWriter(path), false);
  rmSync(socketOf(path));
  const lines = linesOf(path);
  assert.equal(lines.length, 3);
  await settleInterrupted(path, readFileSync(path).length, [lines[2] as OpenRecord], options);
  assert.deepEqual(
    linesOf(path).map(({ status }) => status),
    [undefined, "completed", undefined, "interrupted"],
  );
});
