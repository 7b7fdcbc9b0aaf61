// When the line of a response is written to the access log.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { LiveExchange } from "../../../src/core/http/connection.ts";
import { createResponseLog } from "../../../src/core/http/access-log.ts";
import type { AccessRecord } from "../../../src/core/http/exchange.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { within } from "../../support/wait.ts";

function start() {
  const records: AccessRecord[] = [];
  const clock = createFakeClock(Date.UTC(2025, 0, 2, 3, 4, 5));
  const log = createResponseLog((record) => records.push(record), clock);
  /** An exchange that began now. */
  const exchange = (over: Partial<LiveExchange> = {}): LiveExchange => {
    const req = { method: "POST", url: "/v1/chat/completions?x" };
    const base = { requestId: "req_1", req, log: {}, startedAt: clock.monotonic() };
    return { ...base, delivered: false, handled: false, ...over } as unknown as LiveExchange;
  };
  return { records, clock, log, exchange };
}

describe("response log", () => {
  it("writes the line of a whole response at its end", () => {
    const { records, clock, log, exchange } = start();
    const whole = exchange({ delivered: true });
    clock.advance(12.3456);
    log.ended(whole, 200);
    const { time, path, duration_ms } = records[0]!;
    assert.deepEqual(
      [time, path, duration_ms],
      ["2025-01-02T03:04:05.012Z", "/v1/chat/completions", 12.346],
    );
    assert.equal(clock.pending(), 0);
  });

  it("settles when the last line is written, or when the time is over", async () => {
    const { records, clock, log, exchange } = start();
    await within(log.settle(1_000), "nothing to wait for");
    const first = exchange();
    log.ended(first, 499);
    log.ended(exchange(), 499);
    const settled = log.settle(1_000);
    clock.advance(500);
    first.onHandled?.();
    assert.equal(records.length, 1);
    clock.advance(500);
    await within(settled, "the last line");
    assert.equal(records.length, 2);
    assert.equal(clock.pending(), 0);
  });
});
