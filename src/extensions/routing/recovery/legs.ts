// Adds up the attempts at a recovered reply. A leg is one pass over the candidates: its failed
// attempts, and the attempt that began to reply, if there is one. The core decides whether a leg is
// billed.
import type { AttemptRecord } from "../../../core/ledger/ledger.ts";
import { formatMoney } from "../../../core/ledger/price.ts";
import { makeUsage, type Usage } from "../../../core/openai/usage.ts";
import type { CompletionError, RequestProgress } from "../../../core/routing/fallback.ts";

/** One pass over the candidates. */
export interface Leg {
  /** Its result. Usage and cost are 0 if it is not billed. */
  readonly progress: RequestProgress;
  /** The error that ended it. Absent: it finished the reply. */
  readonly failure?: CompletionError;
}

const isBilled = ({ progress }: Leg): boolean => progress.reading.source !== "none";

/** The progress of all legs together. `recovery`: the outcome to state if there are several. */
export function progressOf(legs: readonly Leg[], recovery: string): RequestProgress {
  const first = legs[0]!.progress;
  if (legs.length === 1) return first;
  const billed = legs.filter(isBilled).map(({ progress }) => progress);
  const isStated = billed.every(({ reading }) => reading.source === "provider");
  return {
    ...billed.at(-1)!,
    attempts: legs.flatMap(attemptsOf),
    begunAt: first.begunAt,
    reading: {
      usage: sumOf(billed.map(({ reading }) => countsOf(reading.usage))),
      source: isStated ? "provider" : "estimated",
    },
    cost: billed.reduce((total, { cost }) => total + cost, 0n),
    recovery,
  };
}

/**
 * The attempts of a leg. If the leg is billed, its last attempt produced the text, so the record of
 * that attempt states its share of the bill: tokens, prices and cost.
 */
function attemptsOf(leg: Leg): readonly AttemptRecord[] {
  const { attempts, reading, price, cost } = leg.progress;
  if (!isBilled(leg)) return attempts;
  const prices = price && { prices: price };
  const share = { ...countsOf(reading.usage), ...prices, cost: formatMoney(cost) };
  return [...attempts.slice(0, -1), { ...attempts.at(-1)!, share }];
}

type Counts = ReturnType<typeof countsOf>;

/** The tokens of an attempt by class, under the names that the spend log uses. */
function countsOf({ prompt_tokens_details, completion_tokens_details, ...counts }: Usage) {
  const { cache_write_tokens = 0, cache_write_1h_tokens } = prompt_tokens_details;
  const { reasoning_tokens } = completion_tokens_details;
  return { ...counts, cache_write_tokens, cache_write_1h_tokens, reasoning_tokens };
}

function sumOf(all: readonly Counts[]): Usage {
  const total = (name: keyof Counts) => all.reduce((sum, counts) => sum + (counts[name] ?? 0), 0);
  return makeUsage({
    prompt: total("prompt_tokens"),
    completion: total("completion_tokens"),
    cacheHit: total("prompt_cache_hit_tokens"),
    cacheWrite: total("cache_write_tokens"),
    cacheWrite1h: total("cache_write_1h_tokens"),
    reasoning: total("reasoning_tokens"),
  });
}
