// The command `explain`: the candidates of an alias in their order, and why.
import { configHooks } from "../../../config/extension.ts";
import { JSON_OPTION, type Command } from "../../../command-line/command.ts";
import { table } from "../../../command-line/table.ts";
import type { Config } from "../../../core/config.ts";

/** How each policy orders the candidates of an alias. `list`: the alias has no policy. */
const ORDER = {
  reasoning: "reasoning models, highest reasoning_score first",
  value: "models by quality_score per blended price (3 parts input, 1 part output), highest first",
  fastest: "models by median time to first token in the last ten minutes, shortest first",
  list: "models in the order of the alias's list",
} as const;

const WITH_CANDIDATES =
  "A request goes to the first model that supports what it needs, that its key may use and " +
  "whose provider is healthy. GET /status on the admin listener shows which are.";
const WITHOUT = "There is no candidate: every request gets 503 model_unavailable.";
const DISABLED = "It does not exist for clients: every request gets 404 model_not_found.";

export const explain: Command = {
  summary: "the candidates of an alias in order, and why",
  operand: "ALIAS",
  operandHelp: "an alias of the configuration",
  example: "explain auto/chat",
  options: { json: JSON_OPTION },
  async run(args, terminal) {
    const { config, installed } = await terminal.load(args, {
      serves: true,
      secretsOptional: true,
    });
    const { operand: name } = args;
    const alias = config.aliases.get(name);
    if (!alias) throw notAnAlias(name, config);
    const candidates = alias.ranking.map((row) => ({
      ...row,
      provider: config.models.get(row.model)!.provider,
    }));
    const { enabled, policy = "list" } = alias;
    const title = `${name}${enabled ? "" : " (disabled)"}: ${ORDER[policy]}`;
    const hasCandidate = candidates.some((candidate) => candidate.rank !== null);
    const fate = hasCandidate ? WITH_CANDIDATES : WITHOUT;
    const rows = table(["rank", "model", "provider", "why"], candidates);
    const notes = installed.listeners(configHooks.notes).flatMap(({ call }) => call(alias));
    const around = installed.aroundOrder();
    const result = {
      ...{ alias: name, enabled, policy, candidates },
      ...(notes.length > 0 && { notes }),
      around,
    };
    const order = `Wrapped around each request, outermost first: ${around.join(", ")}.`;
    const text = [enabled ? fate : DISABLED, ...notes, order].join("\n");
    await terminal.printResult(args, result, `${title}\n${rows}${text}\n`);
  },
};

function notAnAlias(name: string, { models, aliases }: Config): Error {
  const kind = models.has(name)
    ? "is a model, not an alias, and has no fallback"
    : "is not an alias here";
  return new Error(`'${name}' ${kind}; aliases: ${[...aliases.keys()].join(", ") || "none"}`);
}
