// The attempts at a recovered reply as one. A leg is one pass over the candidates: its failed
// attempts, and the attempt that replied, if there was one. It is billed where the core bills it.
import type { AttemptRecord } from "../../../core/ledger/ledger.ts";
import { formatMoney } from "../../../core/ledger/price.ts";
import { makeUsage, type Usage } from "../../../core/openai/usage.ts";
import type { CompletionFailed, RequestProgress } from "../../../core/routing/fallback.ts";

export interface Leg {
  /** How far it came. Its usage and cost are 0 where nothing of it was shown. */
  readonly progress: RequestProgress;
  /** Absent: the leg has finished the reply. */
  readonly failure?: CompletionFailed;
}

const isStated = ({ reading }: RequestProgress): boolean => reading.source === "provider";
const isBilled = ({ progress }: Leg): boolean => progress.reading.source !== "none";

/** `recovery`: what came of it all. A single leg stays as it is. */
export function progressOf(legs: readonly Leg[], recovery: string): RequestProgress {
  const [first, ...others] = legs;
  if (others.length === 0) return first!.progress;
  const billed = legs.filter(isBilled).map(({ progress }) => progress);
  return {
    ...billed.at(-1)!,
    attempts: legs.flatMap(attemptsOf),
    begunAt: first!.progress.begunAt,
    reading: {
      usage: sumOfUsage(billed.map(({ reading }) => reading.usage)),
      source: billed.every(isStated) ? "provider" : "estimated",
    },
    cost: billed.reduce((total, { cost }) => total + cost, 0n),
    recovery,
  };
}

/**
 * The attempts of a leg. The last of them is the one that said something. Its share has all that
 * its cost follows from.
 */
function attemptsOf(leg: Leg): readonly AttemptRecord[] {
  const { attempts, reading, cost, model } = leg.progress;
  if (!isBilled(leg)) return attempts;
  const prices = model.price && { prices: model.price };
  const share = { ...countsOf(reading.usage), ...prices, cost: formatMoney(cost) };
  return [...attempts.slice(0, -1), { ...attempts.at(-1)!, share }];
}

/** The tokens of an attempt by their classes, as the books have those of a request. */
function countsOf({ prompt_tokens_details, completion_tokens_details, ...counts }: Usage) {
  const { cache_write_tokens = 0, cache_write_1h_tokens: hour } = prompt_tokens_details;
  const { reasoning_tokens } = completion_tokens_details;
  const written = { cache_write_tokens, ...(hour && { cache_write_1h_tokens: hour }) };
  return { ...counts, ...written, reasoning_tokens };
}

/** The usage of several replies together. */
function sumOfUsage(usages: readonly Usage[]): Usage {
  const sumOf = (count: (usage: Usage) => number | undefined): number =>
    usages.reduce((sum, usage) => sum + (count(usage) ?? 0), 0);
  return makeUsage({
    prompt: sumOf((usage) => usage.prompt_tokens),
    completion: sumOf((usage) => usage.completion_tokens),
    cacheHit: sumOf((usage) => usage.prompt_cache_hit_tokens),
    cacheWrite: sumOf((usage) => usage.prompt_tokens_details.cache_write_tokens),
    cacheWrite1h: sumOf((usage) => usage.prompt_tokens_details.cache_write_1h_tokens),
    reasoning: sumOf((usage) => usage.completion_tokens_details.reasoning_tokens),
  });
}
