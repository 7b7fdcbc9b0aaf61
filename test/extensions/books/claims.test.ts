// A gateway whose socket is deleted under its hands is not taken for dead; and where a request was
// settled as interrupted all the same, what its own process says of it wins.

import assert from "node:assert/strict";
import {
  appendFileSync,
  existsSync,
  readdirSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { isLockHeld } from "../../../src/extensions/data-files/process-lock.ts";
import {
  configFile,
  entries,
  handMade,
  openLine,
  priced,
  segmentPath,
  settleLine,
  settles,
  spendId,
  textOf,
  usageRecords,
} from "../../support/books.ts";
import { ended } from "../../support/command.ts";
import { folder } from "../../support/folder.ts";
import { readStream, user } from "../../support/gateway.ts";
import { audit, command } from "../../support/ledger.ts";
import { held } from "../../support/provider.ts";
import { until, waitFor } from "../../support/wait.ts";

describe("a live gateway", { concurrency: 2 }, () => {
  for (const [what, ending] of [
    ["whose socket is deleted", /\.sock$/],
    ["whose socket and mark are deleted", /\.(sock|open)$/],
  ] as const) {
    it(`${what} announces itself again, and settles its request itself`, async (t) => {
      const { behaviour, finish } = held();
      // The commands run while the reply waits, however long they take on a busy machine.
      const { dir, gw, config } = await priced(t, { m: behaviour });
      const reply = await gw.chat({ model: "m", stream: true, messages: user("hi") });
      const spend = join(dir, "spend");
      const own = () => readdirSync(spend).filter((name) => /^\d{4}-.*\.sock$/.test(name));
      const [socket = ""] = own();
      for (const name of readdirSync(spend).filter((name) => ending.test(name)))
        rmSync(join(spend, name));
      const file = configFile(config);
      const sync = () => ended(t, ["usage", "sync", "--once", "--config", file]);
      assert.equal((await sync()).code, 0);
      await until(() => isLockHeld(join(spend, socket)), "the socket to answer again");
      await waitFor(() => existsSync(segmentPath(dir).replace("jsonl", "open")), "the mark");
      assert.equal((await sync()).code, 0);
      assert.deepEqual(settles(dir), [], "nobody has settled it");
      assert.equal(
        gw.diagnostics.filter(({ event }) => event === "spend_log_claim_lost").length,
        1,
      );
      finish();
      assert.ok((await readStream(reply)).done);
      await gw.gateway.close(0);
      assert.deepEqual(
        entries(dir).map(({ settle }) => settle["status"]),
        ["completed"],
      );
      assert.deepEqual(own(), []);
    });
  }

  it("that stands still, its socket deleted, is left alone for 15 s, and no longer", async () => {
    const dir = folder();
    handMade(dir, "2026-10-31.0001.jsonl", textOf([openLine(1)]), "let go");
    const mark = segmentPath(dir).replace("jsonl", "open");
    const { statSync } = await import("node:fs");
    writeFileSync(mark, "");
    writeFileSync(mark, String(statSync(mark).ino));
    const sync = () => command(dir, ["usage", "sync", "--once"]);
    await sync();
    assert.deepEqual(settles(dir), []);
    utimesSync(mark, Date.now() / 1_000 - 16, Date.now() / 1_000 - 16);
    await sync();
    assert.deepEqual(
      settles(dir).map(({ status }) => status),
      ["interrupted"],
    );
  });

  it("whose mark was copied with its segment is not at work on the copy", async () => {
    const dir = folder();
    handMade(dir, "2026-10-31.0001.jsonl", textOf([openLine(1)]), "let go");
    writeFileSync(segmentPath(dir).replace("jsonl", "open"), "1");
    await command(dir, ["usage", "sync", "--once"]);
    assert.equal(settles(dir).length, 1);
  });
});

describe("settled as interrupted, and then as it was", { concurrency: 2 }, () => {
  const NAME = "2026-10-31.0001.jsonl";
  const time = "2026-10-31T12:00:00.000Z";
  const open = (n: number) => openLine(n, { time });
  const done = (n: number) => settleLine(n, { time });
  const interrupted = (n: number) =>
    settleLine(n, {
      time,
      status: "interrupted",
      model_served: null,
      provider: null,
      http_status: null,
      finish_reason: null,
      usage_source: "none",
      cost: "0",
      attempts: [],
    });
  const sync = (dir: string) => command(dir, ["usage", "sync", "--once"]);
  const statuses = (dir: string) =>
    Object.fromEntries(usageRecords(dir).map(({ usage_id, status }) => [usage_id, status]));

  for (const [what, lines] of [
    ["the other way round", [done(1), interrupted(1)]],
    ["in one go", [interrupted(1), done(1)]],
  ] as const) {
    it(`${what}: one record, completed, and the audit is content`, async () => {
      const dir = folder();
      handMade(dir, NAME, textOf([open(1), open(2), done(2), ...lines]), "let go");
      await sync(dir);
      assert.deepEqual(statuses(dir), { [spendId(1)]: "completed", [spendId(2)]: "completed" });
      assert.equal(usageRecords(dir).length, 2);
      const { code, found } = await audit(dir);
      assert.deepEqual([code, found.differences, found.settled], [0, [], 2]);
    });
  }

  it("each copied by a sync of its own: the record is corrected in its place, whatever the month", async () => {
    const dir = folder();
    handMade(
      dir,
      NAME,
      textOf([open(1), open(2), open(3), interrupted(1), interrupted(3)]),
      "let go",
    );
    await sync(dir);
    assert.deepEqual(statuses(dir), { [spendId(1)]: "interrupted", [spendId(3)]: "interrupted" });
    const later = settleLine(1, { time: "2026-11-01T12:00:00.000Z" });
    appendFileSync(segmentPath(dir), textOf([later, done(2)]));
    await sync(dir);
    const all = {
      [spendId(1)]: "completed",
      [spendId(2)]: "completed",
      [spendId(3)]: "interrupted",
    };
    assert.deepEqual(statuses(dir), all);
    appendFileSync(segmentPath(dir), textOf([interrupted(2)]));
    await sync(dir);
    assert.deepEqual(statuses(dir), all);
    assert.equal(usageRecords(dir).length, 3);
    const { code, found } = await audit(dir);
    assert.deepEqual([code, found.differences, found.settled], [0, [], 3]);
    const rebuilt = await command(dir, ["books", "rebuild", "--json"]);
    assert.equal(JSON.parse(rebuilt.stdout).unchanged, 3);
  });
});
