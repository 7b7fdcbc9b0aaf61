// Token statistics from a provider's counts, and log probabilities from its JSON.

import assert from "node:assert/strict";
import { it } from "node:test";
import { tokenLogprob } from "../../../src/core/openai/parts.ts";
import { makeUsage } from "../../../src/core/openai/usage.ts";

it("states what was written to a cache as a part of the misses, and only if something was", () => {
  const counts = { prompt: 10, completion: 5, cacheHit: 4, reasoning: 0 };
  const details = (written: object) => makeUsage({ ...counts, ...written }).prompt_tokens_details;
  assert.deepEqual(details({ cacheWrite: 5, cacheWrite1h: 2 }), {
    cached_tokens: 4,
    cache_write_tokens: 5,
    cache_write_1h_tokens: 2,
  });
  assert.deepEqual(details({ cacheWrite: 6 }), { cached_tokens: 4, cache_write_tokens: 6 });
  assert.deepEqual(details({ cacheWrite: 0, cacheWrite1h: 2 }), { cached_tokens: 4 });
  assert.deepEqual(
    details({ cacheWrite: 9, cacheWrite1h: 9 }),
    { cached_tokens: 4, cache_write_tokens: 6, cache_write_1h_tokens: 6 },
    "at most the misses",
  );
});

it("keeps what a token of log probabilities states, and fills in what is missing or of the wrong type", () => {
  const token = { token: "a", logprob: -0.5, bytes: [97] };
  const stated = { ...token, top_logprobs: [token, { ...token, logprob: -2 }] };
  assert.deepEqual(tokenLogprob(stated), stated);
  const empty = { token: "", logprob: -9999, bytes: null };
  for (const json of [undefined, null, 7, { token: 1, logprob: NaN, bytes: "x" }])
    assert.deepEqual(tokenLogprob(json), { ...empty, top_logprobs: [] });
  const { bytes } = tokenLogprob({ bytes: [1, -1, "x", 2] });
  assert.deepEqual(bytes, [1, 0, 0, 2]);
});
