// Aliases that split their requests among models: the first candidate is drawn at random by weight,
// the others follow in the alias's order.
import type { Installer } from "../../../core/extension/installer.ts";
import { configHooks } from "../../../config/extension.ts";
import { integer } from "../../../config/fields.ts";
import { invalid } from "../../../config/references.ts";
import { defineSetting } from "../../../config/setting.ts";
import type { Complete } from "../../../core/routing/fallback.ts";
import type { Model } from "../../../core/routing/model.ts";
import { record, type ValidationIssue } from "../../../core/schema/checker.ts";
import { asArray, asObject } from "../../../core/schema/untrusted-json.ts";
import { pickWeighted } from "../weights/index.ts";

/** Weights by model name. A model that is absent, or has the weight 0, is only a fallback. */
type Weights = ReadonlyMap<string, number>;

const MAX_WEIGHT = 1_000_000;

const weights = defineSetting("aliases.*.weights", undefined, () => record(integer(0, MAX_WEIGHT)));

export const settings = [weights];

export function install(gateway: Installer): void {
  // `sticky` reorders after the draw, so a conversation stays with the model drawn for it.
  const outside = ["sticky"];
  gateway.around(() => splitting(), { outside });
  gateway.on(configHooks.issues, issuesIn);
  gateway.on(configHooks.notes, (alias) => {
    const split = weights.of(alias);
    return split ? [noteOf(split)] : [];
  });
}

/** Draws a candidate and puts it first, if the alias has weights. */
export const splitting =
  (random: () => number = Math.random) =>
  (complete: Complete): Complete =>
  (chat, candidates, deliver, context) => {
    const split = weights.of(context.config.aliases.get(chat.model));
    const ordered = split ? withDrawn(candidates, split, random()) : candidates;
    return complete(chat, ordered, deliver, context);
  };

/**
 * The candidates with the drawn one first. `random`: from 0 to less than 1. Candidates with an open
 * breaker are not drawn, so the shares of the others grow in proportion.
 */
function withDrawn(candidates: readonly Model[], split: Weights, random: number): readonly Model[] {
  const able = candidates.filter((model) => model.status().retryMs === 0);
  const first = pickWeighted(able, ({ name }) => split.get(name) ?? 0, random);
  return first ? [first, ...candidates.filter((model) => model !== first)] : candidates;
}

/** `gpt-5.5 90 %, claude-x 10 %` */
function noteOf(split: Weights): string {
  const sum = [...split.values()].reduce((total, weight) => total + weight, 0);
  const shares = [...split].map(
    ([name, weight]) => `${name} ${+((100 * weight) / sum).toFixed(1)} %`,
  );
  return (
    `Requests are split: ${shares.join(", ")}. These are the shares of requests that try the ` +
    "model first; if it fails, the others are tried in order."
  );
}

/** Reports weights that are set without `models`, or for a model outside it, or that are all 0. */
const issuesIn = (json: unknown): readonly ValidationIssue[] =>
  Object.entries(asObject(asObject(json)["aliases"])).flatMap(([name, written]) => {
    const alias = asObject(written);
    const split = Object.entries(asObject(alias["weights"]));
    const path = ["aliases", name, "weights"];
    if ((alias["weights"] ?? null) === null) return [];
    if (!Array.isArray(alias["models"]))
      return [invalid(path, "may only be set together with models")];
    const strangers = split.filter(([model]) => !asArray(alias["models"]).includes(model));
    if (strangers.length > 0)
      return strangers.map(([model]) =>
        invalid([...path, model], "is not among the alias's models"),
      );
    return split.some(([, weight]) => weight !== 0)
      ? []
      : [invalid(path, "expected a weight of more than 0")];
  });
