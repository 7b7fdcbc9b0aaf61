// What replies are made of, as types: SPEC.md "Chat completion response", WIRE.md 2 and 3. Their schemas stand in openapi.json.
import type { makeUsage } from "./reply.ts";

/** Token statistics. hit + miss = prompt, prompt + completion = total; reasoning tokens are inside completion. WIRE.md 2. */
export type Usage = Readonly<ReturnType<typeof makeUsage>>;
interface Token { readonly token: string; readonly logprob: number; readonly bytes: readonly number[] | null }
export interface TokenLogprob extends Token { readonly top_logprobs: readonly Token[] }
export type FinishReason = "stop" | "length" | "tool_calls" | "content_filter";
