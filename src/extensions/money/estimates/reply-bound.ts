// How long a model's reply can be. A budget holds one bound for all candidates, which the one with
// the longest replies decides. For each other model the hold pays only as far as that model's own
// replies go, so the bound that is sent to it is lowered to that.
import type { ChatRequest } from "../../../core/openai/request.ts";
import type { Attempt } from "../../../core/routing/attempt.ts";
import type { Complete } from "../../../core/routing/fallback.ts";
import type { Model } from "../../../core/routing/model.ts";

/** For models without a known bound: most providers refuse a request for too many tokens. */
const UNKNOWN_OUTPUT = 8_192;

/** The most tokens of a reply of this model, where its client states no bound. */
export function longestReply({ traits, contextTokens = Infinity }: Model): number {
  const { max_output_tokens, default_output_tokens = UNKNOWN_OUTPUT } = traits;
  return max_output_tokens ?? Math.min(default_output_tokens, contextTokens);
}

/** Whether the reply is bounded, and not by its client. */
const isBoundByBudget = ({ max_tokens, max_completion_tokens, maxTokens }: ChatRequest): boolean =>
  maxTokens !== undefined && max_tokens === undefined && max_completion_tokens === undefined;

/** Completes requests with the bound of a budget lowered to each model's own maximum. */
export const aroundBounds =
  (complete: Complete): Complete =>
  (chat, candidates, deliver, given) => {
    if (!isBoundByBudget(chat)) return complete(chat, candidates, deliver, given);
    const attempt = within(given.attempt);
    return complete(chat, candidates, deliver, { ...given, attempt });
  };

const within =
  (attempt: Attempt): Attempt =>
  (chat, serving, deliver, options) => {
    const maxTokens = Math.min(chat.maxTokens ?? Infinity, longestReply(serving.model));
    return attempt({ ...chat, maxTokens }, serving, deliver, options);
  };
