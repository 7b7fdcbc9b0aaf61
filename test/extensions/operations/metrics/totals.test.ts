// The sums of all processes: no counter falls when one dies, is late, or comes twice.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Report } from "../../../../src/core/extension/places.ts";
import { count, rowsIn, type Tally } from "../../../../src/extensions/operations/metrics/tally.ts";
import { createTotals } from "../../../../src/extensions/operations/metrics/totals.ts";

const REQUESTS = "chat_gateway_requests_total";

/** The report of a process that has counted so many requests, and dropped so many lines. */
function reportOf(process: string, number: number, requests: number, access = 0): Report {
  const tally: Tally = new Map();
  for (let at = 0; at < requests; at += 1) {
    count(tally, REQUESTS, ["/", "200", "m"]);
    count(tally, "account", ["ok", `account ${at}`]);
  }
  return {
    ...{ draining: false, inFlight: 0, droppedLines: { access, diagnostics: 2 * access } },
    extensions: { metrics: { process, number, tally } },
  };
}

function bench(maxProcesses?: number) {
  const totals = createTotals(maxProcesses);
  return (...reports: readonly Report[]) => {
    totals.take(reports);
    const { tally, dropped } = totals.sums();
    assert.equal(rowsIn(tally, "account").length, 0, "these are the history's");
    assert.equal(dropped.diagnostics, 2 * dropped.access);
    return [rowsIn(tally, REQUESTS)[0]?.[1].sum, dropped.access];
  };
}

describe("the sums of all processes", () => {
  it("keep what a process has counted that is late or dead", () => {
    const take = bench();
    assert.deepEqual(take(reportOf("a", 1, 3, 1), reportOf("b", 1, 4, 10)), [7, 11]);
    assert.deepEqual(take(reportOf("a", 2, 5, 1)), [9, 11], "b is late");
    assert.deepEqual(take(reportOf("a", 3, 5, 1), reportOf("b", 3, 6, 12)), [11, 13]);
    assert.deepEqual(take(reportOf("a", 4, 5, 1), reportOf("c", 1, 1, 1)), [12, 14], "b has died");
  });

  it("take no report that another has overtaken", () => {
    const take = bench();
    assert.deepEqual(take(reportOf("a", 2, 5, 2)), [5, 2]);
    assert.deepEqual(take(reportOf("a", 1, 3, 1)), [5, 2]);
    assert.deepEqual(take(reportOf("a", 3, 6, 3)), [6, 3]);
  });

  it("keep all of many that have died, as the share of one", () => {
    const take = bench(3);
    for (let dead = 1; dead <= 50; dead += 1)
      assert.deepEqual(take(reportOf(`dead ${dead}`, 1, 2, 1), reportOf("a", dead, 7, 1)), [
        2 * dead + 7,
        dead + 1,
      ]);
  });
});
