// A failed attempt: who has to act, and whether the breaker counts it.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ProviderError } from "../../../src/core/providers/provider-error.ts";

describe("a ProviderError", () => {
  it("is the provider's by default, and counts for the breaker", () => {
    const { blame, countsForBreaker } = new ProviderError("upstream_error", "it failed");
    assert.deepEqual([blame, countsForBreaker], ["provider", true]);
  });

  it("is the operator's if the provider refuses the gateway", () => {
    const { blame } = new ProviderError("model_unavailable", "no", { operator: "key" });
    assert.equal(blame, "operator");
  });

  for (const code of ["context_length_exceeded", "content_filter", "upstream_rejected"] as const)
    it(`is the client's with the code ${code}, and never counts`, () => {
      const { blame, countsForBreaker } = new ProviderError(code, "no", { operator: "key" });
      assert.deepEqual([blame, countsForBreaker], ["client", false]);
    });

  it("does not count if the content causes it", () =>
    assert.ok(!new ProviderError("upstream_error", "no", { fromContent: true }).countsForBreaker));

  it("keeps its cause", () => {
    const cause = new Error("reset");
    assert.equal(new ProviderError("upstream_error", "no", { cause }).cause, cause);
  });
});
