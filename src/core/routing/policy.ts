// In which order an alias prefers its models, and why: for the catalog, and in words for `explain` and /status.
import type { Config, ModelConfig } from "../config/schema.ts";

type AliasConfig = Config["aliases"] extends Map<string, infer A> ? A : never;
const OUT = -Infinity; // the score of what is no candidate

/** Of a policy all models, best first (a tie keeps the file's order), with rank null: no candidate; of a list those that it names. */
export function rank(
  config: Config,
  alias: AliasConfig,
): { model: string; rank: number | null; why: string }[] {
  if (alias.models)
    return alias.models.map((model, index) => ({
      model,
      rank: index + 1,
      why: `number ${index + 1} of the alias's own list`,
    }));
  const score = alias.policy === "reasoning" ? byReasoning : byValue;
  const scored = [...config.models].map(([model, settings]) => ({
    model,
    ...score(settings, config.currency),
  }));
  scored.sort((a, b) => (a.score === b.score ? 0 : b.score - a.score));
  return scored.map(({ model, score, why }, index) => ({
    model,
    rank: score === OUT ? null : index + 1,
    why,
  }));
}

/** Policy "reasoning": models that think, strongest first; one without a score comes after those with one. */
function byReasoning({ reasoning, reasoning_score }: ModelConfig) {
  if (!reasoning) return { score: OUT, why: "out: it does not think (reasoning is not true)" };
  if (reasoning_score === undefined)
    return { score: -Number.MAX_VALUE, why: "thinks, but has no reasoning_score" };
  return { score: reasoning_score, why: `reasoning_score ${reasoning_score}` };
}

/** Policy "value": quality per blended price, 3 parts input at the cache-miss price to 1 part output. Free is the best value. */
function byValue({ quality_score, price }: ModelConfig, currency: string) {
  if (quality_score === undefined) return { score: OUT, why: "out: it has no quality_score" };
  if (!price) return { score: OUT, why: "out: it has no price" };
  const blend = (3 * price.input_cache_miss + price.output) / 4;
  const score = blend === 0 ? Infinity : quality_score / blend;
  const result = blend === 0 ? "free" : score.toFixed(2);
  return {
    score,
    why: `quality_score ${quality_score} / blended price ${+blend.toFixed(6)} ${currency} = ${result}`,
  };
}
