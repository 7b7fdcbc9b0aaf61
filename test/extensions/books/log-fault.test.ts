// Why the spend log cannot be written, and what is reported of it.

import assert from "node:assert/strict";
import { it } from "node:test";
import { ApiError } from "../../../src/core/openai/errors.ts";
import { createLogFault } from "../../../src/extensions/books/spend-log/log-fault.ts";

function create() {
  const events: unknown[] = [];
  const fault = createLogFault((event) => {
    events.push(event["event"]);
  });
  return { fault, events };
}

it("begins in a fault that is not reported, and neither is its end", () => {
  const { fault, events } = create();
  assert.equal(fault.current(), "not started");
  fault.recovered();
  assert.deepEqual([fault.current(), events], [null, []]);
});

it("reports a first attempt that fails, and that the log can be written later", () => {
  const { fault, events } = create();
  fault.failed(new Error("disk full"));
  fault.started();
  fault.failed(new Error("still full"));
  assert.deepEqual([fault.current(), events], ["still full", ["spend_log_failed"]]);
  fault.recovered();
  assert.deepEqual(events, ["spend_log_failed", "spend_log_recovered"]);
});

it("returns the 503 of a request, with the cause for the log only", () => {
  const { fault } = create();
  const error = fault.failed(new Error("disk full"));
  assert.ok(error instanceof ApiError);
  assert.deepEqual([error.code, error.headers], ["server_overloaded", { "Retry-After": "1" }]);
  assert.equal((error.cause as Error).message, "disk full");
  assert.ok(!error.message.includes("disk"));
});
