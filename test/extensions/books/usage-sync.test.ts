// One pass of the sync, piece by piece: how a segment is recognised, what is copied from it, and
// when it goes.

import assert from "node:assert/strict";
import { appendFileSync, existsSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { allExtensions, checkConfig } from "../../support/config.ts";
import type { Mark } from "../../../src/extensions/usage-records/index.ts";
import { openBooks } from "../../../src/extensions/books/books-files.ts";
import {
  byIdentity,
  copiedBytes,
  createSegmentReader,
  describeStale,
} from "../../../src/extensions/books/usage/segment-progress.ts";
import { createRetention } from "../../../src/extensions/books/usage/retention.ts";
import { copySettled } from "../../../src/extensions/books/usage/sync.ts";
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
import { createFakeClock } from "../../support/fake-clock.ts";
import { folder } from "../../support/folder.ts";
import { demo } from "../../support/gateway.ts";

const NAME = "2026-01-31.0001.jsonl";
const DAY_MS = 86_400_000;
const NOW = Date.parse("2026-02-01T12:00:00.000Z");
const pair = (n: number) => [openLine(n), settleLine(n)];

function booksIn(dir: string, clock = createFakeClock(NOW), keepDays = 10) {
  const events: Readonly<Record<string, unknown>>[] = [];
  const config = checkConfig(demo({ data_dir: dir, spend: { keep_days: keepDays } }), {});
  const diagnose = (event: Readonly<Record<string, unknown>>): void => {
    events.push(event);
  };
  return { books: openBooks(config, { clock, diagnose, extensions: allExtensions }), events };
}

describe("a segment reader", () => {
  const TEXT = textOf([...pair(1), ...pair(2)]);
  const END = Buffer.byteLength(textOf(pair(1)));

  function made(text: string) {
    const dir = folder();
    handMade(dir, NAME, text, "let go");
    return { path: segmentPath(dir, NAME), reader: createSegmentReader(), dir };
  }
  const markAt = (position: number, tail: string): Mark => ({
    segment: NAME,
    identity: spendId(1),
    position,
    tail,
    recovered: false,
  });

  it("identifies a segment by the spend_id of its first line", () => {
    assert.equal(made(TEXT).reader.identityOf(made(TEXT).path), spendId(1));
    const other = made("something else\n");
    assert.match(other.reader.identityOf(other.path) ?? "", /^x_[0-9a-f]{32}$/);
    const unfinished = made('{"type":"open"');
    assert.equal(unfinished.reader.identityOf(unfinished.path), undefined);
  });

  it("knows a position by the bytes before it, and only at the end of a line", () => {
    const { path, reader } = made(TEXT);
    assert.match(reader.tailAt(path, END), /^[0-9a-f]{32}$/);
    assert.equal(reader.tailAt(path, END - 1), "");
    assert.equal(reader.tailAt(path, TEXT.length + 100), "");
  });

  it("goes on from the furthest mark that matches, under the name that it has now", () => {
    const { path, reader } = made(TEXT);
    const [half, whole] = [END, Buffer.byteLength(TEXT)].map((end) =>
      markAt(end, reader.tailAt(path, end)),
    ) as [Mark, Mark];
    const marks = byIdentity([half, whole]);
    const progress = reader.progressOf(path, "2026-02-01.0007.jsonl", marks);
    assert.deepEqual(progress.mark, { ...whole, segment: "2026-02-01.0007.jsonl" });
    assert.deepEqual(progress.stale, []);
  });

  it("calls a mark stale that the content contradicts", () => {
    const { path, reader } = made(TEXT);
    const wrong = markAt(END, "0".repeat(32));
    const progress = reader.progressOf(path, NAME, byIdentity([wrong]));
    assert.deepEqual([progress.mark, progress.stale], [undefined, [wrong]]);
    assert.match(describeStale(NAME, 9_999, [wrong]), /is not what stands there/);
    assert.match(describeStale(NAME, 1, [wrong]), /were copied .*, and it has 1\./);
  });

  it("looks again when the file has changed", () => {
    const { path, reader } = made('{"type"');
    assert.equal(reader.identityOf(path), undefined);
    writeFileSync(path, TEXT);
    assert.equal(reader.identityOf(path), spendId(1));
  });

  it("finds how much was copied, also by marks of versions that knew names only", () => {
    const { dir, reader } = made(TEXT);
    const old: Mark = { ...markAt(77, ""), identity: null };
    assert.deepEqual([...copiedBytes(join(dir, "spend"), reader, [old])], [[NAME, 77]]);
    assert.deepEqual([...copiedBytes(join(dir, "spend"), reader, [])], [[NAME, 0]]);
  });
});

describe("a pass of the sync", () => {
  it("copies what was settled since the last one, and nothing twice", async () => {
    const dir = folder();
    handMade(dir, NAME, textOf([...pair(1), openLine(2)]), "let go");
    const { books } = booksIn(dir);
    assert.equal((await copySettled(books)).copied, 1);
    assert.equal((await copySettled(books)).copied, 0);
    appendFileSync(segmentPath(dir, NAME), textOf([settleLine(2), ...pair(3)]));
    assert.equal((await copySettled(books)).copied, 2);
    assert.deepEqual(
      usageRecords(dir).map(({ usage_id }) => usage_id),
      [1, 2, 3].map(spendId),
    );
  });

  it("replaces a record that says interrupted by what the request's own process says", async () => {
    const dir = folder();
    const interrupted = settleLine(1, { status: "interrupted", cost: "0" });
    handMade(dir, NAME, textOf([openLine(1), interrupted]), "let go");
    const { books } = booksIn(dir);
    await copySettled(books);
    appendFileSync(segmentPath(dir, NAME), textOf([settleLine(1)]));
    assert.equal((await copySettled(books)).copied, 1);
    assert.deepEqual(
      usageRecords(dir).map(({ status }) => status),
      ["completed"],
    );
  });

  it("reports lines that cannot be read, with their place, and copies the rest", async () => {
    const dir = folder();
    const lines = ["garbage", ...pair(1)];
    handMade(dir, NAME, textOf(lines), "let go");
    const { books, events } = booksIn(dir);
    assert.equal((await copySettled(books)).copied, 1);
    const before_byte = Buffer.byteLength(textOf(lines));
    assert.deepEqual(events, [
      { event: "spend_log_unreadable", level: "error", segment: NAME, lines: 1, before_byte },
    ]);
  });

  it("copies nothing twice from a segment that has become another, and reports it", async () => {
    const dir = folder();
    handMade(dir, NAME, textOf([...pair(1), ...pair(2)]), "let go");
    const { books } = booksIn(dir);
    await copySettled(books);
    writeFileSync(segmentPath(dir, NAME), textOf([...pair(1), ...pair(3)]));
    const { copied, faults } = await copySettled(books);
    assert.equal(copied, 1);
    assert.deepEqual(
      faults.map(({ event, blocks }) => [event, blocks]),
      [["spend_segment_changed", false]],
    );
    assert.deepEqual(
      usageRecords(dir).map(({ usage_id }) => usage_id),
      [1, 2, 3].map(spendId),
    );
  });
});

describe("old segments", () => {
  /** A segment of 2026-01-31 that is copied, and the clock of the books. */
  async function copied() {
    const dir = folder();
    handMade(dir, NAME, textOf(pair(1)), "let go");
    const written = new Date("2026-01-31T12:00:00.000Z");
    utimesSync(segmentPath(dir, NAME), written, written);
    const clock = createFakeClock(NOW);
    const { books } = booksIn(dir, clock);
    await copySettled(books);
    /** Lets days pass in steps that are no jump of the clock. */
    const pass = async (days: number) => {
      for (let step = 0; step < 2 * days; step += 1) {
        clock.advance(DAY_MS / 2);
        books.retention.isClockSteady();
      }
      return copySettled(books);
    };
    return { dir, clock, books, pass };
  }

  it("stay for keep_days, are deleted then, and leave their sums", async () => {
    const { dir, pass } = await copied();
    await pass(9);
    assert.deepEqual(segments(dir), [NAME]);
    await pass(1);
    assert.deepEqual(segments(dir), []);
    assert.ok(existsSync(join(dir, "spend", "retired.json")));
    assert.equal(usageRecords(dir).length, 1, "its record stays");
  });

  it("stay for a day after the clock has jumped", async () => {
    const { dir, clock, books, pass } = await copied();
    clock.advance(100 * DAY_MS);
    await copySettled(books);
    assert.deepEqual(segments(dir), [NAME]);
    await pass(1);
    assert.deepEqual(segments(dir), []);
  });

  it("stay if their sums cannot be kept, which is a fault", async () => {
    const { dir, pass } = await copied();
    writeFileSync(join(dir, "spend", "retired.json"), "{ damaged");
    const { faults } = await pass(12);
    assert.deepEqual(
      faults.map(({ event }) => event),
      ["spend_sums_not_kept"],
    );
    assert.deepEqual(segments(dir), [NAME]);
  });
});

describe("retention", () => {
  it("looks at the newest line only if name and last change are old, and once", async () => {
    const clock = createFakeClock(NOW);
    const retention = createRetention(folder(), 10, clock);
    let reads = 0;
    const newest = (time: string) => async () => {
      reads += 1;
      return Date.parse(time);
    };
    const young = newest("2026-01-31T12:00:00.000Z");
    const modified = Date.parse("2026-01-01");
    assert.equal(await retention.isExpired({ name: NAME, modified }, young), false);
    assert.equal(reads, 0);
    const old = { name: "2026-01-01.0001.jsonl", modified };
    assert.equal(await retention.isExpired({ ...old, modified: NOW }, young), false);
    assert.equal(reads, 0);
    assert.equal(await retention.isExpired(old, young), false);
    assert.equal(await retention.isExpired(old, young), false);
    assert.equal(reads, 1);
    const older = { ...old, modified: modified - 1 };
    assert.equal(await retention.isExpired(older, newest("2026-01-01T12:00:00.000Z")), true);
  });

  it("forgets a segment when the day in its name is keep_days old", () => {
    const retention = createRetention(folder(), 10, createFakeClock(NOW));
    assert.equal(retention.isForgotten("2026-01-21.0001.jsonl"), true);
    assert.equal(retention.isForgotten("2026-01-22.0001.jsonl"), false);
  });
});
