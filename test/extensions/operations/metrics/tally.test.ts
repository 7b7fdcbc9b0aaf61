// The tally of a process: which accounts have their own errors in GET /metrics, the limits of the
// console's families, the kinds of a provider's faults; and the sums of all processes' growth,
// which never decrease when a process dies or is late, or when a report is repeated.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Report } from "../../../../src/core/extension/places.ts";
import { startCounting } from "../../../../src/extensions/operations/metrics/counting.ts";
import {
  FAULT_KINDS,
  faultKind,
  type FaultKind,
} from "../../../../src/extensions/operations/metrics/faults.ts";
import { expose } from "../../../../src/extensions/operations/metrics/exposition.ts";
import type { Status } from "../../../../src/extensions/scale/installation/index.ts";
import * as tallies from "../../../../src/extensions/operations/metrics/tally.ts";

const REQUESTS = "chat_gateway_requests_total";

/** A tally with this many rows in a family of the console. */
function tallyOf(rows: number): tallies.Tally {
  const tally: tallies.Tally = new Map();
  for (let at = 0; at < rows; at += 1) tallies.count(tally, "key", ["requests", `key ${at}`]);
  return tally;
}

describe("the tally of a process", () => {
  it("names the first 1,000 accounts with errors, and counts all others as `other`", () => {
    const tally: tallies.Tally = new Map();
    const observer = startCounting(tally)(undefined);
    const refuse = (account: string) =>
      observer.responded?.("/v1/chat/completions", {
        ...{ time: "2026-11-22T09:00:00.000Z", request_id: "req_1", duration_ms: 1 },
        ...{ method: "POST", path: "/v1/chat/completions", status: 429 },
        ...{ account, error_code: "rate_limit_exceeded" },
      });
    for (let at = 0; at < 1_005; at += 1) refuse(`account-${at}`);
    refuse("account-7");
    const counts = tally.get("chat_gateway_refusals_total")!;
    const countOf = (account: string) => counts.get(`${account}\0rate_limit_exceeded`)?.count;
    assert.equal(counts.size, 1_001);
    assert.deepEqual(["account-7", "account-999", "other"].map(countOf), [2, 1, 5]);
  });

  it("grows by what was counted since a copy, in histograms too; a decrease means a restart", () => {
    const name = "gen_ai_server_time_to_first_token_seconds";
    const grown = (now: tallies.Tally, before: tallies.Tally | undefined) =>
      tallies
        .rowsIn(tallies.growth(now, before), name)
        .map(([labels, { count: grownBy, sum, buckets }]) => [
          ...[labels.join(), grownBy, sum, buckets.indexOf(1)],
        ]);
    const tally: tallies.Tally = new Map();
    tallies.count(tally, name, ["p", "a"], 0.5);
    tallies.count(tally, name, ["p", "b"], 0.5);
    const before = tallies.merge([tally]);
    tallies.count(tally, name, ["p", "b"], 1_000);
    tallies.count(tally, name, ["p", "c"], 2);
    assert.deepEqual(grown(tally, before), [
      ["p,b", 1, 1_000, -1],
      ["p,c", 1, 2, 10],
    ]);
    const anew: tallies.Tally = new Map();
    tallies.count(anew, name, ["p", "b"], 0.5);
    assert.deepEqual(grown(anew, tally), [["p,b", 1, 0.5, 7]]);
    assert.equal(grown(tally, undefined).length, 3);
  });

  it("of a full console family keeps the first 5,000 rows, and one row for all others", () => {
    const tally = tallyOf(5_005);
    tallies.count(tally, "key", ["requests", "key 7"]);
    const rows = tallies.rowsIn(tally, "key");
    assert.equal(rows.length, 5_001);
    const some = [0, 7, 4_999, 5_000].map((at) => `${rows[at]![0][1]}: ${rows[at]![1].count}`);
    assert.deepEqual(some, ["key 0: 1", "key 7: 2", "key 4999: 1", "undefined: 5"]);
  });

  it("drops rows that are idle for 8 reports if the family is more than half full", () => {
    const left = (rows: number) => {
      const tally = tallyOf(rows);
      for (let report = 1; report <= 9; report += 1) {
        assert.equal(tallies.rowsIn(tally, "key").length, rows, `before report ${report}`);
        tallies.count(tally, "key", ["requests", "key 3"]);
        tallies.dropIdle(tally);
      }
      return tallies.rowsIn(tally, "key").map(([[, key], row]) => [key, row.count]);
    };
    assert.equal(left(2_500).length, 2_500);
    assert.deepEqual(left(2_501), [["key 3", 10]]);
  });

  it("never drops a row of GET /metrics", () => {
    const tally: tallies.Tally = new Map();
    for (let at = 0; at < 5_005; at += 1)
      tallies.count(tally, REQUESTS, ["/", "200", `model ${at}`]);
    for (let report = 1; report <= 20; report += 1) tallies.dropIdle(tally);
    assert.equal(tallies.rowsIn(tally, REQUESTS).length, 5_005);
    const status = { limits: {}, models: [] as Status["models"] } as Status;
    const steps = expose(tally, status, {});
    for (let row = 1; row <= 5_005; row += 1)
      assert.equal(steps.next().done, false, "the text can pause, and requests go on, after a row");
    assert.equal(String(steps.next().value).match(/^chat_gateway_requests/gm)?.length, 5_005);
  });
});

/**
 * The report of a process that counted this many requests and dropped this many access log lines.
 */
function reportOf(process: string, requests: number, access = 0): Report {
  const tally: tallies.Tally = new Map();
  for (let at = 0; at < requests; at += 1) {
    tallies.count(tally, REQUESTS, ["/", "200", "m"]);
    tallies.count(tally, "account", ["ok", `account ${at}`]);
  }
  return {
    ...{ draining: false, inFlight: 0, droppedLines: { access, diagnostics: 2 * access } },
    extensions: { metrics: { process, tally } },
  };
}

function bench() {
  const growthIn = tallies.createGrowth(tallies.forPrometheus);
  let total: tallies.Tally = new Map();
  return (...reports: readonly Report[]) => {
    total = tallies.merge([total, growthIn({ reports })]);
    assert.equal(tallies.rowsIn(total, "account").length, 0, "these are the history's");
    const dropped = tallies.rowsIn(total, "chat_gateway_log_lines_dropped_total");
    const [[, access = undefined] = [], [, diagnostics = undefined] = []] = dropped;
    assert.equal(diagnostics?.sum, access && 2 * access.sum);
    return [tallies.rowsIn(total, REQUESTS)[0]?.[1].sum, access?.sum];
  };
}

describe("the sums of all processes' growth", () => {
  it("keep the counts of a late or dead process", () => {
    const take = bench();
    assert.deepEqual(take(reportOf("a", 3, 1), reportOf("b", 4, 10)), [7, 11]);
    assert.deepEqual(take(reportOf("a", 5, 1)), [9, 11], "b is late");
    assert.deepEqual(take(reportOf("a", 5, 1), reportOf("b", 6, 12)), [11, 13]);
    assert.deepEqual(take(reportOf("a", 5, 1), reportOf("c", 1, 1)), [12, 14], "b has died");
  });

  it("have no row for a log that dropped nothing, and count a repeated report once", () => {
    const take = bench();
    const report = reportOf("a", 2);
    assert.deepEqual(take(report), [2, undefined]);
    assert.deepEqual(take(report), [2, undefined]);
  });

  it("keep the counts of many dead processes, and of one that outlives them", () => {
    const take = bench();
    for (let dead = 1; dead <= 1_100; dead += 1) {
      const sums = take(reportOf(`dead ${dead}`, 2, 1), reportOf("a", 7, 1));
      assert.deepEqual(sums, [2 * dead + 7, dead + 1]);
    }
  });
});

const CASES: readonly (readonly [outcome: string, status: number | undefined, FaultKind])[] = [
  ["upstream_timeout", undefined, "timeout"],
  ["upstream_timeout", 200, "timeout"],
  ["model_overloaded", 429, "overloaded"],
  ["model_unavailable", undefined, "unreachable"],
  ["model_unavailable", 401, "refused"],
  ["upstream_error", 500, "server"],
  ["upstream_error", undefined, "connection"],
  ["upstream_error", 200, "reply"],
  ["upstream_error", 201, "reply"],
  ["context_length_exceeded", 400, "request"],
  ["content_filter", 400, "request"],
  ["upstream_rejected", 422, "request"],
];

describe("the kind of a provider's fault", () => {
  for (const [outcome, status, kind] of CASES)
    it(`of ${outcome} with status ${status} is ${kind}`, () => {
      assert.equal(faultKind({ model: "m", provider: "p", outcome, status, duration_ms: 1 }), kind);
    });

  it("is tested here for every kind", () => {
    const kinds = new Set(CASES.map(([, , kind]) => kind));
    assert.deepEqual([...kinds].sort(), Object.keys(FAULT_KINDS).sort());
  });

  for (const outcome of ["completed", "cancelled", "internal_error", "server_overloaded"])
    it(`does not exist for an attempt that ended as ${outcome}`, () => {
      const attempt = { model: "m", provider: "p", outcome, duration_ms: 1 };
      assert.equal(faultKind(attempt), undefined);
    });
});
