// Bills and CSV, from a store that holds a few records.

import assert from "node:assert/strict";
import { join } from "node:path";
import { describe, it } from "node:test";
import { isDay, MONTH } from "../../../../src/extensions/money/billing/calendar.ts";
import { statement, statementCsv } from "../../../../src/extensions/money/billing/statement.ts";
import {
  USAGE_COLUMNS,
  usageRecord,
  type SettleRecord,
} from "../../../../src/extensions/money/records/index.ts";
import { createDays } from "../../../../src/extensions/money/usage/days.ts";
import { createFileStore } from "../../../../src/extensions/money/usage/file-store/file-store.ts";
import { settleLine, type Line } from "../../../support/books.ts";
import { folder } from "../../../support/folder.ts";

async function storeOf(...lines: Line[]) {
  const dir = folder();
  const store = createFileStore(join(dir, "usage"), createDays(join(dir, "days.jsonl")));
  const records = lines.map((line, at) => {
    const log = { segment: "2026-01-31.0001.jsonl", line: at + 1, sha256: "" };
    // It is booked where the test says so, else on the day on which it ended.
    return usageRecord(line as SettleRecord, line["booked"] ?? line["time"].slice(0, 10), log);
  });
  await store.add(records, {});
  return store;
}
const JANUARY = { account: "acme", month: "2026-01" };

describe("statement", () => {
  it("has a line a model, in the order of their names, exact sums, and what is booked in the month", async () => {
    const store = await storeOf(
      settleLine(1, { model_served: "b", cost: "0.1" }),
      settleLine(2, { model_served: "a", cost: "0.2" }),
      settleLine(3, { model_served: "b", cost: "0.000000000001" }),
      settleLine(4, { account: "beta" }),
      settleLine(5, { booked: "2026-02-01" }),
    );
    const bill = await statement(store, { ...JANUARY, currency: "USD" });
    assert.deepEqual(
      bill.lines.map(({ model, requests, cost }) => [model, requests, cost]),
      [
        ["a", 1, "0.2"],
        ["b", 2, "0.100000000001"],
      ],
    );
    assert.deepEqual([bill.total.requests, bill.total.cost], [3, "0.300000000001"]);
    assert.deepEqual(bill.other_currencies, {});
  });

  it("only counts what was billed in other currencies", async () => {
    const store = await storeOf(settleLine(1), settleLine(2, { currency: "EUR" }));
    const bill = await statement(store, { ...JANUARY, currency: "USD" });
    assert.deepEqual([bill.total.requests, bill.other_currencies], [1, { EUR: 1 }]);
  });

  it("owes nothing for a month without requests", async () => {
    const bill = await statement(await storeOf(), { ...JANUARY, currency: "USD" });
    assert.deepEqual([bill.lines, bill.total.cost], [[], "0"]);
  });
});

describe("statementCsv", () => {
  async function csv(lines: Line[], currency?: string): Promise<string> {
    let text = "";
    const print = async (part: string): Promise<void> => {
      text += part;
    };
    await statementCsv(await storeOf(...lines), { filter: JANUARY, currency, print });
    return text;
  }

  it("has the columns' names first, and quotes what a reader would take apart", async () => {
    const ids = ["plain", "with, comma", 'with "quotes"', "two\nlines", " spaced"];
    const text = await csv(ids.map((id, at) => settleLine(at, { gateway_request_id: id })));
    const [head, ...rows] = text.split("\r\n");
    assert.equal(head, USAGE_COLUMNS.join(","));
    const fields = rows.slice(0, -1).map((row) => row.slice(row.indexOf(",") + 1));
    const expected = ["plain", '"with, comma"', '"with ""quotes"""', '"two\nlines"', '" spaced"'];
    expected.forEach((field, at) => {
      assert.ok(fields[at]!.startsWith(`${field},acme`), fields[at]);
    });
  });

  it("has records of one currency only, if it is named", async () => {
    const lines = [settleLine(1), settleLine(2, { currency: "EUR" })];
    assert.equal((await csv(lines)).split("\r\n").length, 4);
    assert.equal((await csv(lines, "EUR")).split("\r\n").length, 3);
  });
});

describe("calendar", () => {
  it("has twelve months, and the days that there are", () => {
    for (const text of ["2026-01", "2026-12", "9999-10"]) assert.match(text, MONTH);
    for (const text of ["2026-00", "2026-13", "0026-01", "2026-1"])
      assert.doesNotMatch(text, MONTH);
    for (const text of ["2024-02-29", "2026-12-31"]) assert.ok(isDay(text), text);
    for (const text of ["2026-02-29", "2026-02-31", "2026-1-1", "soon", ""])
      assert.ok(!isDay(text), text);
  });
});
