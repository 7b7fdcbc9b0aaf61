// Usage records without lines in the spend log: when the sums of deleted segments prove them.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { UsageRecord } from "../../../src/extensions/usage-records/index.ts";
import { createOrphans } from "../../../src/extensions/audit/orphans.ts";
import {
  createMonthSummer,
  usageRecord,
  type MonthSums,
  type SettleRecord,
} from "../../../src/extensions/books/index.ts";
import { settleLine, spendId, type Line } from "../../support/books.ts";

const KEPT_SINCE = "2026-01-15T00:00:00.000Z";
const record = (n: number, time: string, over: Line = {}): UsageRecord =>
  usageRecord(settleLine(n, { time, ...over }) as SettleRecord);
const OLD = record(1, "2026-01-10T00:00:00.000Z");
const YOUNG = record(2, "2026-01-20T00:00:00.000Z");

function sumsOf(...records: UsageRecord[]): MonthSums {
  const summer = createMonthSummer();
  for (const each of records) summer.add(each);
  return summer.months();
}

function judge(found: readonly UsageRecord[], retired: MonthSums) {
  const orphans = createOrphans(KEPT_SINCE);
  for (const each of found) orphans.add(each);
  const differences: string[] = [];
  const { proved, notProved, youngTaken } = orphans.judge(retired, (text) => {
    differences.push(text);
  });
  const counts = [proved.records, notProved.records, youngTaken.records];
  return { counts, differences, proved };
}

describe("records without lines", () => {
  it("are proved if deleted segments came to the same", () => {
    const { counts, differences, proved } = judge([OLD], sumsOf(OLD));
    assert.deepEqual([counts, differences], [[1, 0, 0], []]);
    assert.deepEqual([proved.from, proved.to], [OLD.ended_at, OLD.ended_at]);
  });

  it("are proved with young ones if keep_days was raised since", () => {
    const { counts, differences } = judge([OLD, YOUNG], sumsOf(OLD, YOUNG));
    assert.deepEqual([counts, differences], [[2, 0, 1], []]);
  });

  it("are proved beside a young one, which is a difference by its id", () => {
    const { counts, differences } = judge([OLD, YOUNG], sumsOf(OLD));
    assert.deepEqual(counts, [1, 0, 0]);
    assert.match(differences.join(), new RegExp(`^${spendId(2)}: .* without lines`));
  });

  it("are a difference of their month if one of them was altered", () => {
    const altered = record(1, OLD.ended_at, { account: "beta" });
    const { counts, differences } = judge([altered], sumsOf(OLD));
    assert.deepEqual(counts, [0, 1, 0]);
    assert.match(differences.join(), /^2026-01: .*: something else in them was altered$/);
  });

  it("are a difference if nothing proves them, or if they are gone", () => {
    assert.match(judge([OLD], new Map()).differences.join(), /^2026-01: nothing proves/);
    assert.match(
      judge([], sumsOf(OLD)).differences.join(),
      /^2026-01: usage records without lines/,
    );
    assert.deepEqual(judge([], new Map()), {
      counts: [0, 0, 0],
      differences: [],
      proved: { records: 0, from: null, to: null },
    });
  });

  it("are none once their lines are found", () => {
    const orphans = createOrphans(KEPT_SINCE);
    for (const each of [OLD, YOUNG]) orphans.add(each);
    for (const each of [OLD, YOUNG]) orphans.remove(each);
    const differences: string[] = [];
    orphans.judge(new Map(), (text) => differences.push(text));
    assert.deepEqual(differences, []);
  });
});
