// The order in which an alias prefers its models, and the reason for each rank: for the catalog,
// `explain` and /status.
import type { AliasSettings, ModelSettings, RoutingSettings } from "./model.ts";

export interface RankedModel {
  readonly model: string;
  /** From 1, the best. Null: the model is no candidate. */
  readonly rank: number | null;
  /** The reason for the rank, for the operator. */
  readonly why: string;
}

/** What a policy looks at. */
type RankingSettings = Pick<RoutingSettings, "models" | "currency">;

interface Score {
  /** The highest is the best. NO_CANDIDATE: the alias does not use the model. */
  readonly score: number;
  readonly why: string;
}

const NO_CANDIDATE = -Infinity;
/** The score of a candidate that has none: it comes after all others. */
const LAST = -Number.MAX_VALUE;

/**
 * With a policy all models, best first; a tie keeps the order of the file. With a list only the
 * models in it.
 */
export function rank(config: RankingSettings, alias: AliasSettings): readonly RankedModel[] {
  if (alias.models)
    return alias.models.map((model, index) => ({
      model,
      rank: index + 1,
      why: `number ${index + 1} of the alias's own list`,
    }));
  const scored = [...config.models].map(([model, settings]) => {
    const { score, why } =
      alias.policy === "reasoning" ? byReasoning(settings) : byValue(settings, config.currency);
    return { model, score, why };
  });
  scored.sort((a, b) => (a.score === b.score ? 0 : b.score - a.score));
  return scored.map(({ model, score, why }, index) => ({
    model,
    rank: score === NO_CANDIDATE ? null : index + 1,
    why,
  }));
}

/** Policy "reasoning": models that think, highest reasoning_score first. */
function byReasoning({ reasoning, reasoning_score: score }: ModelSettings): Score {
  if (!reasoning)
    return { score: NO_CANDIDATE, why: "out: it does not think (reasoning is not true)" };
  if (score === undefined) return { score: LAST, why: "thinks, but has no reasoning_score" };
  return { score, why: `reasoning_score ${score}` };
}

/**
 * Policy "value": quality per blended price, 3 parts input at the cache-miss price to 1 part
 * output. Free is the best value.
 */
function byValue({ quality_score: quality, price }: ModelSettings, currency: string): Score {
  if (quality === undefined) return { score: NO_CANDIDATE, why: "out: it has no quality_score" };
  if (!price) return { score: NO_CANDIDATE, why: "out: it has no price" };
  const blend = (3 * price.input_cache_miss + price.output) / 4;
  const score = blend === 0 ? Infinity : quality / blend;
  const result = blend === 0 ? "free" : score.toFixed(2);
  const blended = `${+blend.toFixed(6)} ${currency}`;
  return { score, why: `quality_score ${quality} / blended price ${blended} = ${result}` };
}
