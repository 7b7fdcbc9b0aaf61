// Warns of probable mistakes in a valid configuration, with which a gateway still starts.
import type { Config } from "../../../core/config.ts";
import type { Warning } from "../../../config/extension.ts";
import { blendedPrice, boundedScore, type WrittenAlias } from "../../../config/policy.ts";
import type { ValidationIssue } from "../../../core/schema/checker.ts";
import { withOverrides } from "../../../core/routing/model.ts";
import { asObject } from "../../../core/schema/untrusted-json.ts";

/** An enabled alias, with the models that it ranks, best first. */
interface RankedAlias {
  readonly name: string;
  readonly alias: WrittenAlias;
  readonly candidates: readonly string[];
}

export function warningsOf(config: Config): Warning[] {
  const aliases = [...config.aliases]
    .filter(([, alias]) => alias.enabled)
    .map(([name, alias]) => ({
      name,
      alias,
      candidates: alias.ranking.filter((row) => row.rank !== null).map((row) => row.model),
    }));
  const aboutAliases = [hopelessness, unknownSizes, incomparableCandidates].flatMap((find) =>
    aliases.flatMap((ranked) => {
      const message = find(ranked, config);
      return message === undefined ? [] : [{ path: ["aliases", ranked.name], message }];
    }),
  );
  return [...aboutAliases, ...deadlineWarnings(config)];
}

const hopelessness = ({ candidates }: RankedAlias): string | undefined =>
  candidates.length === 0 ? "has no candidate: every request for it would get 503" : undefined;

/**
 * Warns if some of several candidates have no `context_tokens`: whether a long prompt fits is
 * unknown until it is sent. So after a prompt was too long for one model, these are tried last.
 */
function unknownSizes({ candidates }: RankedAlias, { models }: Config): string | undefined {
  const unknown = candidates.filter((name) => models.get(name)?.context_tokens === undefined);
  if (unknown.length === 0 || candidates.length < 2) return undefined;
  const names = unknown.map((name) => `models.${name}`).join(", ");
  return (
    `has candidates without context_tokens (${names}): ` +
    "a prompt that is too long for another one goes to them last"
  );
}

/**
 * Warns if the last candidate is far from the first and no bound of the alias prevents that: a
 * request that falls back may cost ten times as much, or get a much weaker answer.
 */
function incomparableCandidates(
  { alias, candidates }: RankedAlias,
  config: Config,
): string | undefined {
  const [first, last] = [candidates[0], candidates.at(-1)];
  if (!alias.policy || first === undefined || last === undefined || first === last)
    return undefined;
  const [best, worst] = [config.models.get(first)!, config.models.get(last)!];
  const score = (model: typeof best): number => boundedScore(alias, model);
  const differences: string[] = [];
  if (alias.max_price === undefined && blendedPrice(worst.price)! > 10 * blendedPrice(best.price)!)
    differences.push("costs more than ten times as much as");
  const bound = alias.policy === "reasoning" ? "min_score" : "min_quality";
  const least = alias.min_score ?? alias.min_quality;
  if (least === undefined && score(worst) < score(best) / 2)
    differences.push("scores less than half of");
  if (differences.length === 0) return undefined;
  const difference = `which ${differences.join(" and ")} ${first}`;
  return `falls back as far as ${last}, ${difference}: max_price and ${bound} bound that`;
}

/** Deadlines that have no effect if total_ms is shorter. */
const BOUNDED = ["first_token_ms", "idle_ms", "closing_ms", "leave_ms"] as const;

type Deadlines = { readonly [name in (typeof BOUNDED)[number] | "total_ms"]?: number | undefined };

function deadlineWarnings(config: Config): Warning[] {
  const { timeouts } = config;
  const longer = (path: ValidationIssue["path"], stated: Deadlines): Warning[] => {
    const { total_ms: total = timeouts.total_ms } = stated;
    // If a section states its own total_ms, the deadlines that it inherits may exceed it, too.
    const all = stated.total_ms === undefined ? stated : withOverrides(timeouts, stated);
    return BOUNDED.filter((name) => (all[name] ?? 0) > total).map((name) => ({
      path: [...path, name],
      message: `is ${all[name]}, longer than total_ms, which is ${total}`,
    }));
  };
  // The extension `patience` adds `timeouts` to models and aliases.
  const own = (["providers", "models", "aliases"] as const).flatMap((section) =>
    [...config[section]].flatMap(([name, row]) =>
      longer([section, name, "timeouts"], asObject(asObject(row)["timeouts"])),
    ),
  );
  return [...longer(["timeouts"], timeouts), ...own];
}
