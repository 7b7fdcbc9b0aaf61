// The spend log on a clock that the test moves: when another segment begins, and what is closed
// when.

import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { createSpendLog } from "../../../src/extensions/books/spend-log/spend-log.ts";
import { segments, segmentPath, settleLine } from "../../support/books.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { folder } from "../../support/folder.ts";
import { waitFor } from "../../support/wait.ts";

const NOON = Date.parse("2026-01-31T12:00:00.000Z");
const DAY_MS = 86_400_000;

async function start(t: TestContext, { segmentBytes = 1024 ** 2, dataDir = folder() } = {}) {
  const clock = createFakeClock(NOON);
  const events: unknown[] = [];
  const dir = join(dataDir, "spend");
  const diagnose = (event: Readonly<Record<string, unknown>>): void => {
    events.push(event["event"]);
  };
  const log = createSpendLog({ dir, segmentBytes, clock, diagnose });
  await log.start();
  let isClosed = false;
  const close = async () => {
    if (!isClosed) await log.close();
    isClosed = true;
  };
  t.after(close);
  const open = () =>
    log.open({
      time: new Date(clock.now()).toISOString(),
      gateway_request_id: "r",
      account: "acme",
      key_id: "k",
      model_requested: "m",
      stream: false,
    });
  const settle = async (entry: ReturnType<typeof open>) => {
    await entry.opened;
    await entry.settle({ ...settleLine(1), spend_id: entry.record.spend_id } as never);
  };
  return { dataDir, clock, log, events, open, settle, close };
}

describe("the spend log", () => {
  it("gives requests unique ids that begin with the gateway-id", async (t) => {
    const { dataDir, open, settle } = await start(t);
    const entries = [open(), open()];
    await Promise.all(entries.map(settle));
    const id = readFileSync(join(dataDir, "gateway-id"), "utf8").slice(0, 8);
    const ids = entries.map(({ record }) => record.spend_id);
    assert.notEqual(ids[0], ids[1]);
    for (const each of ids) assert.match(each, new RegExp(`^sp_${id}[0-9a-f]{24}$`));
  });

  it("begins another segment on another day, and closes the old one once it is settled", async (t) => {
    const { dataDir, clock, open, settle } = await start(t);
    const entry = open();
    await entry.opened;
    clock.advance(DAY_MS);
    await waitFor(() => segments(dataDir).length === 2, "the second segment");
    const claimFile = segmentPath(dataDir).replace("jsonl", "open");
    assert.ok(existsSync(claimFile));
    await settle(entry);
    clock.advance(1_000);
    await waitFor(() => !existsSync(claimFile), "the first segment to be closed");
    assert.deepEqual(segments(dataDir), ["2026-01-31.0001.jsonl", "2026-02-01.0001.jsonl"]);
  });

  it("begins another segment when the current one is full", async (t) => {
    const { dataDir, clock, open, settle } = await start(t, { segmentBytes: 100 });
    await settle(open());
    clock.advance(1_000);
    await waitFor(() => segments(dataDir).length === 2, "the second segment");
  });

  it("refuses requests while its folder cannot be made, and goes on by itself", async (t) => {
    const dataDir = folder();
    writeFileSync(join(dataDir, "spend"), "in the way");
    const { clock, log, events, open, settle } = await start(t, { dataDir });
    assert.match(log.fault() ?? "", /EEXIST/);
    assert.throws(open, { code: "server_overloaded" });
    rmSync(join(dataDir, "spend"));
    clock.advance(1_000);
    await waitFor(() => log.fault() === null, "the log to recover");
    assert.deepEqual(events, ["spend_log_failed", "spend_log_recovered"]);
    await settle(open());
  });

  it("puts a deleted segment back when it is asked to, and once a second", async (t) => {
    const { dataDir, clock, log, events, open, settle } = await start(t);
    await settle(open());
    const path = segmentPath(dataDir);
    rmSync(path);
    await log.restore();
    assert.ok(existsSync(path));
    rmSync(path);
    clock.advance(1_000);
    await waitFor(() => existsSync(path), "the segment");
    await waitFor(() => events.length === 2, "the reports");
  });

  it("leaves nothing but its lines when it is closed, and no timer", async (t) => {
    const { dataDir, clock, open, settle, close } = await start(t);
    await settle(open());
    await close();
    assert.deepEqual(readdirSync(join(dataDir, "spend")), ["2026-01-31.0001.jsonl"]);
    assert.equal(clock.pending(), 0);
  });

  it("waits for 2 s for the last settle lines when it is closed", async (t) => {
    const { dataDir, clock, log, open } = await start(t);
    await open().opened;
    const closing = log.close();
    await waitFor(() => clock.pending() === 1, "the wait");
    clock.advance(2_000);
    await closing;
    const claimFile = segmentPath(dataDir).replace("jsonl", "open");
    assert.equal(readFileSync(claimFile, "utf8"), "", "a recovery settles it");
  });
});
