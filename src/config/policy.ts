// Aliases in gateway.json: their check, the order in which an alias prefers its models, and the
// reason for each rank. The core takes the candidates in this order; `explain` and /status show the
// reasons. routing.md "Aliases".
import type {
  AliasSettings,
  ModelSettings,
  RankedModel,
  RoutingSettings,
} from "../core/routing/model.ts";
import {
  array,
  boolean,
  fail,
  literal,
  nonEmpty,
  number,
  optional,
  refine,
  withDefault,
  type Checked,
} from "../core/schema/checker.ts";
import { exactlyOne, strict } from "./fields.ts";
import type { WrittenModel } from "./providers-and-models.ts";
import type { CheckContext } from "./setting.ts";

/** How an alias chooses its models: by a policy or by a list. */
const aliasFields = {
  /** How the alias ranks all models (routing.md "Aliases"). Absent: it has `models`. */
  policy: optional(literal("reasoning", "value", "fastest")),
  /** Canonical names, best first. Absent: the alias has a `policy`. */
  models: optional(array(nonEmpty, { min: 1 })),
  /** As in AliasSettings.enabled. */
  enabled: withDefault(boolean(), true),
  /**
   * With a policy: a model with a lower score is not a candidate. The score is reasoning_score with
   * the policy "reasoning", and quality_score with the others. Absent: no bound.
   */
  min_score: optional(number()),
  /**
   * With a policy other than "reasoning": a model with a lower quality_score is not a candidate.
   * Absent: no bound.
   */
  min_quality: optional(number()),
  /**
   * With a policy: a model with a higher blended price is not a candidate. In the currency per
   * million tokens. Absent: no bound.
   */
  max_price: optional(number({ min: 0 })),
};

/** An alias as gateway.json has it. Members without a default may be absent. */
export type WrittenAlias = Partial<Checked<typeof aliasFields>> & Pick<AliasSettings, "enabled">;

export const aliasCheck = ({ extended }: CheckContext) =>
  refine(strict(extended("aliases.*", aliasFields)), (alias) =>
    boundedByPolicy(exactlyOne(alias, "policy", "models")),
  );

/** Rejects bounds beside a list of models, and min_quality with the policy "reasoning". */
function boundedByPolicy<T extends WrittenAlias>(alias: T): T {
  for (const field of ["min_score", "min_quality", "max_price"] as const)
    if (alias.models && alias[field] !== undefined)
      fail("invalid_parameter_combination", "may only be set together with policy", [field]);
  if (alias.policy === "reasoning" && alias.min_quality !== undefined)
    fail(
      "invalid_parameter_combination",
      "bounds quality_score; the policy reasoning has min_score, which bounds reasoning_score",
      ["min_quality"],
    );
  return alias;
}

/** The fields of a model that a policy uses. */
export type RankingSettings = Pick<RoutingSettings, "currency"> & {
  readonly models: ReadonlyMap<string, ScoredModel>;
};

type ScoredModel = Pick<WrittenModel, "reasoning" | "reasoning_score" | "quality_score" | "price">;

interface Score {
  /** Higher is better. NO_CANDIDATE: the alias does not use the model. */
  readonly score: number;
  /** The reason for the rank, for people. */
  readonly why: string;
}

const NO_CANDIDATE = -Infinity;
/** The score of a candidate whose model has none: it comes after all others. */
const LAST = -Number.MAX_VALUE;

const out = (reason: string): Score => ({ score: NO_CANDIDATE, why: `out: ${reason}` });

/**
 * Ranks the models of an alias. With a policy: all models, best first; a tie keeps the order of the
 * file. With a list: only its models, in its order.
 */
export function rank(config: RankingSettings, alias: WrittenAlias): readonly RankedModel[] {
  if (alias.models)
    return alias.models.map((model, index) => ({
      model,
      rank: index + 1,
      why: `number ${index + 1} in the alias's list`,
    }));
  const scored = [...config.models].map(([model, settings]) => ({
    model,
    ...comparable(config, alias, settings),
  }));
  scored.sort((a, b) => (a.score === b.score ? 0 : b.score - a.score));
  return scored.map(({ model, score, why }, index) => ({
    model,
    rank: score === NO_CANDIDATE ? null : index + 1,
    why,
  }));
}

/** The score by which an alias's policy ranks a model. */
const scoreOf = (
  { currency }: Pick<RankingSettings, "currency">,
  { policy }: WrittenAlias,
  settings: ScoredModel,
): Score => {
  if (policy === "reasoning") return byReasoning(settings);
  return policy === "value" ? byValue(settings, currency) : byQuality(settings);
};

/**
 * The score that `min_score` and `min_quality` bound. With the policy "value", models are ranked by
 * another score.
 */
export const boundedScore = ({ policy }: WrittenAlias, settings: ScoredModel): number =>
  (policy === "reasoning" ? byReasoning(settings) : byQuality(settings)).score;

/** Policy "reasoning": models that think, highest reasoning_score first. */
function byReasoning({ reasoning, reasoning_score: score }: ScoredModel): Score {
  if (!reasoning) return out("not a reasoning model (reasoning is not true)");
  if (score === undefined) return { score: LAST, why: "thinks, but has no reasoning_score" };
  return { score, why: `reasoning_score ${score}` };
}

/** Policy "fastest": the order until extensions/routing/fastest has measured times. */
function byQuality({ quality_score: quality }: ScoredModel): Score {
  if (quality === undefined) return out("no quality_score");
  return { score: quality, why: `quality_score ${quality}, which counts until it is measured` };
}

/** Policy "value": quality per blended price. Free is the best value. */
function byValue({ quality_score: quality, price }: ScoredModel, currency: string): Score {
  if (quality === undefined) return out("no quality_score");
  if (!price) return out("no price");
  const blend = blendedPrice(price);
  const score = blend === 0 ? Infinity : quality / blend;
  const result = blend === 0 ? "free" : score.toFixed(2);
  const blended = `${+blend.toFixed(6)} ${currency}`;
  return { score, why: `quality_score ${quality} / blended price ${blended} = ${result}` };
}

/**
 * 3 parts input at the cache-miss price to 1 part output, in the currency per million tokens. A
 * model without a price costs nothing. Computed in millionths, in which prices are integers, so
 * that a price that equals a bound is not above it.
 */
export function blendedPrice(price: ModelSettings["price"]): number {
  if (!price) return 0;
  const [input, output] = [price.input_cache_miss, price.output].map((one) =>
    Math.round(one * 1e6),
  );
  return (3 * input! + output!) / 4e6;
}

/** The score of a model, or out() with the reason if a bound of the alias excludes the model. */
function comparable(config: RankingSettings, alias: WrittenAlias, settings: ScoredModel): Score {
  const { min_score: lowest, min_quality: least, max_price: highest } = alias;
  const { price } = settings;
  const scored = scoreOf(config, alias, settings);
  const { score } = scored;
  if (score === NO_CANDIDATE) return scored;
  const bounded = boundedScore(alias, settings);
  if (lowest !== undefined && bounded < lowest)
    return out(`${scored.why}, below min_score ${lowest}`);
  if (least !== undefined && bounded < least)
    return out(`${scored.why}, below min_quality ${least}`);
  const blend = blendedPrice(price);
  if (highest !== undefined && blend > highest)
    return out(`blended price ${+blend.toFixed(6)} ${config.currency} above max_price ${highest}`);
  return scored;
}
