// The usage records of the file store: what the sync copies, once each, whatever died when and
// whoever syncs beside it; and what becomes of segments that have been copied.

import assert from "node:assert/strict";
import {
  appendFileSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { acquireSocketLock } from "../../../src/extensions/data-files/process-lock.ts";
import {
  configFile,
  detailsOf,
  entries,
  handMade,
  openLine,
  priced,
  segmentPath,
  segments,
  settleLine,
  settles,
  spendId,
  textOf,
  usageCount,
  usageFile,
  usageRecords,
  type Line,
} from "../../support/books.ts";
import { ended } from "../../support/command.ts";
import { USAGE_COLUMNS } from "../../support/crash.ts";
import { folder } from "../../support/folder.ts";
import { demo, readStream, startGateway, user } from "../../support/gateway.ts";
import { held, speak, status } from "../../support/provider.ts";
import { waitFor, within } from "../../support/wait.ts";
import { now } from "../../support/today.ts";

/** What a pair of lines must have become. */
function recordOf({ open, settle }: { open: Line; settle: Line }): Line {
  const {
    spend_id,
    gateway_request_id,
    account,
    key_id,
    model_served,
    model_requested,
    provider,
    status,
    usage,
    cost,
    currency,
    time,
  } = settle;
  return {
    usage_id: spend_id,
    gateway_request_id,
    account,
    key_id,
    model: model_served ?? model_requested,
    provider,
    status,
    ...usage,
    cost,
    currency,
    started_at: open["time"],
    ended_at: time,
    cache_write_tokens: usage["cache_write_tokens"] ?? 0,
    details: detailsOf(settle),
  };
}
const byId = (records: readonly Line[]) =>
  [...records].sort((a, b) => (a["usage_id"] < b["usage_id"] ? -1 : 1));
/** Each settled request is in the usage records once, as it was settled. */
const assertCopied = (dir: string) =>
  assert.deepEqual(byId(usageRecords(dir)), byId(entries(dir).map(recordOf)));

/** One whole sync, and another: that of a gateway that starts and that of one that stops. */
async function sync(t: TestContext, dir: string, over: object = {}, deps: object = {}) {
  const gw = await startGateway(t, demo({ data_dir: dir, ...over }), deps);
  await within(gw.gateway.close(0), "the gateway to close");
  return gw;
}

describe("usage records", { concurrency: 4 }, () => {
  it("say what was settled: fields, order, times; the model is the one that served, else the one that was asked for", async (t) => {
    const { dir, gw, ask } = await priced(
      t,
      { m: speak("Hi."), bad: status(500) },
      { aliases: { team: { models: ["bad", "m"] } }, usage: { sync_ms: 20 } },
    );
    for (const model of ["m", "team", "bad"]) await ask({ model });
    await waitFor(() => usageCount(dir) === 3, "the records");
    assertCopied(dir);
    for (const record of usageRecords(dir))
      assert.deepEqual(Object.keys(record), [...USAGE_COLUMNS, "details"]);
    assert.deepEqual(
      usageRecords(dir).map(({ model, provider, status }) => [model, provider, status]),
      [
        ["m", "lab", "completed"],
        ["m", "lab", "completed"],
        ["bad", null, "failed"],
      ],
    );
    assert.equal(statSync(usageFile(dir)).mode & 0o777, 0o600);
    await gw.gateway.close(0);
    assert.equal(usageRecords(dir).length, 3, "stopping syncs again, and adds nothing");
  });

  it("stand in the file of the month in which the request ended (UTC)", async (t) => {
    const clock = { now: Date.parse("2031-01-31T23:59:59.999Z") };
    const { behaviour, finish } = held();
    const { dir, gw, ask } = await priced(
      t,
      { m: speak("Hi."), slow: behaviour },
      {},
      { now: () => clock.now },
    );
    await ask();
    const slow = await gw.chat({ model: "slow", stream: true, messages: user("hi") });
    clock.now += 1;
    finish();
    assert.ok((await readStream(slow)).done);
    await gw.gateway.close(0);
    assert.deepEqual(readdirSync(join(dir, "usage")).sort(), [
      "2031-01.jsonl",
      "2031-02.jsonl",
      "cursor.json",
    ]);
    const [january, february] = usageRecords(dir);
    assert.deepEqual([january!["model"], january!["ended_at"]], ["m", "2031-01-31T23:59:59.999Z"]);
    assert.deepEqual(
      [february!["model"], february!["started_at"], february!["ended_at"]],
      ["slow", "2031-01-31T23:59:59.999Z", "2031-02-01T00:00:00.000Z"],
    );
  });

  it("nothing is copied before it is settled, and nothing twice, over many syncs", async (t) => {
    const { behaviour, finish } = held();
    const { dir, gw, ask } = await priced(
      t,
      { m: speak("Hi."), slow: behaviour },
      { usage: { sync_ms: 5 } },
    );
    const slow = await gw.chat({ model: "slow", stream: true, messages: user("hi") });
    for (let i = 1; i <= 20; i += 1) {
      await ask({ messages: user("x".repeat(i)) });
      if (i % 5 === 0) await waitFor(() => usageCount(dir) >= i, `${i} records`);
    }
    finish();
    await slow.text();
    await waitFor(() => usageCount(dir) >= 21, "the last record");
    assertCopied(dir);
  });
});

describe("a sync that died", { concurrency: 4 }, () => {
  const made = (dir: string, from: number, to: number, name = "2026-01-31.0001.jsonl") =>
    handMade(
      dir,
      name,
      textOf(
        Array.from({ length: to - from }, (_, at) => [
          openLine(from + at),
          settleLine(from + at),
        ]).flat(),
      ),
      "let go",
    );

  it("between appending and moving the cursor: what it appended is written over, not added to", async (t) => {
    const dir = folder();
    made(dir, 0, 5);
    await sync(t, dir);
    const cursor = readFileSync(join(dir, "usage", "cursor.json"));
    made(dir, 5, 9, "2026-01-31.0002.jsonl");
    await sync(t, dir);
    const complete = readFileSync(usageFile(dir, "2026-01"), "utf8");
    writeFileSync(join(dir, "usage", "cursor.json"), cursor); // as if it had died before this
    await sync(t, dir);
    assert.equal(readFileSync(usageFile(dir, "2026-01"), "utf8"), complete);
    assertCopied(dir);
  });

  for (const [what, tail] of [
    ["half a line", '{"usage_id":"sp_'],
    ["lines", `${'{"usage_id":"sp_x"}\n'.repeat(500)}`],
    ["garbage", "\0".repeat(10_000)],
  ] as const) {
    it(`${what} beyond what counts: gone with the next records`, async (t) => {
      const dir = folder();
      made(dir, 0, 5);
      await sync(t, dir);
      appendFileSync(usageFile(dir, "2026-01"), tail);
      made(dir, 5, 6, "2026-01-31.0002.jsonl");
      await sync(t, dir);
      assertCopied(dir);
    });
  }

  it("the whole usage folder is deleted: all is copied anew", async (t) => {
    const dir = folder();
    made(dir, 0, 50);
    made(dir, 50, 70, "2026-01-31.0002.jsonl");
    await sync(t, dir);
    const complete = readFileSync(usageFile(dir, "2026-01"), "utf8");
    rmSync(join(dir, "usage"), { recursive: true });
    await sync(t, dir);
    assert.equal(readFileSync(usageFile(dir, "2026-01"), "utf8"), complete);
  });

  it("5,000 records, which are more than one batch, are copied once each", async (t) => {
    const dir = folder();
    made(dir, 0, 5_000);
    await sync(t, dir);
    assert.deepEqual(
      byId(usageRecords(dir)).map(({ usage_id }) => usage_id),
      Array.from({ length: 5_000 }, (_, n) => spendId(n)),
    );
  });
});

describe("several at once", () => {
  it("five `usage sync --once` beside a running gateway: nothing is doubled, each ends well", async (t) => {
    const { dir, config, ask } = await priced(t, { m: speak("Hi.") }, { usage: { sync_ms: 150 } });
    for (let i = 0; i < 100; i += 1)
      handMade(
        dir,
        `2026-01-${String(1 + (i % 28)).padStart(2, "0")}.${String(1 + i).padStart(4, "0")}.jsonl`,
        textOf([openLine(i), settleLine(i)]),
        "let go",
      );
    const file = configFile(config);
    const running = Array.from({ length: 5 }, (_, at) =>
      ended(t, ["usage", "sync", "--once", ...(at % 2 === 0 ? ["--json"] : []), "--config", file]),
    );
    const all = Promise.all(running);
    let over = false;
    all.finally(() => (over = true));
    let asked = 0;
    for (; !over && asked < 100; asked += 1) await ask();
    for (const [at, { code, stdout, stderr }] of (await all).entries()) {
      assert.deepEqual([code, stderr], [0, ""]);
      assert.match(stdout, at % 2 === 0 ? /^\{"copied":\d+\}\n$/ : /^\d+ usage records copied\n$/);
    }
    await waitFor(() => usageCount(dir) >= 100 + asked, "all records");
    assertCopied(dir);
  });
});

describe("old segments", { concurrency: 4 }, () => {
  const NOW = Date.parse("2026-03-01T12:00:00Z");
  const CASES: [name: string, day: string, kept: boolean, more?: string][] = [
    ["copied and older than keep_days: deleted", "2026-02-18", false],
    ["copied and not older: kept", "2026-02-19", true],
    [
      "old, with something at its end that was not copied: kept",
      "2026-01-01",
      true,
      '{"type":"open"',
    ],
  ];
  for (const [name, day, kept, more = ""] of CASES) {
    it(name, async (t) => {
      const dir = folder();
      const segment = `${day}.0001.jsonl`;
      const time = `${day}T12:00:00.000Z`;
      handMade(
        dir,
        segment,
        textOf([openLine(1, { time }), settleLine(1, { time })]) + more,
        "let go",
      );
      utimesSync(join(dir, "spend", segment), new Date(time), new Date(time)); // when it was last written is what counts
      const gw = await sync(t, dir, { spend: { keep_days: 10 } }, { now: () => NOW });
      assert.equal(segments(dir).includes(segment), kept);
      assert.equal(
        Object.hasOwn(
          JSON.parse(readFileSync(join(dir, "usage", "cursor.json"), "utf8")).segments,
          segment,
        ),
        kept,
        "the cursor speaks of what there is",
      );
      await sync(t, dir, { spend: { keep_days: 10 } }, { now: () => NOW });
      assert.deepEqual(
        usageRecords(dir).map(({ usage_id }) => usage_id),
        [spendId(1)],
        "its record stays",
      );
      assert.deepEqual(
        gw.diagnostics.filter(({ level }) => level === "error"),
        [],
      );
    });
  }

  it("one that is still written is kept, however old; so is one in which a dead process's requests have just been settled", async (t) => {
    const dir = folder();
    handMade(dir, "2025-01-01.0001.jsonl", textOf([openLine(1), settleLine(1)]), "let go");
    const release = await acquireSocketLock(join(dir, "spend", "2025-01-01.0001.sock"));
    t.after(() => release?.());
    writeFileSync(join(dir, "spend", "2025-01-01.0001.open"), "");
    handMade(dir, "2025-01-01.0002.jsonl", textOf([openLine(2)]), "died");
    for (const name of segments(dir))
      utimesSync(join(dir, "spend", name), new Date("2025-01-01"), new Date("2025-01-01"));
    await sync(t, dir, { spend: { keep_days: 10 } });
    assert.deepEqual(segments(dir), ["2025-01-01.0001.jsonl", "2025-01-01.0002.jsonl"]);
    assert.deepEqual(
      usageRecords(dir)
        .map(({ usage_id, status }) => [usage_id, status])
        .sort(),
      [
        [spendId(1), "completed"],
        [spendId(2), "interrupted"],
      ],
    );
  });

  it("one that could not be copied is kept, however old", async (t) => {
    const dir = folder();
    handMade(dir, "2025-01-01.0001.jsonl", textOf([openLine(1), settleLine(1)]), "let go");
    writeFileSync(join(dir, "usage"), "in the way");
    const gw = await sync(t, dir, { spend: { keep_days: 10 } });
    assert.equal(segments(dir)[0], "2025-01-01.0001.jsonl");
    assert.equal(
      gw.diagnostics.filter(({ event }) => event === "usage_sync_failed").length,
      1,
      "told once",
    );
  });
});

describe("a sync that cannot write", () => {
  it("is told, also where another fault was worked around before", async (t) => {
    const { dir, gw, ask } = await priced(t, { m: speak("Hi.") }, { usage: { sync_ms: 5 } });
    const told = (event: string) =>
      waitFor(() => gw.diagnostics.some((each) => each.event === event), event);
    await ask();
    await waitFor(() => usageCount(dir) === 1, "the first record");
    // The index of request ids has no folder.
    writeFileSync(join(dir, "usage", "index"), "in the way");
    await told("usage_index_not_written");
    renameSync(join(dir, "usage"), join(dir, "away"));
    writeFileSync(join(dir, "usage"), "in the way");
    await ask();
    await told("usage_sync_failed");
  });

  it("the log waits and requests are served; /status and /metrics tell of the lag; it makes up for it by itself", async (t) => {
    const clock = { now: now() };
    const { dir, gw, ask } = await priced(
      t,
      { m: speak("Hi.") },
      { usage: { sync_ms: 5 } },
      { now: () => clock.now },
    );
    const books = async () => {
      const [state, metrics] = await Promise.all(
        ["status", "metrics"].map(async (path) =>
          (await fetch(`${gw.gateway.adminAddress()}/${path}`)).text(),
        ),
      );
      const { usage } = JSON.parse(state!);
      return {
        ...usage,
        metric: Number(/^chat_gateway_usage_sync_lag_seconds ([\d.]+)$/m.exec(metrics!)?.[1]),
      };
    };
    await ask();
    await waitFor(() => usageCount(dir) === 1, "the first record");
    renameSync(join(dir, "usage"), join(dir, "away"));
    writeFileSync(join(dir, "usage"), "in the way");
    await ask();
    await waitFor(
      () => gw.diagnostics.some(({ event }) => event === "usage_sync_failed"),
      "the failure to be told",
    );
    clock.now += 90_000;
    const behind = await books();
    assert.equal(behind.store, "file");
    assert.match(behind.fault, /usage/);
    assert.ok(
      behind.lag_seconds >= 90 && behind.lag_seconds < 95 && behind.metric >= 90,
      JSON.stringify(behind),
    );
    assert.equal((await ask()).status, 200);
    assert.equal((await fetch(`${gw.url}/readyz`)).status, 200);
    unlinkSync(join(dir, "usage"));
    renameSync(join(dir, "away"), join(dir, "usage"));
    await waitFor(() => usageCount(dir) === 3, "the records");
    await waitFor(
      () => gw.diagnostics.some(({ event }) => event === "usage_sync_recovered"),
      "the recovery to be told",
    );
    const after = await books();
    assert.deepEqual([after.fault, after.lag_seconds < 1, after.metric < 1], [null, true, true]);
    assert.equal(
      gw.diagnostics.filter(({ event }) => event === "usage_sync_failed").length,
      1,
      "told once",
    );
    assertCopied(dir);
    assert.equal(settles(dir).length, 3);
    assert.ok(statSync(segmentPath(dir)).size > 0);
  });
});
