// When segments are deleted: by all that says how old they are, and never by a clock that has just
// jumped.

import assert from "node:assert/strict";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import {
  handMade,
  openLine,
  segmentPath,
  segments,
  settleLine,
  spendId,
  textOf,
  usageCount,
  usageFile,
  usageRecords,
} from "../../support/books.ts";
import { folder } from "../../support/folder.ts";
import { audit, command, readCursor, serve, writeCursor } from "../../support/ledger.ts";
import { waitFor } from "../../support/wait.ts";
import { today } from "../../support/today.ts";

const DAY = 86_400_000;
const START = Date.parse("2026-03-01T12:00:00Z");
const KEEP = { spend: { keep_days: 10 } };

/**
 * A segment with one request that ended at `time`, last written then, named after the day of
 * `named`.
 */
function segmentOf(dir: string, n: number, time: number, named = time): string {
  const name = `${new Date(named).toISOString().slice(0, 10)}.${String(n).padStart(4, "0")}.jsonl`;
  const at = new Date(time).toISOString();
  handMade(dir, name, textOf([openLine(n, { time: at }), settleLine(n, { time: at })]), "let go");
  utimesSync(segmentPath(dir, name), time / 1_000, time / 1_000);
  return name;
}

/** One life of a gateway by this clock: two passes of the sync at least. */
async function pass(t: TestContext, dir: string, now: number): Promise<void> {
  const run = await serve(t, dir, KEEP, { now: () => now });
  await run.stop();
}

describe("a clock that is ahead by more than keep_days, and then right again", () => {
  it("deletes nothing too early, and what is old in time", async (t) => {
    const dir = folder();
    const young = segmentOf(dir, 1, START - DAY);
    await pass(t, dir, START);
    for (let hour = 0; hour < 20; hour += 5)
      await pass(t, dir, START + 900 * DAY + (hour * DAY) / 24);
    assert.deepEqual(segments(dir), [young], "while it is ahead");
    await pass(t, dir, START + DAY / 24);
    await pass(t, dir, START + 2 * (DAY / 24));
    assert.deepEqual(segments(dir), [young], "when it is right again");
    for (let day = 1; day <= 12; day += 0.5) await pass(t, dir, START + day * DAY);
    assert.deepEqual(segments(dir), [], "when it is old");
    assert.equal(usageRecords(dir).length, 1);
  });

  it("within the life of one process: requests of both times are copied, and nothing is deleted", async (t) => {
    const dir = folder();
    const young = segmentOf(dir, 1, START - DAY);
    const clock = { now: START };
    const run = await serve(t, dir, KEEP, { now: () => clock.now });
    const ask = async () =>
      (
        await run.gw.chat(
          { model: "demo-chat", messages: [{ role: "user", content: "hi" }] },
          { authorization: "Bearer sk-demo" },
        )
      ).text();
    await ask();
    await waitFor(() => existsSync(join(dir, "clock.json")), "the clock to be noted");
    clock.now = START + 900 * DAY;
    await waitFor(() => segments(dir).some((name) => name.startsWith("2028")), "its segment");
    await ask();
    await waitFor(() => usageCount(dir) === 3, "three records");
    clock.now = START + DAY / 24;
    await waitFor(
      () => segments(dir).some((name) => /^2026-03-01\.0002/.test(name)),
      "a segment of the right day",
    );
    await ask();
    await waitFor(() => usageCount(dir) === 4, "the request after it, whose segment sorts before");
    assert.ok(segments(dir).includes(young));
    await run.stop();
    assert.ok(segments(dir).includes(young));
  });

  it("hides no lag: what is not copied is late by the steady clock too", async (t) => {
    const dir = folder();
    const clock = { now: START + 900 * DAY };
    const run = await serve(t, dir, KEEP, { now: () => clock.now });
    await run.ask(1);
    // The cursor is written last: when it counts the record, no sync that would replace it is at
    // work.
    const cursor = join(dir, "usage", "cursor.json");
    const counts = () =>
      existsSync(cursor) && /"months":\{"[\d-]+":[1-9]/.test(readFileSync(cursor, "utf8"));
    await waitFor(counts, "the request to be copied");
    writeFileSync(cursor, "{"); // nothing can be copied from here on
    await waitFor(
      () => run.gw.diagnostics.some(({ event }) => event === "usage_sync_failed"),
      "the fault",
    );
    clock.now = START;
    const first = (await run.usage()).lag_seconds ?? 0;
    const began = performance.now();
    await waitFor(() => performance.now() - began > 50, "some time to pass");
    const second = (await run.usage()).lag_seconds ?? 0;
    assert.ok(second >= first + 0.05, `${first} s, then ${second} s`);
  });
});

describe("a segment", { concurrency: 2 }, () => {
  for (const [what, time, named, modified] of [
    ["whose newest line is younger than its name and its file say", -1, -30, -30],
    ["whose file was written lately", -30, -30, -1],
    ["whose name has a later day", -30, -1, -30],
  ] as const) {
    it(`${what} is kept`, async (t) => {
      const dir = folder();
      const name = segmentOf(dir, 1, START + time * DAY, START + named * DAY);
      const at = (START + modified * DAY) / 1_000;
      utimesSync(segmentPath(dir, name), at, at);
      await pass(t, dir, START);
      await pass(t, dir, START);
      assert.deepEqual(segments(dir), [name]);
    });
  }

  it("that is old by all of them is deleted, also beside one that is dated in the future", async (t) => {
    const dir = folder();
    segmentOf(dir, 1, START - 30 * DAY);
    const future = segmentOf(dir, 2, START + 900 * DAY);
    await pass(t, dir, START);
    await pass(t, dir, START);
    assert.deepEqual(segments(dir), [future]);
  });

  it("is deleted a day after a gateway that was long away has come back", async (t) => {
    const dir = folder();
    await pass(t, dir, START);
    const old = segmentOf(dir, 1, START - DAY);
    await pass(t, dir, START + 30 * DAY);
    assert.deepEqual(segments(dir), [old]);
    assert.match(
      readFileSync(join(dir, "clock.json"), "utf8"),
      /"delete_nothing_until":"2026-04-01/,
    );
    await pass(t, dir, START + 30.9 * DAY);
    assert.deepEqual(segments(dir), [old]);
    await pass(t, dir, START + 31.1 * DAY);
    assert.deepEqual(segments(dir), []);
  });
});

/** By the real clock: requests of these days are long older than keep_days. */
const KEPT = { spend: { keep_days: 100 } };
const sync = async (dir: string) => await command(dir, ["usage", "sync", "--once"], KEPT);

/** A segment that nobody has written for years. */
function oldSegment(dir: string, name: string, lines: Parameters<typeof textOf>[0]): void {
  handMade(dir, name, textOf(lines), "let go");
  utimesSync(segmentPath(dir, name), 1_600_000_000, 1_600_000_000);
}
const pair = (n: number, day: string) => [
  openLine(n, { time: `${day}T12:00:00.000Z` }),
  settleLine(n, { time: `${day}T12:00:01.500Z` }),
];

/**
 * Six requests of two months in two segments that were copied and deleted; one of them was taken
 * for dead, and was not.
 */
async function retiredBooks(): Promise<string> {
  const dir = folder();
  const [open, settle] = pair(3, "2024-01-31");
  oldSegment(dir, "2024-01-31.0001.jsonl", [
    ...pair(1, "2024-01-31"),
    ...pair(2, "2024-02-01"),
    open!,
    { ...settle, status: "interrupted", cost: "0" },
    settle!,
  ]);
  oldSegment(
    dir,
    "2024-02-02.0001.jsonl",
    [4, 5, 6].flatMap((n) => pair(n, "2024-02-02")),
  );
  for (let pass = 0; pass < 2; pass += 1) assert.equal((await sync(dir)).code, 0);
  assert.deepEqual([segments(dir), usageCount(dir)], [[], 6]);
  return dir;
}
const sumsFile = (dir: string) => join(dir, "spend", "retired.json");
const RETIRED = { records: 6, from: "2024-01-31T12:00:01.500Z", to: "2024-02-02T12:00:01.500Z" };

/** Changes the usage records of a month. */
function alter(dir: string, month: string, change: (text: string) => string): void {
  const before = readFileSync(usageFile(dir, month), "utf8");
  const text = change(before);
  assert.notEqual(text, before);
  writeFileSync(usageFile(dir, month), text);
  const cursor = readCursor(dir);
  const months = { ...cursor.months, [month]: Buffer.byteLength(text) };
  writeCursor(dir, { ...cursor, months });
}

/** The audit fails with one difference, and proves so many records of deleted segments. */
async function assertOne(dir: string, words: RegExp, proved: number) {
  const { code, found } = await audit(dir, KEPT);
  assert.deepEqual([code, found.differences.length, found.retired.records], [1, 1, proved]);
  assert.match(found.differences[0], words);
  return found;
}

describe("the usage records of deleted segments", { concurrency: 2 }, () => {
  it("are proved by the sums that were kept, also after a rebuild, and when keep_days is raised", async () => {
    const dir = await retiredBooks();
    const { code, found } = await audit(dir, KEPT);
    assert.equal(code, 0, JSON.stringify(found.differences));
    assert.deepEqual(found.retired, RETIRED);
    assert.deepEqual(found.not_proved, { records: 0, from: null, to: null });
    assert.deepEqual([found.settled, found.recorded, found.cost_recorded], [0, 0, {}]);
    const { stdout } = await command(dir, ["audit"], KEPT);
    assert.match(
      stdout,
      /\nproved by the sums of retired segments: 6 records from 2024-01-31\S+ to 2024-02-02\S+\nthe books are right\n$/,
    );
    const rebuild = await command(dir, ["books", "rebuild"], KEPT);
    assert.match(rebuild.stdout, /0 added, 0 changed, 0 removed, .* 6 have no lines/);
    const raised = await audit(dir, { spend: { keep_days: 36_500 } });
    assert.deepEqual([raised.code, raised.found.retired, raised.found.recorded], [0, RETIRED, 0]);
  });

  it("are proved beside requests that have their lines, older and younger ones", async () => {
    const dir = await retiredBooks();
    handMade(dir, `${today()}.0001.jsonl`, textOf(pair(10, today())), "let go");
    handMade(dir, "2023-12-01.0001.jsonl", textOf(pair(11, "2023-12-01")), "let go"); // its file is young
    await sync(dir);
    const { code, found } = await audit(dir, KEPT);
    assert.deepEqual([code, found.differences], [0, []]);
    assert.deepEqual(
      [found.settled, found.recorded, found.proved.requests, found.retired],
      [2, 2, 2, RETIRED],
    );
  });

  for (const [what, change, words] of [
    [
      "a cost",
      (text: string) => text.replace(/"cost":"0\.\d+"/, '"cost":"9"'),
      /^2024-02: usage records .* are 4 for 9\.\d+ USD, and the sums of .* are 4 for 0\.\d+ USD$/,
    ],
    [
      "an account",
      (text: string) => text.replace("acme", "evil"),
      /^2024-02: .*: something else in them was altered$/,
    ],
    [
      "a record that was taken out",
      (text: string) => text.slice(text.indexOf("\n") + 1),
      /^2024-02: usage records .* are 3 for \S+ USD, .* are 4 for \S+ USD$/,
    ],
    [
      "a doubled record",
      (text: string) => text + text.slice(0, text.indexOf("\n") + 1),
      /^2024-02: usage records .* are 5 for \S+ USD, .* are 4 for \S+ USD$/,
    ],
  ] as const) {
    it(`are a difference of their month alone, before and after a rebuild: ${what}`, async () => {
      const dir = await retiredBooks();
      alter(dir, "2024-02", change);
      const found = await assertOne(dir, words, 2);
      assert.equal(found.not_proved.records, usageCount(dir) - 2);
      const { stdout } = await command(dir, ["audit"], KEPT);
      assert.doesNotMatch(stdout, /the books are right/);
      assert.equal((await command(dir, ["books", "rebuild"], KEPT)).code, 0);
      await assertOne(dir, words, 2);
    });
  }

  it("are a difference when all of a month are gone", async () => {
    const dir = await retiredBooks();
    alter(dir, "2024-01", () => "");
    await assertOne(dir, /^2024-01: usage records .* are 0 for 0, .* are 2 for/, 4);
  });

  it("are a difference with count and span when the sums are lost", async () => {
    const dir = await retiredBooks();
    rmSync(sumsFile(dir));
    const { code, found } = await audit(dir, KEPT);
    assert.deepEqual([code, found.not_proved, found.retired.records], [1, RETIRED, 0]);
    assert.match(found.differences.join("\n"), /^2024-01: nothing .* 2 for .*\n2024-02: .* 4 for/);
  });

  it("are a difference when the sums cannot be read, and no more segments are deleted then", async () => {
    const dir = await retiredBooks();
    writeFileSync(sumsFile(dir), '{"sp_1":{"segment":"a","size":1,"months":{"2024-01":{}}}}');
    oldSegment(dir, "2024-03-01.0001.jsonl", pair(20, "2024-03-01"));
    await sync(dir);
    const second = await sync(dir);
    assert.equal(second.code, 0);
    assert.match(second.stderr, /segments older than spend.keep_days stay, .*retired\.json/);
    assert.deepEqual(segments(dir), ["2024-03-01.0001.jsonl"]);
    const { code, found } = await audit(dir, KEPT);
    assert.equal(code, 1);
    assert.match(found.differences[0], /retired\.json has no readable sums of the segment "sp_1"/);
  });
});

describe("a process that dies between keeping the sums and deleting", { concurrency: 2 }, () => {
  const NAME = "2024-01-31.0001.jsonl";
  it("counts nothing twice: the segment's own lines count, and it is deleted once more", async () => {
    const dir = folder();
    oldSegment(dir, NAME, pair(1, "2024-01-31"));
    const kept = join(folder(), "kept");
    copyFileSync(segmentPath(dir, NAME), kept);
    for (let pass = 0; pass < 2; pass += 1) await sync(dir);
    const sums = readFileSync(sumsFile(dir), "utf8");
    assert.ok(sums.includes(`"${spendId(1)}":{"segment":"${NAME}"`), sums);
    copyFileSync(kept, segmentPath(dir, NAME)); // young, so that the audit's own sync keeps it
    const between = await audit(dir, KEPT);
    assert.deepEqual(
      [between.code, between.found.proved.requests, between.found.retired.records],
      [0, 1, 0],
    );
    utimesSync(segmentPath(dir, NAME), 1_600_000_000, 1_600_000_000);
    await sync(dir);
    assert.deepEqual(segments(dir), []);
    assert.equal(readFileSync(sumsFile(dir), "utf8"), sums);
    const { code, found } = await audit(dir, KEPT);
    assert.deepEqual([code, found.retired.records, found.recorded], [0, 1, 0]);
  });

  it("deletes no segment whose sums could not be written", async () => {
    const dir = folder();
    oldSegment(dir, NAME, pair(1, "2024-01-31"));
    mkdirSync(`${sumsFile(dir)}.new`);
    for (let pass = 0; pass < 2; pass += 1) await sync(dir);
    assert.deepEqual([segments(dir), existsSync(sumsFile(dir))], [[NAME], false]);
    assert.equal((await audit(dir, KEPT)).code, 0);
  });
});
