// `explain ALIAS`: the candidates of an alias in order, and why, so that a stranger understands which model answers.

import type { Config } from "../config/schema.ts";
import { rank } from "../routing/policy.ts";
import { formatTable } from "./table.ts";

const POLICIES = {
  reasoning: "the models that think, strongest reasoning_score first",
  value: "the highest quality_score per blended price (3 parts input, 1 part output) first",
};

/** For programs (`data`) and for people (`text`), or why there is nothing to explain. */
export function explainAlias(config: Config, name: string): { readonly data: object; readonly text: string } | { readonly fault: string } {
  const alias = config.aliases.get(name);
  if (!alias) {
    const kind = config.models.has(name) ? "is a model, and is served by itself or not at all" : "is not an alias here";
    return { fault: `'${name}' ${kind}; aliases: ${[...config.aliases.keys()].join(", ") || "none"}` };
  }
  const candidates = rank(config, alias).map((row) => {
    const { provider, supports, context_tokens = null } = config.models.get(row.model)!;
    return { ...row, provider, supports, context_tokens };
  });
  const rows = candidates.map(({ rank, model, provider, why, supports, context_tokens: tokens }) => {
    const can = `${supports.join(" ") || "text only"}${tokens === null ? "" : `, ${tokens} tokens`}`;
    return [rank === null ? "-" : String(rank), model, provider, why, can];
  });
  const fate = candidates.some(({ rank }) => rank !== null)
    ? "A request goes to the first that can do what it needs, that its key may use and whose provider is not failing; GET /status on the admin listener tells which are."
    : "No model is a candidate: every request gets 503 model_unavailable.";
  const title = `${name}${alias.enabled ? "" : " (disabled)"}: ${alias.policy ? POLICIES[alias.policy] : "its models in the order of its own list"}`;
  const text = `${title}\n${formatTable([["rank", "model", "provider", "why", "can"], ...rows])}${fate}\n`;
  return { data: { alias: name, enabled: alias.enabled, policy: alias.policy ?? "list", candidates }, text };
}
