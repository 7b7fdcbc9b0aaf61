// Counts, costs and spans of an audit's summary.

import assert from "node:assert/strict";
import { it } from "node:test";
import { createTotals } from "../../../src/extensions/audit/totals.ts";
import {
  createMonthSummer,
  NO_RECORDS,
  usageRecord,
  type SettleRecord,
} from "../../../src/extensions/books/index.ts";
import { settleLine, type Line } from "../../support/books.ts";

const record = (n: number, over: Line = {}) => usageRecord(settleLine(n, over) as SettleRecord);
const cheap = record(1, { cost: "0.1", time: "2026-01-02T00:00:00.000Z" });
const dear = record(2, { cost: "2", currency: "EUR" });

it("totals are exact by currency, with the span from the first to the last", () => {
  const totals = createTotals();
  assert.deepEqual([totals.count(), totals.costs()], [0, {}]);
  assert.deepEqual(totals.span(), { from: null, to: null });
  for (const each of [dear, cheap, cheap]) totals.add(each);
  assert.deepEqual([totals.count(), totals.costs()], [3, { EUR: "2", USD: "0.2" }]);
  assert.deepEqual(totals.span(), { from: cheap.ended_at, to: dear.ended_at });
});

it("totals forget what is taken back, one by one or as a sum", () => {
  const totals = createTotals();
  for (const each of [cheap, dear, dear]) totals.add(each);
  totals.remove(cheap);
  const summer = createMonthSummer();
  summer.add(dear);
  totals.removeAll(summer.months().get("2026-01") ?? NO_RECORDS);
  assert.deepEqual([totals.count(), totals.costs()], [1, { EUR: "2", USD: "0" }]);
});
