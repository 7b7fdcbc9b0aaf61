// The growth of all processes from look to look: no sum of it falls when one dies, is late, or comes
// twice.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Report } from "../../../../src/core/extension/places.ts";
import {
  count,
  createGrowth,
  forPrometheus,
  merge,
  rowsIn,
  type Tally,
} from "../../../../src/extensions/operations/metrics/tally.ts";

const REQUESTS = "chat_gateway_requests_total";

/** The report of a process that has counted so many requests, and dropped so many lines. */
function reportOf(process: string, requests: number, access = 0): Report {
  const tally: Tally = new Map();
  for (let at = 0; at < requests; at += 1) {
    count(tally, REQUESTS, ["/", "200", "m"]);
    count(tally, "account", ["ok", `account ${at}`]);
  }
  return {
    ...{ draining: false, inFlight: 0, droppedLines: { access, diagnostics: 2 * access } },
    extensions: { metrics: { process, tally } },
  };
}

function bench() {
  const growthIn = createGrowth(forPrometheus);
  let total: Tally = new Map();
  return (...reports: readonly Report[]) => {
    total = merge([total, growthIn({ reports })]);
    assert.equal(rowsIn(total, "account").length, 0, "these are the history's");
    const dropped = rowsIn(total, "chat_gateway_log_lines_dropped_total");
    const [[, access = undefined] = [], [, diagnostics = undefined] = []] = dropped;
    assert.equal(diagnostics?.sum, access && 2 * access.sum);
    return [rowsIn(total, REQUESTS)[0]?.[1].sum, access?.sum];
  };
}

describe("the sums of what all processes grow by", () => {
  it("keep what a process has counted that is late or dead", () => {
    const take = bench();
    assert.deepEqual(take(reportOf("a", 3, 1), reportOf("b", 4, 10)), [7, 11]);
    assert.deepEqual(take(reportOf("a", 5, 1)), [9, 11], "b is late");
    assert.deepEqual(take(reportOf("a", 5, 1), reportOf("b", 6, 12)), [11, 13]);
    assert.deepEqual(take(reportOf("a", 5, 1), reportOf("c", 1, 1)), [12, 14], "b has died");
  });

  it("have no row of a log that has dropped nothing, and count the same report once", () => {
    const take = bench();
    const report = reportOf("a", 2);
    assert.deepEqual(take(report), [2, undefined]);
    assert.deepEqual(take(report), [2, undefined]);
  });

  it("keep all of many that have died, and what one counts that outlives them", () => {
    const take = bench();
    for (let dead = 1; dead <= 1_100; dead += 1)
      assert.deepEqual(take(reportOf(`dead ${dead}`, 2, 1), reportOf("a", 7, 1)), [
        2 * dead + 7,
        dead + 1,
      ]);
  });
});
