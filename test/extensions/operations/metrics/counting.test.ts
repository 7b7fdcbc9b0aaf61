// Which accounts the errors in GET /metrics are counted for.

import assert from "node:assert/strict";
import { it } from "node:test";
import { startCounting } from "../../../../src/extensions/operations/metrics/counting.ts";

it("the first 1,000 accounts with errors are named, and all further ones are `other`", () => {
  const { observer, samples } = startCounting();
  const refuse = (account: string) =>
    observer.responded?.("/v1/chat/completions", {
      time: "2026-11-22T09:00:00.000Z",
      request_id: "req_1",
      method: "POST",
      path: "/v1/chat/completions",
      status: 429,
      duration_ms: 1,
      account,
      error_code: "rate_limit_exceeded",
    });
  for (let at = 0; at < 1_005; at += 1) refuse(`account-${at}`);
  refuse("account-7");
  const counts = samples.get("chat_gateway_refusals_total")!;
  const countOf = (account: string) => counts.get(`${account}\0rate_limit_exceeded`)?.at(-1);
  assert.equal(counts.size, 1_001);
  assert.deepEqual(["account-7", "account-999", "other"].map(countOf), [2, 1, 5]);
});
