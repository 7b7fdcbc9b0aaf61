// The kinds of a provider's faults, by what the attempt left behind.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  FAULT_KINDS,
  faultKind,
  type FaultKind,
} from "../../../../src/extensions/operations/metrics/faults.ts";

const CASES: readonly (readonly [outcome: string, status: number | undefined, FaultKind])[] = [
  ["upstream_timeout", undefined, "timeout"],
  ["upstream_timeout", 200, "timeout"],
  ["model_overloaded", 429, "overloaded"],
  ["model_unavailable", undefined, "unreachable"],
  ["model_unavailable", 401, "refused"],
  ["upstream_error", 500, "server"],
  ["upstream_error", undefined, "connection"],
  ["upstream_error", 200, "reply"],
  ["context_length_exceeded", 400, "request"],
  ["content_filter", 400, "request"],
  ["upstream_rejected", 422, "request"],
];

describe("the kind of a provider's fault", () => {
  for (const [outcome, status, kind] of CASES)
    it(`of ${outcome} with status ${status} is ${kind}`, () => {
      assert.equal(faultKind({ model: "m", provider: "p", outcome, status, duration_ms: 1 }), kind);
    });

  it("has a case here for each kind that there is", () => {
    const kinds = new Set(CASES.map(([, , kind]) => kind));
    assert.deepEqual([...kinds].sort(), Object.keys(FAULT_KINDS).sort());
  });

  for (const outcome of ["completed", "cancelled", "internal_error", "server_overloaded"])
    it(`of an attempt that ended as ${outcome} is none`, () => {
      const attempt = { model: "m", provider: "p", outcome, duration_ms: 1 };
      assert.equal(faultKind(attempt), undefined);
    });
});
