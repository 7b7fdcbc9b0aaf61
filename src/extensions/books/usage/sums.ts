// Sums of usage records.
import type { Sum } from "../../usage-records/index.ts";

/** The sum of no records. */
export const emptySum = (): Sum => ({
  requests: 0,
  prompt_cache_hit_tokens: 0,
  prompt_cache_miss_tokens: 0,
  cache_write_tokens: 0,
  completion_tokens: 0,
  reasoning_tokens: 0,
  cost: 0n,
});

/** Adds `part` to `sum`. */
export function addToSum(sum: Sum, part: Sum): void {
  sum.requests += part.requests;
  sum.prompt_cache_hit_tokens += part.prompt_cache_hit_tokens;
  sum.prompt_cache_miss_tokens += part.prompt_cache_miss_tokens;
  sum.cache_write_tokens += part.cache_write_tokens;
  sum.completion_tokens += part.completion_tokens;
  sum.reasoning_tokens += part.reasoning_tokens;
  sum.cost += part.cost;
}
