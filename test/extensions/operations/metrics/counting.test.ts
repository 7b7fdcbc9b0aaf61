// The tally of a process: which accounts have errors of their own in GET /metrics, what growth is,
// and what bounds the families of the console.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { startCounting } from "../../../../src/extensions/operations/metrics/counting.ts";
import {
  count,
  dropIdle,
  growth,
  merge,
  rowsIn,
  type Tally,
} from "../../../../src/extensions/operations/metrics/tally.ts";

describe("the tally of a process", () => {
  it("the first 1,000 accounts with errors are named, and all further ones are `other`", () => {
    const tally: Tally = new Map();
    const observer = startCounting(tally);
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

  it("grows by what was counted since a copy, in histograms too; what fell began anew", () => {
    const name = "gen_ai_server_time_to_first_token_seconds";
    const grown = (now: Tally, before: Tally | undefined) =>
      rowsIn(growth(now, before), name).map(([labels, row]) => [
        labels.join(),
        row.count,
        row.sum,
        row.buckets.indexOf(1),
      ]);
    const tally: Tally = new Map();
    count(tally, name, ["p", "a"], 0.5);
    count(tally, name, ["p", "b"], 0.5);
    const before = merge([tally]);
    count(tally, name, ["p", "b"], 1_000);
    count(tally, name, ["p", "c"], 2);
    assert.deepEqual(grown(tally, before), [
      ["p,b", 1, 1_000, -1],
      ["p,c", 1, 2, 10],
    ]);
    const anew: Tally = new Map();
    count(anew, name, ["p", "b"], 0.5);
    assert.deepEqual(grown(anew, tally), [["p,b", 1, 0.5, 7]]);
    assert.equal(grown(tally, undefined).length, 3);
  });

  it("of a full family of the console the first 5,000 rows stay, and one has all others", () => {
    const tally: Tally = new Map();
    for (let at = 0; at < 5_005; at += 1) count(tally, "key", ["requests", `key ${at}`]);
    count(tally, "key", ["requests", "key 7"]);
    const rows = rowsIn(tally, "key");
    assert.equal(rows.length, 5_001);
    assert.deepEqual(
      [0, 7, 4_999, 5_000].map((at) => [rows[at]![0][1], rows[at]![1].count]),
      [
        ["key 0", 1],
        ["key 7", 2],
        ["key 4999", 1],
        [undefined, 5],
      ],
    );
  });

  it("drops rows that are idle for 8 reports, if the family is more than half full", () => {
    const left = (rows: number) => {
      const tally: Tally = new Map();
      for (let at = 0; at < rows; at += 1) count(tally, "key", ["requests", `key ${at}`]);
      for (let report = 1; report <= 9; report += 1) {
        assert.equal(rowsIn(tally, "key").length, rows, `before report ${report}`);
        count(tally, "key", ["requests", "key 3"]);
        dropIdle(tally);
      }
      return rowsIn(tally, "key").map(([[, key], row]) => [key, row.count]);
    };
    assert.equal(left(2_500).length, 2_500);
    assert.deepEqual(left(2_501), [["key 3", 10]]);
  });

  it("never drops a row of GET /metrics", () => {
    const tally: Tally = new Map();
    for (let at = 0; at < 5_005; at += 1)
      count(tally, "chat_gateway_requests_total", ["/", "200", `model ${at}`]);
    for (let report = 1; report <= 20; report += 1) dropIdle(tally);
    assert.equal(rowsIn(tally, "chat_gateway_requests_total").length, 5_005);
  });
});
