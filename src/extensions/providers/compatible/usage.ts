// The token counts of servers that speak OpenAI's format: several places, names and ways to count
// hidden thinking. wire.md "Token counts".
import type { UsageReport } from "../../../core/openai/usage.ts";
import { choiceIn } from "../../../core/providers/openai/decoder.ts";
import { asObject, asTokenCount, tokenCounter } from "../../../core/schema/untrusted-json.ts";

/**
 * The usage of an event, in any of the three places where providers put it. Undefined: it states
 * none.
 */
export function usageIn(json: unknown, hiddenThinkingInTotal: boolean): UsageReport | undefined {
  const event = asObject(json);
  for (const holder of [event, choiceIn(event), asObject(event["x_groq"])]) {
    const usage = readUsage(holder["usage"], hiddenThinkingInTotal);
    if (usage) return usage;
  }
  return undefined;
}

function readUsage(stated: unknown, hiddenThinkingInTotal: boolean): UsageReport | undefined {
  const usage = asObject(stated);
  const count = tokenCounter(usage);
  const prompt = count("prompt_tokens");
  const completion = count("completion_tokens");
  if ((prompt ?? 0) + (completion ?? 0) === 0) return undefined;
  const cached = cacheCountsIn(usage);
  const inCompletion = tokenCounter(usage["completion_tokens_details"]);
  // SGLang states the count outside of these details, but includes it in completion_tokens.
  const reasoning = inCompletion("reasoning_tokens") ?? count("reasoning_tokens") ?? 0;
  if (prompt === undefined || completion === undefined)
    return { prompt, completion, reasoning, ...cached };
  const total = count("total_tokens") ?? 0;
  // xAI counts reasoning beside completion_tokens, all others inside. xAI's total shows the
  // difference.
  const isBeside = reasoning > 0 && total === prompt + completion + reasoning;
  const counted = completion + (isBeside ? reasoning : 0);
  const hidden = hiddenThinkingInTotal ? Math.max(0, total - prompt - counted) : 0;
  return { prompt, completion: counted + hidden, reasoning: reasoning + hidden, ...cached };
}

/**
 * The part of the prompt that was cached, and the part that was written to the cache, each from the
 * first field that states it.
 */
function cacheCountsIn(usage: Record<string, unknown>): CacheCounts {
  const details = asObject(usage["prompt_tokens_details"] ?? usage["prompt_token_details"]);
  const cacheHit = firstCount(
    usage["prompt_cache_hit_tokens"],
    usage["num_cached_tokens"],
    details["cached_tokens"],
    usage["cached_tokens"],
  );
  const cacheWrite = firstCount(
    details["cache_write_tokens"],
    details["cache_creation_input_tokens"],
    details["cache_creation_tokens"],
  );
  if (cacheWrite === 0) return { cacheHit };
  const kept = asObject(details["cache_creation"] ?? details["cache_creation_token_details"]);
  return { cacheHit, cacheWrite, cacheWrite1h: firstCount(kept["ephemeral_1h_input_tokens"]) };
}

type CacheCounts = Pick<UsageReport, "cacheHit" | "cacheWrite" | "cacheWrite1h">;

/** The first of some values that is a count. 0 if there is none. */
const firstCount = (...values: readonly unknown[]): number =>
  values.map(asTokenCount).find((count) => count !== undefined) ?? 0;
