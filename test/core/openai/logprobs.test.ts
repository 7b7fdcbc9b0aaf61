// Log probabilities from a provider's JSON, whatever it holds.

import assert from "node:assert/strict";
import { it } from "node:test";
import { tokenLogprob } from "../../../src/core/openai/parts.ts";

it("keeps what a token states", () => {
  const token = { token: "a", logprob: -0.5, bytes: [97] };
  const stated = { ...token, top_logprobs: [token, { ...token, logprob: -2 }] };
  assert.deepEqual(tokenLogprob(stated), stated);
});

it("fills in what is missing or of the wrong type", () => {
  const empty = { token: "", logprob: -9999, bytes: null };
  for (const json of [undefined, null, 7, { token: 1, logprob: NaN, bytes: "x" }])
    assert.deepEqual(tokenLogprob(json), { ...empty, top_logprobs: [] });
  const { bytes } = tokenLogprob({ bytes: [1, -1, "x", 2] });
  assert.deepEqual(bytes, [1, 0, 0, 2]);
});
