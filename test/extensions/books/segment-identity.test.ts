// The usage sync knows a segment by what is in it: whatever was deleted, restored or copied, each
// request is billed once, and what does not fit is told.

import assert from "node:assert/strict";
import { appendFileSync, cpSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import {
  handMade,
  openLine,
  segmentPath,
  segments,
  settleLine,
  spendId,
  textOf,
  usageRecords,
} from "../../support/books.ts";
import { folder } from "../../support/folder.ts";
import {
  ageCursor,
  assertEach,
  audit,
  command,
  copyDir,
  errors,
  events,
  listSpend,
  live,
  readCursor,
  serve,
} from "../../support/ledger.ts";
import { waitFor } from "../../support/wait.ts";

const spendOf = (dir: string) => join(dir, "spend");

describe("a segment's name that is given again", { concurrency: 2 }, () => {
  it("bills all of 60 and 40 requests when data/spend is emptied between two runs", async (t) => {
    const dir = folder();
    await live(t, dir, 60);
    rmSync(spendOf(dir), { recursive: true });
    const second = await live(t, dir, 40);
    assert.equal(usageRecords(dir).length, 100);
    assert.deepEqual(errors(second), []);
    assertEach(dir, 60);
    const { code, found } = await audit(dir);
    assert.equal(code, 1, "60 requests have lost their proof");
    assert.equal(found.proved.requests, 40);
    assert.equal(found.differences.length, 60);
    assert.ok(found.differences.every((each: string) => each.includes("without lines in the")));
  });

  it("bills all when data/spend is emptied under a running gateway", async (t) => {
    const dir = folder();
    const run = await serve(t, dir);
    await run.ask(60);
    for (const name of listSpend(dir)) rmSync(join(spendOf(dir), name));
    await waitFor(() => segments(dir).length === 1, "another segment");
    await run.ask(40);
    assert.equal(usageRecords(dir).length, 100);
    await run.stop();
    assert.equal(usageRecords(dir).length, 100);
  });

  it("bills all when the whole data_dir is restored from an older backup of the same day", async (t) => {
    const [dir, backup] = [folder(), join(folder(), "backup")];
    await live(t, dir, 60);
    copyDir(dir, backup);
    await live(t, dir, 30);
    rmSync(dir, { recursive: true });
    copyDir(backup, dir);
    await live(t, dir, 40);
    assert.equal(usageRecords(dir).length, 100);
    assertEach(dir);
    assert.deepEqual((await audit(dir)).found.differences, []);
  });

  it("bills all when data/spend alone is restored from an older backup, and tells what its proof lacks", async (t) => {
    const [dir, backup] = [folder(), join(folder(), "backup")];
    const first = await serve(t, dir);
    await first.ask(30);
    copyDir(spendOf(dir), backup);
    await first.ask(30);
    await first.stop();
    rmSync(spendOf(dir), { recursive: true });
    copyDir(backup, spendOf(dir));
    const second = await serve(t, dir);
    await second.ask(40);
    assert.equal(usageRecords(dir).length, 100);
    assert.equal(events(second, "spend_segment_changed").length, 1, "told once");
    assert.match((await second.usage()).fault ?? "", /bytes of it were copied .* and it has \d+/);
    await second.stop();
    assertEach(dir, 30);
    const { code, found } = await audit(dir);
    assert.deepEqual([code, found.proved.requests, found.differences.length], [1, 70, 31]);
    const rebuilt = await command(dir, ["books", "rebuild", "--json"]);
    assert.deepEqual(JSON.parse(rebuilt.stdout), {
      added: 0,
      changed: 0,
      removed: 0,
      unchanged: 70,
      left: 30,
      unreadable: 0,
    });
    const third = await serve(t, dir);
    await third.ask(5);
    assert.equal((await third.usage()).fault, null, "the rebuild has mended it");
    await third.stop();
    assert.equal(usageRecords(dir).length, 105);
  });

  it("bills all when data/usage alone is restored from an older backup", async (t) => {
    const [dir, backup] = [folder(), join(folder(), "backup")];
    await live(t, dir, 30);
    copyDir(join(dir, "usage"), backup);
    await live(t, dir, 30);
    rmSync(join(dir, "usage"), { recursive: true });
    copyDir(backup, join(dir, "usage"));
    const last = await live(t, dir, 40);
    assert.equal(usageRecords(dir).length, 100);
    assertEach(dir);
    assert.deepEqual([errors(last), (await audit(dir)).found.differences], [[], []]);
  });

  it("bills all of a data_dir that is copied and used in both places", async (t) => {
    const [dir, clone] = [folder(), join(folder(), "clone")];
    await live(t, dir, 60);
    copyDir(dir, clone);
    await Promise.all([live(t, dir, 40), live(t, clone, 25)]);
    assert.equal(usageRecords(dir).length, 100);
    assert.equal(usageRecords(clone).length, 85);
    for (const each of [dir, clone]) {
      assertEach(each);
      assert.deepEqual((await audit(each)).found.differences, []);
    }
  });
});

describe("a segment that is there again", { concurrency: 2 }, () => {
  const some = (from: number, to: number) =>
    textOf(
      Array.from({ length: to - from }, (_, at) => [
        openLine(from + at),
        settleLine(from + at),
      ]).flat(),
    );
  const NAME = "2026-10-31.0001.jsonl";
  const times = { time: "2026-10-31T12:00:01.500Z" };
  const young = (from: number, to: number) =>
    textOf(
      Array.from({ length: to - from }, (_, at) => [
        openLine(from + at, times),
        settleLine(from + at, times),
      ]).flat(),
    );
  const sync = (dir: string) => command(dir, ["usage", "sync", "--once", "--json"]);

  it("copies nothing twice after it was away for a while, or got another name", async () => {
    const dir = folder();
    handMade(dir, NAME, young(0, 10), "let go");
    assert.equal((await sync(dir)).stdout, '{"copied":10}\n');
    renameSync(segmentPath(dir, NAME), join(dir, "away"));
    assert.equal((await sync(dir)).stdout, '{"copied":0}\n');
    renameSync(join(dir, "away"), segmentPath(dir, "2026-10-31.0007.jsonl"));
    assert.deepEqual(await sync(dir), {
      code: 0,
      signal: null,
      stdout: '{"copied":0}\n',
      stderr: "",
    });
    assertEach(dir);
  });

  it("copies nothing twice when it is so old that its mark has been dropped", async () => {
    const dir = folder();
    const old = "2020-01-31.0001.jsonl";
    handMade(dir, old, some(0, 10), "let go");
    await sync(dir);
    renameSync(segmentPath(dir, old), join(dir, "away"));
    await sync(dir);
    assert.deepEqual(readCursor(dir).segments, {});
    renameSync(join(dir, "away"), segmentPath(dir, old));
    assert.equal((await sync(dir)).stdout, '{"copied":0}\n');
    assertEach(dir);
  });

  it("copies what is new in it, once, when its beginning is not what was copied", async () => {
    const dir = folder();
    handMade(dir, NAME, young(0, 10), "let go");
    await sync(dir);
    const [first = "", ...rest] = readFileSync(segmentPath(dir, NAME), "utf8").split(/(?<=\n)/);
    writeFileSync(
      segmentPath(dir, NAME),
      first + textOf([settleLine(0, times)]) + young(50, 53) + rest.slice(1).join(""),
    );
    const end = await sync(dir);
    assert.equal(end.stdout, '{"copied":3}\n');
    assert.match(end.stderr, /is not what it was: what was copied from it up to byte \d+ is not/);
    assertEach(dir);
    assert.equal((await sync(dir)).stdout, '{"copied":0}\n', "and then nothing any more");
  });
});

describe("a cursor of a version that knew names only", { concurrency: 2 }, () => {
  it("is taken over where the segment is the one that was copied", async (t) => {
    const dir = folder();
    await live(t, dir, 20);
    ageCursor(dir);
    const next = await live(t, dir, 10);
    assert.equal(usageRecords(dir).length, 30);
    assert.deepEqual(errors(next), []);
    assertEach(dir);
    assert.ok(
      Object.values(readCursor(dir).segments).every((marks) => Array.isArray(marks)),
      "the cursor has the new form",
    );
  });

  for (const [what, count] of [
    ["shorter than", 5],
    ["longer than", 40],
  ] as const) {
    it(`does not hide requests of another segment with that name, ${what} the old one`, async (t) => {
      const dir = folder();
      await live(t, dir, 20);
      const [name = ""] = segments(dir);
      ageCursor(dir);
      const other = folder();
      await live(t, other, count);
      cpSync(segmentPath(other), segmentPath(dir, name));
      const next = await serve(t, dir);
      await next.ask(10);
      assert.equal(usageRecords(dir).length, 20 + count + 10);
      assert.equal(events(next, "spend_segment_changed").length, 1);
      await next.stop();
      assertEach(dir, 20);
    });
  }

  it("adopts nothing of a segment that is gone", async (t) => {
    const dir = folder();
    await live(t, dir, 3);
    ageCursor(dir);
    rmSync(spendOf(dir), { recursive: true });
    const next = await live(t, dir, 4);
    assert.deepEqual([usageRecords(dir).length, errors(next)], [7, []]);
  });
});

it("identifies a segment whose first line is not ours by that line", async () => {
  const dir = folder();
  const name = "2026-10-31.0001.jsonl";
  const time = "2026-10-31T12:00:00.000Z";
  const pair = (n: number) => [openLine(n, { time }), settleLine(n, { time })];
  handMade(dir, name, textOf(["once upon a time", ...pair(1)]), "let go");
  await command(dir, ["usage", "sync", "--once"]);
  appendFileSync(segmentPath(dir, name), textOf(pair(2)));
  await command(dir, ["usage", "sync", "--once"]);
  writeFileSync(
    segmentPath(dir, name),
    textOf(["another story", ...pair(3), ...pair(4), ...pair(5)]),
  );
  await command(dir, ["usage", "sync", "--once"]);
  assert.deepEqual(
    usageRecords(dir).map(({ usage_id }) => usage_id),
    [1, 2, 3, 4, 5].map(spendId),
  );
});
