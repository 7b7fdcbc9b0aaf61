// How long a model's reply can be, and that a bound which a budget has set is never beyond that.
// One bound is held for all candidates, and the one with the longest replies decides it. Another
// one is paid for as far as its own replies go, and so it must not be told more.
import type { ChatRequest } from "../../../core/openai/request.ts";
import { attempt as plainAttempt } from "../../../core/routing/attempt.ts";
import type { Complete } from "../../../core/routing/fallback.ts";
import type { Model } from "../../../core/routing/model.ts";

type Attempt = typeof plainAttempt;

/** What models take of which no bound is known: most providers refuse a request for too much. */
const UNKNOWN_OUTPUT = 8_192;

/** The most tokens of a reply of this model, where its client states no bound. */
export function longestReply({ traits, contextTokens = Infinity }: Model): number {
  const { max_output_tokens, default_output_tokens = UNKNOWN_OUTPUT } = traits;
  return max_output_tokens ?? Math.min(default_output_tokens, contextTokens);
}

/** Whether the reply is bounded, and not by its client. */
const isBoundByBudget = ({ max_tokens, max_completion_tokens, maxTokens }: ChatRequest): boolean =>
  maxTokens !== undefined && max_tokens === undefined && max_completion_tokens === undefined;

/** Completes requests so that each model is sent no more of such a bound than it can say. */
export const aroundBounds =
  (complete: Complete): Complete =>
  (chat, candidates, deliver, given) => {
    if (!isBoundByBudget(chat)) return complete(chat, candidates, deliver, given);
    const attempt = within(given.attempt ?? plainAttempt);
    return complete(chat, candidates, deliver, { ...given, attempt });
  };

const within =
  (attempt: Attempt): Attempt =>
  (chat, serving, deliver, options) => {
    const maxTokens = Math.min(chat.maxTokens ?? Infinity, longestReply(serving.model));
    return attempt({ ...chat, maxTokens }, serving, deliver, options);
  };
