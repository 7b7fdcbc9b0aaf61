// What a process that died leaves behind: requests that were opened and never settled are settled
// as interrupted, once, whoever starts and however often; a torn last line is cut off, wherever it
// was torn; nobody touches what a living process writes.

import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { systemClock } from "../../../src/core/clock.ts";
import { acquireSocketLock } from "../../../src/extensions/data-files/process-lock.ts";
import { recover } from "../../../src/extensions/books/spend-log/recovery.ts";
import {
  configFile,
  entries,
  handMade,
  linesOf,
  NO_USAGE,
  openLine,
  segmentPath,
  segments,
  settleLine,
  settles,
  spendId,
  spendLines,
  textOf,
  usageCount,
  usageRecords,
} from "../../support/books.ts";
import { ended } from "../../support/command.ts";
import { folder } from "../../support/folder.ts";
import { configFor, demo, KEY, readStream, startGateway, user } from "../../support/gateway.ts";
import { LONG } from "../../support/long.ts";
import { held, silent, startProvider } from "../../support/provider.ts";
import { waitFor, within } from "../../support/wait.ts";
import { now } from "../../support/today.ts";

/**
 * A gateway that closes waits for up to 2 s for the last settle lines and then for up to 5 s for
 * its last sync.
 */
const CLOSE_MS = 10_000;

/** A gateway on `dir` that calls nobody. */
const start = (t: TestContext, dir: string) =>
  startGateway(t, demo({ data_dir: dir, usage: { sync_ms: 20 } }));
const byId = (lines: readonly Record<string, any>[]) =>
  [...lines].sort((a, b) => (a["spend_id"] < b["spend_id"] ? -1 : 1));

describe("opened and never settled", () => {
  it("interrupted, once, after three starts: nothing used, nothing owed, the rest as it was", async (t) => {
    const dir = folder();
    handMade(
      dir,
      "2026-01-31.0001.jsonl",
      textOf([
        openLine(1),
        openLine(2),
        settleLine(1),
        openLine(3, { stream: true, account: "Zürich" }),
      ]),
      "died",
    );
    const before = readFileSync(segmentPath(dir), "utf8");
    const from = now();
    const told = [];
    for (let i = 0; i < 3; i += 1) {
      const gw = await start(t, dir);
      await within(gw.gateway.close(0), "the gateway to close", CLOSE_MS);
      told.push(...gw.diagnostics);
    }
    const after = readFileSync(segmentPath(dir), "utf8");
    assert.ok(after.startsWith(before), "what was there is there");
    const [second, third] = linesOf(segmentPath(dir)).slice(4);
    for (const [line, open] of [
      [second!, openLine(2)],
      [third!, openLine(3, { account: "Zürich" })],
    ] as const) {
      const { type: _, stream: __, time: opened, ...about } = open;
      const { time } = line;
      assert.ok(Date.parse(time) >= from && Date.parse(time) <= now());
      assert.deepEqual(line, {
        type: "settle",
        ...about,
        time,
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
        currency: "USD",
        first_token_ms: null,
        duration_ms: Date.parse(time) - Date.parse(opened),
        prices: null,
      });
      assert.deepEqual(Object.keys(line), Object.keys(settleLine(1)), "in the order of any other");
    }
    assert.equal(entries(dir).length, 3);
    assert.deepEqual(
      told
        .filter(({ event }) => event === "spend_recovered")
        .map(({ level, requests }) => [level, requests]),
      [["warn", 2]],
    );
    assert.deepEqual(
      usageRecords(dir)
        .map(({ usage_id, status, started_at }) => [usage_id, status, started_at])
        .sort(),
      [
        [spendId(1), "completed", "2026-01-31T12:00:00.000Z"],
        [spendId(2), "interrupted", "2026-01-31T12:00:00.000Z"],
        [spendId(3), "interrupted", "2026-01-31T12:00:00.000Z"],
      ],
    );
    assert.deepEqual(
      readdirSync(join(dir, "spend")),
      segments(dir),
      "the sockets of the dead are gone",
    );
  });

  it("once, also when three gateways start at the same time", async (t) => {
    const dir = folder();
    for (let i = 0; i < 20; i += 1)
      handMade(
        dir,
        `2026-01-31.${String(i + 1).padStart(4, "0")}.jsonl`,
        textOf([openLine(3 * i), openLine(3 * i + 1), settleLine(3 * i), openLine(3 * i + 2)]),
        "died",
      );
    const gateways = await Promise.all([1, 2, 3].map(() => start(t, dir)));
    await waitFor(() => usageCount(dir) === 60, "all to be settled and copied");
    await Promise.all(gateways.map(({ gateway }) => gateway.close(0)));
    assert.equal(
      entries(dir).filter(({ settle }) => settle["status"] === "interrupted").length,
      40,
    );
    assert.deepEqual(
      usageRecords(dir)
        .map(({ usage_id }) => usage_id)
        .sort(),
      Array.from({ length: 60 }, (_, n) => spendId(n)),
    );
  });

  for (const [name, text] of [
    ["an empty segment", ""],
    ["a segment of blanks, the end of a search for room", " ".repeat(70_000)],
    ["one torn line", '{"type":"open","spend_id":"sp_'],
  ] as const) {
    it(`${name}: nothing to settle, nothing left that is torn`, async (t) => {
      const dir = folder();
      handMade(dir, "2026-01-31.0001.jsonl", text, "died");
      handMade(dir, "2026-01-31.0002.jsonl", textOf([openLine(1)]) + text, "died");
      const { gateway } = await start(t, dir);
      await within(gateway.close(0), "the gateway to close", CLOSE_MS);
      assert.deepEqual(
        entries(dir).map(({ settle }) => [settle["spend_id"], settle["status"]]),
        [[spendId(1), "interrupted"]],
      );
    });
  }

  it("what is left of a process without its segment is cleared away; a segment that was let go is as it was", async (t) => {
    const dir = folder();
    handMade(dir, "2026-01-31.0001.jsonl", textOf([openLine(1), settleLine(1)]), "let go");
    for (const ending of ["sock", "open"])
      writeFileSync(join(dir, "spend", `2026-01-31.0002.${ending}`), "");
    const { gateway } = await start(t, dir);
    await within(gateway.close(0), "the gateway to close", CLOSE_MS);
    assert.deepEqual(readdirSync(join(dir, "spend")), ["2026-01-31.0001.jsonl"]);
    assert.equal(usageRecords(dir).length, 1);
  });
});

describe("a torn last line", () => {
  for (const [what, whole, last] of [
    [
      "a settle line",
      [openLine(1), settleLine(1), openLine(2)],
      settleLine(2, { account: "Zürich 東京 😀" }),
    ],
    [
      "an open line",
      [openLine(1), settleLine(1), openLine(2)],
      openLine(3, { account: "Zürich 東京 😀" }),
    ],
  ] as const) {
    it(`${what} torn at every byte: cut off, what stood before it is kept, and settled once`, async () => {
      const dir = folder({ inMemory: true });
      const kept = textOf(whole);
      const line = Buffer.from(JSON.stringify(last));
      const name = (cut: number) => `2026-01-31.${String(cut + 1).padStart(4, "0")}.jsonl`;
      const cuts = Array.from({ length: line.length + 1 }, (_, cut) => cut).filter(
        (cut) => LONG || cut % 9 === 0 || cut >= line.length - 1,
      );
      for (const cut of cuts)
        handMade(dir, name(cut), Buffer.concat([Buffer.from(kept), line.subarray(0, cut)]), "died");
      const events: Readonly<Record<string, unknown>>[] = [];
      await recover({
        spendDir: join(dir, "spend"),
        currency: "USD",
        clock: systemClock,
        diagnose: (event) => {
          events.push(event);
        },
      });
      for (const cut of cuts) {
        const text = readFileSync(segmentPath(dir, name(cut)), "utf8");
        assert.ok(text.startsWith(kept), `cut at byte ${cut}`);
        const added = text.slice(kept.length).split("\n");
        assert.deepEqual(
          [added.length, added[1]],
          [2, ""],
          `cut at byte ${cut}: one line was added`,
        );
        const { spend_id, status, account } = JSON.parse(added[0]!);
        assert.deepEqual(
          [spend_id, status, account],
          [spendId(2), "interrupted", "acme"],
          `cut at byte ${cut}`,
        );
      }
      assert.deepEqual(
        events.map(({ event, requests }) => [event, requests]),
        [["spend_recovered", cuts.length]],
      );
    });
  }
});

describe("a line in the middle that is not ours", () => {
  for (const [name, line] of [
    ["no JSON", "once upon a time"],
    ["half a record", JSON.stringify(settleLine(9)).slice(40)],
    ["another program's record", '{"type":"note","text":"hello"}'],
    ["null", "null"],
    ["an empty line", ""],
    [
      "a settle line without what it should say",
      JSON.stringify({ type: "settle", spend_id: spendId(9) }),
    ],
  ] as const) {
    it(`${name}: skipped and told, and the rest is copied`, async (t) => {
      const dir = folder();
      handMade(
        dir,
        "2026-01-30.0001.jsonl",
        textOf([openLine(1), line, settleLine(1), openLine(2), line, settleLine(2)]),
        "let go",
      );
      handMade(dir, "2026-01-31.0001.jsonl", textOf([openLine(3), settleLine(3)]), "let go");
      const gw = await start(t, dir);
      await within(gw.gateway.close(0), "the gateway to close", CLOSE_MS);
      assert.deepEqual(
        usageRecords(dir).map(({ usage_id }) => usage_id),
        [1, 2, 3].map(spendId),
      );
      const told = gw.diagnostics.filter(({ event }) => event === "spend_log_unreadable");
      assert.deepEqual(
        told.map(({ level, segment, lines }) => [level, segment, lines]),
        [["error", "2026-01-30.0001.jsonl", 2]],
      );
    });
  }
});

it("an open line of a dead process whose time is none: told, and the recovery goes on", async (t) => {
  const dir = folder();
  handMade(
    dir,
    "2026-01-31.0001.jsonl",
    textOf([openLine(1, { time: "soon" }), openLine(2)]),
    "died",
  );
  const gw = await start(t, dir);
  await within(gw.gateway.close(0), "the gateway to close", CLOSE_MS);
  assert.deepEqual(
    usageRecords(dir).map(({ usage_id, status }) => [usage_id, status]),
    [[spendId(2), "interrupted"]],
  );
  assert.deepEqual(
    gw.diagnostics
      .filter(({ level }) => level === "error")
      .map(({ event, lines }) => [event, lines]),
    [["spend_log_unreadable", 1]],
  );
});

describe("two gateways on one data_dir", () => {
  it("write different segments, leave each other's open requests alone, and make one set of books", async (t) => {
    const dir = folder();
    const { behaviour, finish } = held();
    const provider = await startProvider(t, { m: behaviour, lost: silent });
    const config = configFor(provider.url, ["m", "lost"], {
      data_dir: dir,
      usage: { sync_ms: 20 },
    });
    const one = await startGateway(t, config);
    const reply = await one.chat({ model: "m", stream: true, messages: user("hi") });
    const text = readFileSync(segmentPath(dir), "utf8");
    const two = await startGateway(t, config);
    assert.equal(segments(dir).length, 2);
    const gone = new AbortController();
    const lost = fetch(`${two.url}/v1/chat/completions`, {
      method: "POST",
      signal: gone.signal,
      headers: { authorization: `Bearer ${KEY}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "lost", messages: user("hi") }),
    });
    lost.catch(() => undefined);
    await provider.nth(1);
    const file = configFile(config);
    const during = await ended(t, ["audit", "--json", "--config", file]);
    const { ok, in_flight, settled } = JSON.parse(during.stdout);
    assert.deepEqual([during.code, ok, in_flight, settled], [0, true, 2, 0]);
    gone.abort();
    await waitFor(() => settles(dir).length === 1, "the record of the request that was left");
    await within(two.gateway.close(0), "the second gateway to close", CLOSE_MS);
    const third = await startGateway(t, config);
    await waitFor(() => usageCount(dir) === 1, "the usage record");
    assert.equal(
      readFileSync(segmentPath(dir), "utf8"),
      text,
      "the first gateway's segment is as it was",
    );
    assert.ok(existsSync(segmentPath(dir).replace("jsonl", "sock")));
    await within(third.gateway.close(0), "the third gateway to close", CLOSE_MS);
    finish();
    assert.ok((await readStream(reply)).done);
    const after = await ended(t, ["audit", "--json", "--config", file]);
    const { differences, recorded, ...books } = JSON.parse(after.stdout);
    assert.deepEqual(
      [after.code, differences, recorded, books.settled, books.in_flight],
      [0, [], 2, 2, 0],
    );
    assert.deepEqual(
      byId(entries(dir).map(({ settle }) => settle))
        .map(({ status }) => status)
        .sort(),
      ["cancelled", "completed"],
    );
  });

  it("a segment whose holder answers is not recovered, whatever process that is", async (t) => {
    const dir = folder();
    handMade(dir, "2026-01-31.0001.jsonl", `${textOf([openLine(1)])}{"type":"sett`, "let go");
    const release = await acquireSocketLock(join(dir, "spend", "2026-01-31.0001.sock"));
    assert.ok(release);
    writeFileSync(join(dir, "spend", "2026-01-31.0001.open"), "");
    const text = readFileSync(segmentPath(dir), "utf8");
    const first = await start(t, dir);
    await within(first.gateway.close(0), "the gateway to close", CLOSE_MS);
    assert.equal(readFileSync(segmentPath(dir), "utf8"), text);
    release();
    handMade(dir, "2026-01-31.0001.jsonl", text, "died");
    const second = await start(t, dir);
    await within(second.gateway.close(0), "the gateway to close", CLOSE_MS);
    assert.deepEqual(
      spendLines(dir).map(({ type, status }) => [type, status]),
      [
        ["open", undefined],
        ["settle", "interrupted"],
      ],
    );
  });
});
