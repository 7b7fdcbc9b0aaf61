// The transport over a function of the fetch contract.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Cancel } from "../../../src/core/http/cancel.ts";
import { fetchTransport, type Fetch } from "../../../src/core/upstream/fetch.ts";

const requestOf = (sent: () => void, cancel = new Cancel()) => ({
  method: "POST" as const,
  redirect: "manual" as const,
  headers: { "Content-Type": "application/json" },
  body: "{}",
  cancel,
  connectMs: 1_000,
  sent,
});

describe("fetchTransport", () => {
  it("passes the request on, with a signal, after it was reported as sent", async () => {
    const order: string[] = [];
    const response = { status: 200, headers: { get: () => null }, body: null };
    const fake: Fetch = async (url, init) => {
      order.push(`${init.method} ${url} ${init.body} ${init.redirect}`);
      assert.equal(init.signal.aborted, false);
      return response;
    };
    const request = requestOf(() => order.push("sent"));
    assert.equal(await fetchTransport(fake)("http://lab.test/v1", request), response);
    assert.deepEqual(order, ["sent", "POST http://lab.test/v1 {} manual"]);
  });

  it("rejects with the reason of cancel, over the built-in fetch", async () => {
    const cancel = new Cancel();
    const reason = new Error("left");
    cancel.abort(reason);
    const send = fetchTransport();
    const request = requestOf(() => undefined, cancel);
    await assert.rejects(send("http://127.0.0.1:9/", request), (error) => error === reason);
  });
});
