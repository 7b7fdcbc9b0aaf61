// The index by request id: sorted entries of a month's days in one file.

import assert from "node:assert/strict";
import { appendFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import {
  createDayIds,
  findInMonth,
  mergeIntoMonth,
} from "../../../../src/extensions/money/file-store/request-ids.ts";
import type { RequestQuery } from "../../../../src/extensions/money/records/index.ts";
import { folder } from "../../../support/folder.ts";
import { createScene, numbersOf, request } from "../../../support/projection.ts";

const DAYS = ["2026-01-31", "2026-01-01", "2026-01-15"];
const path = join(folder({ inMemory: true }), "2026-01.ids");
const asked = (requestId: string, account?: string): RequestQuery => ({
  requestId,
  account,
  limit: 100_000,
});

async function mergeDay(day: string, ids: readonly (readonly [string, string, number])[]) {
  const added = createDayIds(day);
  for (const [id, account, offset] of ids) added.add(id, account, offset);
  await mergeIntoMonth(path, day, added);
}

describe("the index by request id", () => {
  it("finds each of 100,000 entries of three days, and of an id that many have, all", async () => {
    for (const day of DAYS)
      await mergeDay(
        day,
        Array.from({ length: 100_000 / 3 }, (_, n) =>
          n % 10 === 0
            ? (["same", `account ${n % 7}`, n] as const)
            : ([`${day} ${n}`, "acme", n * 1_000_003] as const),
        ),
      );
    assert.equal(statSync(path).size, 33_333 * 3 * 18);
    for (let n = 1; n < 33_333; n += 37)
      for (const day of DAYS) {
        const expected = n % 10 === 0 ? [] : [{ day, offset: n * 1_000_003 }];
        assert.deepEqual(findInMonth(path, asked(`${day} ${n}`)), expected);
        assert.deepEqual(findInMonth(path, asked(`${day} ${n}`, "acme")), expected);
        assert.deepEqual(findInMonth(path, asked(`${day} ${n}`, "other")), []);
      }
    assert.equal(findInMonth(path, asked("same")).length, 3_334 * 3);
    const own = findInMonth(path, asked("same", "account 3"));
    assert.ok(own.length > 1_000 && own.every(({ offset }) => offset % 7 === 3));
    assert.deepEqual(findInMonth(path, asked("none")), []);
  });

  it("has a day's entries once, however often it is merged", async () => {
    await mergeDay(DAYS[1]!, [["again", "acme", 2 ** 40 - 1]]);
    await mergeDay(DAYS[1]!, [["again", "acme", 5]]);
    assert.deepEqual(findInMonth(path, asked("again")), [{ day: DAYS[1], offset: 5 }]);
    assert.deepEqual(findInMonth(path, asked(`${DAYS[1]} 1`)), []);
    assert.equal(findInMonth(path, asked(`${DAYS[0]} 1`)).length, 1);
    await mergeDay(DAYS[1]!, []);
    assert.deepEqual(findInMonth(path, asked("again")), []);
  });

  it("passes over an entry that is torn", async () => {
    await mergeDay(DAYS[1]!, [["whole", "acme", 7]]);
    appendFileSync(path, Buffer.alloc(9, 255));
    assert.equal(findInMonth(path, asked("whole")).length, 1);
    await mergeDay(DAYS[2]!, [["other", "acme", 8]]);
    assert.equal(findInMonth(path, asked("whole")).length, 1);
    assert.equal(statSync(path).size % 18, 0);
  });

  it("holds the entries of an open day in memory, those of the same id together", () => {
    const ids = createDayIds(DAYS[0]!);
    for (let n = 0; n < 30_000; n += 1) ids.add(n % 3 === 0 ? "same" : `${n}`, "acme", n * 100);
    const offsets = Array.from({ length: 10_000 }, (_, n) => (9_999 - n) * 300);
    assert.deepEqual(ids.find(asked("same")), offsets);
    assert.deepEqual(ids.find({ requestId: "same", limit: 2 }), offsets.slice(0, 2));
    for (let n = 1; n < 30_000; n += 3) assert.deepEqual(ids.find(asked(`${n}`)), [n * 100]);
    assert.deepEqual(ids.find(asked("1", "acme")), [100]);
    assert.deepEqual(ids.find(asked("1", "other")), []);
    assert.deepEqual(ids.find(asked("0")), []);
  });

  it("yields the latest records of an id up to the limit, over open and closed days", async () => {
    const at = createScene({ now: "2025-12-31T12:00:00.000Z", recovers: false });
    const segment = "2025-12-31.0001.jsonl";
    const over = { gateway_request_id: "same" };
    let n = 0;
    for (const day of ["2025-12-31", "2026-01-01", "2026-01-02"]) {
      await at.passUntil(`${day}T12:00:00.000Z`);
      for (let count = 0; count < 10; count += 1) {
        const time = `${day}T12:00:0${count}.000Z`;
        n += 1;
        at.write(segment, ...request(n, time, time, { ...over, account: `${n % 2}` }));
      }
      await at.pass();
    }
    assert.equal(at.closed().length, 2);
    const find = async (limit: number, account?: string) =>
      numbersOf(await at.books.store.find({ requestId: "same", account, limit }));
    const upTo30 = (count: number) => Array.from({ length: count }, (_, at) => 31 - count + at);
    for (const limit of [1, 10, 15, 25, 30, 100])
      assert.deepEqual(await find(limit), upTo30(Math.min(limit, 30)), `limit ${limit}`);
    assert.deepEqual(await find(8, "0"), [16, 18, 20, 22, 24, 26, 28, 30]);
  });
});
