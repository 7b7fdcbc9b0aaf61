// The sums that deleted segments leave, and how they are compared with records.

import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import type { UsageRecord } from "../../../src/extensions/usage-records/index.ts";
import type { SettleRecord } from "../../../src/extensions/books/spend-log/records.ts";
import {
  addSums,
  costText,
  createMonthSummer,
  isSameSum,
  NO_RECORDS,
} from "../../../src/extensions/books/usage/record-sums.ts";
import { retire, retiredMonths } from "../../../src/extensions/books/usage/retired.ts";
import { usageRecord } from "../../../src/extensions/books/usage/usage-record.ts";
import { openLine, settleLine, textOf, type Line } from "../../support/books.ts";
import { folder } from "../../support/folder.ts";

const record = (n: number, over: Line = {}): UsageRecord =>
  usageRecord(settleLine(n, over) as SettleRecord);

function sumOf(...records: UsageRecord[]) {
  const summer = createMonthSummer();
  for (const each of records) summer.add(each);
  return summer.months().get("2026-01") ?? NO_RECORDS;
}

describe("sums of records", () => {
  it("are the same in any order, and another if a record is missing, doubled or altered", () => {
    const sum = sumOf(record(1), record(2));
    assert.ok(isSameSum(sum, sumOf(record(2), record(1))));
    for (const other of [
      sumOf(record(1)),
      sumOf(record(1), record(2), record(2)),
      sumOf(record(1), record(2, { account: "beta" })),
      sumOf(record(1), record(2, { cost: "9" })),
    ])
      assert.ok(!isSameSum(sum, other));
  });

  it("add up, with their costs by currency and their span", () => {
    const first = sumOf(record(1, { cost: "0.1", time: "2026-01-02T00:00:00.000Z" }));
    const second = sumOf(record(2, { cost: "2", currency: "EUR" }));
    const sum = addSums(first, second);
    assert.equal(costText(sum), "2 EUR, 0.1 USD");
    assert.deepEqual(
      [sum.records, sum.from, sum.to],
      [2, "2026-01-02T00:00:00.000Z", "2026-01-31T12:00:01.500Z"],
    );
    assert.equal(costText(NO_RECORDS), "0");
  });

  it("are as before once a record is taken back", () => {
    const summer = createMonthSummer();
    summer.add(record(1));
    summer.add(record(2));
    summer.remove(record(2));
    assert.ok(isSameSum(summer.months().get("2026-01") ?? NO_RECORDS, sumOf(record(1))));
  });
});

describe("retired.json", () => {
  const NAME = "2026-01-31.0001.jsonl";

  function made(...ns: number[]) {
    const dir = folder();
    const text = textOf(ns.flatMap((n) => [openLine(n), settleLine(n)]));
    writeFileSync(join(dir, NAME), text);
    return { dir, segment: { name: NAME, identity: "a", size: Buffer.byteLength(text) } };
  }
  const monthIn = (dir: string, present: string[] = []) =>
    retiredMonths(dir, new Set(present)).get("2026-01") ?? NO_RECORDS;

  it("keeps what a segment came to, for when it is gone", async () => {
    const { dir, segment } = made(1, 2);
    await retire(dir, [segment]);
    assert.ok(isSameSum(monthIn(dir), sumOf(record(1), record(2))));
    assert.equal(monthIn(dir, ["a"]), NO_RECORDS, "a segment that is there has its lines");
  });

  it("counts the longest of several copies, and each segment once", async () => {
    const { dir, segment } = made(1, 2);
    await retire(dir, [segment]);
    await retire(dir, [segment]);
    await retire(dir, [{ ...segment, size: 10 }]);
    assert.equal(monthIn(dir).records, 2);
  });

  it("is not made for no segments, and absent is empty", async () => {
    const dir = folder();
    await retire(dir, []);
    assert.equal(retiredMonths(dir, new Set()).size, 0);
  });

  for (const [what, text, message] of [
    ["is no JSON", "{ bad", /is not JSON/],
    ["is a list", "[]", /does not hold the sums of retired segments/],
    ["lacks a size", '{"a":{"segment":"s","months":{}}}', /no readable sums of the segment "a"/],
    [
      "has a cost that is none",
      JSON.stringify({
        a: { segment: "s", size: 1, months: { "2026-01": { cost: { USD: "x" } } } },
      }),
      /no readable sums of the segment "a"/,
    ],
  ] as const) {
    it(`is a fault, and stays as it is, if it ${what}`, async () => {
      const { dir, segment } = made(1);
      const file = join(dir, "retired.json");
      writeFileSync(file, text);
      assert.throws(() => retiredMonths(dir, new Set()), message);
      await assert.rejects(retire(dir, [segment]), message);
      assert.equal(readFileSync(file, "utf8"), text);
    });
  }

  it("is a fault if a folder has its name", () => {
    const dir = folder();
    mkdirSync(join(dir, "retired.json"));
    assert.throws(() => retiredMonths(dir, new Set()), /EISDIR/);
  });
});
