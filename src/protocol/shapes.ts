// What replies are made of, as types: SPEC.md "Chat completion response", WIRE.md 2 and 3. Their schemas stand in openapi.json.

/** Token statistics. hit + miss = prompt, prompt + completion = total; reasoning tokens are inside completion. WIRE.md 2. */
type Counts = "prompt_tokens" | "completion_tokens" | "total_tokens" | "prompt_cache_hit_tokens" | "prompt_cache_miss_tokens";
export type Usage = { readonly [name in Counts]: number } & {
  readonly prompt_tokens_details: { readonly cached_tokens: number }; readonly completion_tokens_details: { readonly reasoning_tokens: number };
};
interface Token { readonly token: string; readonly logprob: number; readonly bytes: readonly number[] | null }
export interface TokenLogprob extends Token { readonly top_logprobs: readonly Token[] }
export type FinishReason = "stop" | "length" | "tool_calls" | "content_filter";
