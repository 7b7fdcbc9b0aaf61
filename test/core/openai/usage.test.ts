// Token statistics from a provider's counts.

import assert from "node:assert/strict";
import { it } from "node:test";
import { makeUsage } from "../../../src/core/openai/usage.ts";

it("computes sums and shares from the four counts", () => {
  assert.deepEqual(makeUsage({ prompt: 10, completion: 5, cacheHit: 4, reasoning: 3 }), {
    prompt_tokens: 10,
    completion_tokens: 5,
    total_tokens: 15,
    prompt_cache_hit_tokens: 4,
    prompt_cache_miss_tokens: 6,
    prompt_tokens_details: { cached_tokens: 4 },
    completion_tokens_details: { reasoning_tokens: 3 },
  });
});

it("bounds a share by its whole", () => {
  const usage = makeUsage({ prompt: 1, completion: 2, cacheHit: 9, reasoning: 9 });
  assert.deepEqual(
    [usage.prompt_cache_hit_tokens, usage.prompt_cache_miss_tokens],
    [1, 0],
    "cache hits are at most the prompt",
  );
  assert.equal(usage.completion_tokens_details.reasoning_tokens, 2);
});

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
