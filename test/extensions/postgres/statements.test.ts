// The values of the store's statements, and the rows that they find, without a database.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { USAGE_COLUMNS, type Mark } from "../../../src/extensions/usage-records/index.ts";
import { commitValues } from "../../../src/extensions/postgres/commit.ts";
import { filterValues, parseSum, sumsBy } from "../../../src/extensions/postgres/select.ts";
import { columnsOf, MIGRATE } from "../../../src/extensions/postgres/tables.ts";

const SOURCE = "0123456789abcdef0123456789abcdef";
const mark = (position: number, identity: string | null = "a"): Mark => ({
  segment: `segment ${position}`,
  identity,
  position,
  tail: "t",
  recovered: false,
});

it("the table has the columns of usage records, in their order", () => {
  assert.equal(columnsOf("t"), USAGE_COLUMNS.map((name) => `t.${name}`).join(", "));
  const positions = USAGE_COLUMNS.map((name) => MIGRATE.indexOf(` ${name} `));
  assert.ok(MIGRATE.includes("(usage_id text PRIMARY KEY"));
  assert.deepEqual(
    positions.slice(1),
    [...positions.slice(1)].sort((a, b) => a - b),
  );
});

describe("commitValues", () => {
  it("tells marks with an identity from those of earlier versions, and keeps what is put again", () => {
    const put = [mark(2), mark(3)];
    const drop = [mark(1), mark(2), mark(9, null)];
    const change = { records: [], corrections: new Set<string>(), put, drop };
    assert.deepEqual(commitValues(SOURCE, change), [
      "[]",
      SOURCE,
      JSON.stringify([mark(1)]),
      JSON.stringify(put),
      ["segment 9"],
    ]);
  });
});

describe("filterValues", () => {
  const never = () => assert.fail("the gateway-id is not needed");

  it("asks for the gateway-id only if the filter needs it", () => {
    const unfiltered = filterValues({}, never);
    assert.deepEqual(unfiltered.slice(0, 6), [null, null, null, null, "1 month", null]);
    assert.deepEqual(unfiltered.slice(6), [null, null, null, null]);
    assert.equal(filterValues({ ownOnly: true }, () => SOURCE)[5], "sp_01234567%");
  });

  it("turns a month or a day into a first day and a span", () => {
    const spanOf = (filter: object) => filterValues(filter, never).slice(3, 5);
    assert.deepEqual(spanOf({ month: "2026-02" }), ["2026-02-01", "1 month"]);
    assert.deepEqual(spanOf({ month: "2026-02", day: "2026-02-03" }), ["2026-02-03", "1 day"]);
  });
});

it("sums are grouped by the dimensions, and their costs are exact", () => {
  assert.match(sumsBy(["account", "model"]), /account AS account, model AS model,.*GROUP BY 1, 2/s);
  const row = { sum: { model: "m", requests: 2, cost: "0.000000000001" } };
  assert.deepEqual({ ...parseSum<"model">(row) }, { model: "m", requests: 2, cost: 1n });
});
