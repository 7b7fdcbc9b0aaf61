// Stopping with a reason.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Cancel } from "../../../src/core/http/cancel.ts";

describe("Cancel", () => {
  it("calls its listeners once, and keeps the first reason", () => {
    const cancel = new Cancel();
    let calls = 0;
    cancel.onAbort(() => (calls += 1));
    cancel.abort("first");
    cancel.abort("second");
    assert.deepEqual([calls, cancel.aborted, cancel.reason], [1, true, "first"]);
  });

  it("calls a listener at once if it is aborted already", () => {
    const cancel = new Cancel();
    cancel.abort("done");
    let reason: unknown;
    cancel.onAbort(() => (reason = cancel.reason));
    assert.equal(reason, "done");
  });

  it("calls a listener once that another listener adds", () => {
    const cancel = new Cancel();
    let calls = 0;
    cancel.onAbort(() => cancel.onAbort(() => (calls += 1)));
    cancel.abort();
    assert.equal(calls, 1);
  });

  it("does not call a listener that was removed", () => {
    const cancel = new Cancel();
    const remove = cancel.onAbort(() => assert.fail("it was removed"));
    remove();
    cancel.abort();
  });

  it("is an AbortSignal with the same reason, before and after the abort", () => {
    const early = new Cancel();
    const { signal } = early;
    assert.equal(signal.aborted, false);
    assert.equal(early.signal, signal);
    const reason = new Error("left");
    early.abort(reason);
    assert.deepEqual([signal.aborted, signal.reason], [true, reason]);
    const late = new Cancel();
    late.abort(reason);
    assert.deepEqual([late.signal.aborted, late.signal.reason], [true, reason]);
  });
});
