// Queries of the file store: sums of open and closed days, single requests, records of a period.

import assert from "node:assert/strict";
import fs, { appendFileSync, mkdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { join } from "node:path";
import { before, describe, it } from "node:test";
import { orderedLines } from "../../../../src/extensions/money/file-store/index.ts";
import {
  createDayIds,
  findInMonth,
  mergeIntoMonth,
} from "../../../../src/extensions/money/file-store/request-ids.ts";
import {
  createSummer,
  DIMENSIONS,
  type Dimension,
  type SumBy,
  type UsageRecord,
} from "../../../../src/extensions/money/records/index.ts";
import { createSegmentReader } from "../../../../src/extensions/money/usage/index.ts";
import { heldNow } from "../../../support/effort.ts";
import { folder } from "../../../support/folder.ts";
import {
  createScene,
  numbersOf,
  request,
  spendId,
  sumTexts,
  type Scene,
} from "../../../support/written-books.ts";
import { FILTERS, START, writeDays } from "./some-days.ts";

describe("the file store", () => {
  let at: Scene;
  let records: readonly UsageRecord[];
  before(async () => {
    at = createScene({ now: START, recovers: false });
    await writeDays(at, 800);
    records = await at.records();
    assert.equal(records.length, 800);
    const days = [...new Set(records.map(({ day }) => day))];
    assert.deepEqual(await at.books.store.days(), days);
  });

  it("yields the records that match", async () => {
    for (const [filter, matches] of FILTERS) {
      const found: UsageRecord[] = [];
      for await (const batch of at.books.store.records(filter)) found.push(...batch);
      assert.deepEqual(found, records.filter(matches), JSON.stringify(filter));
    }
  });

  it("returns sums of open and closed days that equal the records", async () => {
    const bys: readonly (readonly Dimension[])[] = [
      DIMENSIONS,
      ["account"],
      ["day", "currency"],
      ["provider"],
      [],
    ];
    const others = [at, at.other()];
    for (const [filter, matches] of FILTERS)
      for (const by of bys) {
        const summer = createSummer(by);
        for (const record of records.filter(matches)) summer.addRecord(record);
        for (const { books } of others)
          assert.deepEqual(
            sumTexts(await books.store.sums(filter, by)),
            sumTexts(summer.sums() as readonly SumBy<Dimension>[]),
            JSON.stringify({ filter, by }),
          );
      }
  });

  it("returns them without the files made when the days closed", async () => {
    const other = at.other();
    const expected = sumTexts(await other.books.store.sums({}, ["day", "account"]));
    rmSync(join(at.dir, "usage", "2026-01-30.sums"));
    assert.deepEqual(sumTexts(await other.books.store.sums({}, ["day", "account"])), expected);
  });

  it("names a damaged file of sums", async () => {
    const file = join(at.dir, "usage", "2026-01-30.sums");
    const message = /2026-01-30\.sums cannot be read, and 'books rebuild' makes it anew: \S/;
    for (const text of ["", "{}", "[{}]"]) {
      writeFileSync(file, text);
      await assert.rejects(at.other().books.store.sums({}, []), { message });
    }
    rmSync(file);
  });

  it("finds all records of a request id, in the order in which they ended", async () => {
    const ids = new Set(records.map(({ gateway_request_id }) => gateway_request_id));
    const byEnd = (one: UsageRecord, other: UsageRecord) =>
      one.ended_at + one.usage_id < other.ended_at + other.usage_id ? -1 : 1;
    for (const requestId of [...ids].slice(0, 300)) {
      const expected = records
        .filter(({ gateway_request_id }) => gateway_request_id === requestId)
        .sort(byEnd);
      const found = await at.books.store.find({ requestId, limit: 100 });
      const shown = found.map(({ details: _details, log: _log, ...columns }) => columns);
      assert.deepEqual(shown, expected);
      assert.ok(found.every(({ details, log }) => details && log));
      const { account } = expected[0]!;
      const own = await at.books.store.find({ requestId, account, limit: 100 });
      const ofAccount = expected.filter((record) => record.account === account);
      assert.deepEqual(numbersOf(own), numbersOf(ofAccount));
    }
    assert.deepEqual(await at.books.store.find({ requestId: "none", limit: 5 }), []);
  });

  it("yields the latest records of an id up to the limit, over open and closed days", async () => {
    const same = createScene({ now: "2025-12-31T12:00:00.000Z", recovers: false });
    let n = 0;
    for (const day of ["2025-12-31", "2026-01-01", "2026-01-02"]) {
      await same.passUntil(`${day}T12:00:00.000Z`);
      for (let count = 0; count < 10; count += 1) {
        const time = `${day}T12:00:0${count}.000Z`;
        n += 1;
        const over = { gateway_request_id: "same", account: `${n % 2}` };
        same.write("2025-12-31.0001.jsonl", ...request(n, time, time, over));
      }
      await same.pass();
    }
    assert.equal(same.closed().length, 2);
    const find = async (limit: number, account?: string) =>
      numbersOf(await same.books.store.find({ requestId: "same", account, limit }));
    const upTo30 = (count: number) =>
      Array.from({ length: count }, (_, index) => 31 - count + index);
    for (const limit of [1, 10, 15, 25, 30, 100])
      assert.deepEqual(await find(limit), upTo30(Math.min(limit, 30)), `limit ${limit}`);
    assert.deepEqual(await find(8, "0"), [16, 18, 20, 22, 24, 26, 28, 30]);
  });

  it("finds each id of a month that has more ids than one read returns", async () => {
    const path = join(folder({ inMemory: true }), "2026-01.ids");
    const count = 10_000;
    for (const day of ["2026-01-31", "2026-01-01", "2026-01-31"]) {
      const ids = createDayIds(day);
      for (let n = 0; n < count; n += 1) ids.add(`${day} ${n}`, "acme", n * 1_000_003);
      await mergeIntoMonth(path, day, ids);
    }
    assert.equal(statSync(path).size, 2 * count * 18, "each has one entry");
    for (let n = 0; n < count; n += 37)
      for (const day of ["2026-01-01", "2026-01-31"]) {
        const places = findInMonth(path, { requestId: `${day} ${n}`, limit: 9 });
        assert.deepEqual(places, [{ day, offset: n * 1_000_003 }]);
      }
  });

  it("notices a day's file that was sorted twice, although its first inode number is reused", async (t) => {
    const other = createScene({ recovers: false });
    const { store } = other.books;
    for (const n of [2, 1]) {
      other.write(`2026-01-31.000${n}.jsonl`, ...request(n, "2026-01-31T12:00:00.000Z"));
      await other.pass();
    }
    const { statSync: original } = fs;
    const { mock } = t.mock.method(fs, "statSync", (path: string, options: object) => {
      const found = original(path, options);
      // No two existing files share a number, so it can stand in for the creation time.
      return found && Object.assign(found, { ino: 1, birthtimeMs: found.ino });
    });
    syncBuiltinESMExports();
    t.after(() => {
      mock.restore();
      syncBuiltinESMExports();
    });
    const query = { requestId: "request 1", limit: 1 };
    assert.deepEqual(numbersOf(await store.find(query)), [1]);
    mkdirSync(join(other.dir, "usage", "2026-01.ids.new")); // prevents the month's index
    await assert.rejects(store.finish("2026-01-31"));
    assert.deepEqual(numbersOf(await store.find(query)), [1]);
  });

  it("does not read the cursor, which may be large, more often for more closed days", async (t) => {
    const { mock } = t.mock.method(fs, "readFileSync");
    syncBuiltinESMExports();
    await at.books.store.inspect();
    await at.books.store.find({ requestId: "none", limit: 1 });
    await at.books.store.sums({ from: "2026-01-31" }, []);
    mock.restore();
    syncBuiltinESMExports();
    assert.equal(mock.calls.filter(({ arguments: [path] }) => /cursor/.test(`${path}`)).length, 8);
  });

  it("stores parts of lines without retaining the rest of their text", async () => {
    const path = join(folder({ inMemory: true }), "a day");
    const text = "x".repeat(400_000);
    for (let n = 0; n < 10; n += 1) {
      const segment = `2026-01-31.000${n}.jsonl`;
      appendFileSync(path, `{"spend_id":"${spendId(n)}"${text}"log":{"segment":"${segment}"}}\n`);
    }
    const before = heldNow();
    const readers = Array.from({ length: 10 }, () => createSegmentReader(path, "a segment"));
    for (const reader of readers) for await (const _batch of reader.read(Infinity));
    const reading = orderedLines(path, Infinity)[Symbol.asyncIterator]();
    await reading.next();
    const held = heldNow() - before;
    await reading.return?.();
    assert.ok(held < 1_000_000, `${held} bytes, with ${readers.length} readers`);
  });

  it("reads a day in few steps, however often two processes took turns in it", async () => {
    const path = join(folder({ inMemory: true }), "a day");
    const names = ["2026-01-31.0002.jsonl", "2026-01-31.0001.jsonl"];
    const texts = Array.from({ length: 1_000 }, (_, at) =>
      JSON.stringify({ at, log: { segment: names[at % 2] } }),
    );
    writeFileSync(path, `${texts.join("\n")}\n`);
    const batches = [];
    for await (const batch of orderedLines(path, Infinity)) batches.push(batch);
    const order = [...texts.keys()].sort((a, b) => (b % 2) - (a % 2) || a - b);
    const read = batches.flatMap(({ lines }) => lines.map(({ text, number }) => [number, text]));
    assert.deepEqual(
      read,
      order.map((at) => [at + 1, texts[at]]),
    );
    const bytes = Buffer.concat(batches.map((batch) => batch.bytes!));
    assert.equal(bytes.toString(), read.map(([, text]) => `${text}\n`).join(""));
    assert.ok(batches.length < 10, `${batches.length} batches`);
  });

  it("yields batches without records too, so that readers can stop", async () => {
    const reading = at.books.store.records({ account: "none" })[Symbol.asyncIterator]();
    assert.deepEqual(await reading.next(), { done: false, value: [] });
    await reading.return?.();
  });
});
