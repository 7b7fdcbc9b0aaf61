// Token counts: what a provider states, and what the client is billed for. wire.md "Token counts".

/** Token statistics of a reply. All counts are in tokens. */
export interface Usage {
  /** Includes the tokens from the provider's cache. */
  readonly prompt_tokens: number;
  /** Reasoning tokens included. */
  readonly completion_tokens: number;
  /** prompt_tokens + completion_tokens. */
  readonly total_tokens: number;
  /** The part of the prompt that the provider had in its cache. */
  readonly prompt_cache_hit_tokens: number;
  /** prompt_tokens - prompt_cache_hit_tokens. */
  readonly prompt_cache_miss_tokens: number;
  /** The cache hits again, where OpenAI's clients look for them. */
  readonly prompt_tokens_details: {
    readonly cached_tokens: number;
    /** The part of the cache misses that the provider wrote to its cache. Absent: 0. */
    readonly cache_write_tokens?: number;
    /** The part of cache_write_tokens that the provider keeps for an hour. Absent: 0. */
    readonly cache_write_1h_tokens?: number;
  };
  /** The part of completion_tokens that was thinking, shown or not. */
  readonly completion_tokens_details: { readonly reasoning_tokens: number };
}

/** The token figures of one event of a provider. */
export interface UsageReport {
  /** Undefined: the event does not state it. */
  readonly prompt: number | undefined;
  /** Undefined: the event does not state it. */
  readonly completion: number | undefined;
  /** The part of `prompt` that was cached. 0 where the event states none. */
  readonly cacheHit: number;
  /** The part of `completion` that was reasoning. 0 where the event states none. */
  readonly reasoning: number;
  /** The part of `prompt` that the provider wrote to its cache. Absent: 0. */
  readonly cacheWrite?: number;
  /** The part of `cacheWrite` that the provider keeps for an hour. Absent: 0. */
  readonly cacheWrite1h?: number;
}

/**
 * Usage from a provider's counts. Sums and shares are computed here and never taken from the
 * provider.
 */
export function makeUsage(counts: { readonly [name in keyof UsageReport]: number }): Usage {
  const { prompt, completion, cacheHit, reasoning, cacheWrite = 0, cacheWrite1h = 0 } = counts;
  const hit = Math.min(cacheHit, prompt);
  const write = Math.min(cacheWrite, prompt - hit);
  const write1h = Math.min(cacheWrite1h, write);
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    prompt_cache_hit_tokens: hit,
    prompt_cache_miss_tokens: prompt - hit,
    prompt_tokens_details: {
      cached_tokens: hit,
      ...(write > 0 && { cache_write_tokens: write }),
      ...(write1h > 0 && { cache_write_1h_tokens: write1h }),
    },
    completion_tokens_details: { reasoning_tokens: Math.min(reasoning, completion) },
  };
}
