// For `check`: aliases that cannot tell which of their candidates has room for a long prompt.
import type { Config } from "../config/schema.ts";
import { rank } from "../routing/policy.ts";

/** One line for each enabled alias that has candidates with `context_tokens` and candidates without: after a prompt was too long
 * for one model, those without are asked last, wherever the alias ranks them. */
export function roomWarnings(config: Config): string[] {
  const hasSize = (name: string) => config.models.get(name)?.context_tokens !== undefined;
  return [...config.aliases].flatMap(([alias, settings]) => {
    if (!settings.enabled) return [];
    const candidates = rank(config, settings)
      .filter((row) => row.rank !== null)
      .map((row) => row.model);
    const unknown = candidates.filter((name) => !hasSize(name));
    if (unknown.length === 0 || unknown.length === candidates.length) return [];
    const names = unknown.map((name) => `models.${name}`).join(", ");
    return [
      `aliases.${alias} has candidates without context_tokens (${names}): a prompt that is too long for another one goes to them last`,
    ];
  });
}
