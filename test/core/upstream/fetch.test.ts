// The transport over a function of the fetch contract.

import assert from "node:assert/strict";
import { it } from "node:test";
import { Cancel } from "../../../src/core/http/cancel.ts";
import { fetchTransport, type Fetch } from "../../../src/core/upstream/fetch.ts";

it("fetch gets the request after it was reported as sent, and rejects with the reason of cancel", async () => {
  const order: string[] = [];
  const cancel = new Cancel();
  const request = {
    method: "POST" as const,
    redirect: "manual" as const,
    headers: { "Content-Type": "application/json" },
    body: "{}",
    cancel,
    connectMs: 1_000,
    sent: () => order.push("sent"),
  };
  const response = { status: 200, headers: { get: () => null }, body: null };
  const fake: Fetch = async (url, init) => {
    order.push(`${init.method} ${url} ${init.body} ${init.redirect} ${init.signal.aborted}`);
    return response;
  };
  assert.equal(await fetchTransport(fake)("http://lab.test/v1", request), response);
  assert.deepEqual(order, ["sent", "POST http://lab.test/v1 {} manual false"]);

  const reason = new Error("left");
  cancel.abort(reason);
  const refused = fetchTransport()("http://127.0.0.1:9/", request);
  await assert.rejects(refused, (error) => error === reason);
});
