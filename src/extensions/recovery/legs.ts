// The attempts at a recovered reply as one. A leg is one pass over the candidates: its failed
// attempts, and the attempt that replied, if there was one.
import { formatMoney } from "../../core/ledger/price.ts";
import type { AttemptRecord } from "../../core/ledger/ledger.ts";
import { NO_USAGE, type MeterReading } from "../../core/ledger/meter.ts";
import { makeUsage, type Usage } from "../../core/openai/usage.ts";
import type { CompletionFailed, RequestProgress } from "../../core/routing/fallback.ts";

export interface Leg {
  readonly progress: RequestProgress;
  /**
   * Whether it is billed: it finished the reply, showed something, or its client left while it
   * replied.
   */
  readonly isBilled: boolean;
  /** Absent: the leg has finished the reply. */
  readonly failure?: CompletionFailed;
}

/** `recovery`: what came of it all. */
export function progressOf(legs: readonly Leg[], recovery: string): RequestProgress {
  const billed = legs.filter(({ isBilled }) => isBilled).map(({ progress }) => progress);
  const last = billed.at(-1) ?? legs.at(-1)!.progress;
  return {
    ...last,
    attempts: legs.flatMap(attemptsOf),
    begunAt: legs[0]!.progress.begunAt,
    reading: billed.length === 0 ? NO_USAGE : billed.map(({ reading }) => reading).reduce(sum),
    cost: billed.reduce((total, { cost }) => total + cost, 0n),
    recovery,
  };
}

/** The tokens of an attempt by their classes, as the books have those of a request. */
const countsOf = ({ prompt_tokens_details: cached, ...usage }: Usage) => ({
  prompt_tokens: usage.prompt_tokens,
  completion_tokens: usage.completion_tokens,
  total_tokens: usage.total_tokens,
  prompt_cache_hit_tokens: usage.prompt_cache_hit_tokens,
  prompt_cache_miss_tokens: usage.prompt_cache_miss_tokens,
  cache_write_tokens: cached.cache_write_tokens ?? 0,
  ...(cached.cache_write_1h_tokens && { cache_write_1h_tokens: cached.cache_write_1h_tokens }),
  reasoning_tokens: usage.completion_tokens_details.reasoning_tokens,
});

/**
 * The attempts of a leg. The last of them is the one that said something. Its share has all that
 * its cost follows from.
 */
function attemptsOf({ progress, isBilled }: Leg): readonly AttemptRecord[] {
  const { attempts, reading, cost, model } = progress;
  const last = attempts.at(-1);
  if (!isBilled || !last) return attempts;
  const { price } = model;
  const counts = countsOf(reading.usage);
  const share = { ...counts, ...(price && { prices: price }), cost: formatMoney(cost) };
  return [...attempts.slice(0, -1), { ...last, share }];
}

const sum = (a: MeterReading, b: MeterReading): MeterReading => ({
  usage: sumOfUsage(a.usage, b.usage),
  source: a.source === "provider" && b.source === "provider" ? "provider" : "estimated",
});

const sumOfUsage = (a: Usage, b: Usage): Usage => {
  const sumOf = (count: (usage: Usage) => number | undefined): number =>
    (count(a) ?? 0) + (count(b) ?? 0);
  return makeUsage({
    prompt: sumOf((usage) => usage.prompt_tokens),
    completion: sumOf((usage) => usage.completion_tokens),
    cacheHit: sumOf((usage) => usage.prompt_cache_hit_tokens),
    cacheWrite: sumOf((usage) => usage.prompt_tokens_details.cache_write_tokens),
    cacheWrite1h: sumOf((usage) => usage.prompt_tokens_details.cache_write_1h_tokens),
    reasoning: sumOf((usage) => usage.completion_tokens_details.reasoning_tokens),
  });
};
