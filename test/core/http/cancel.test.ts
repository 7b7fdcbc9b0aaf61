// Stopping with a reason.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Cancel } from "../../../src/core/http/cancel.ts";

describe("Cancel", () => {
  it("calls its listeners once, late ones and those of listeners too, and keeps the first reason", () => {
    const cancel = new Cancel();
    const calls: string[] = [];
    cancel.onAbort(() => assert.fail("it was removed"))();
    cancel.onAbort(() => {
      calls.push("first");
      cancel.onAbort(() => calls.push("nested"));
    });
    cancel.abort("reason");
    cancel.abort("second");
    cancel.onAbort(() => calls.push("late"));
    assert.deepEqual(calls, ["first", "nested", "late"]);
    assert.deepEqual([cancel.aborted, cancel.reason], [true, "reason"]);
  });

  it("is an AbortSignal with the same reason, also of what was aborted before", () => {
    const early = new Cancel();
    const { signal } = early;
    early.abort("left");
    const late = new Cancel();
    late.abort("left");
    for (const each of [signal, late.signal])
      assert.deepEqual([each.aborted, each.reason], [true, "left"]);
  });
});
