// Skips candidates of an alias whose context window is too small for the prompt. After a model has
// rejected the prompt as too long, only models that may have a larger window are tried. contract.md
// "Candidates", "Attempts".
import type { Installer } from "../../../core/extension/installer.ts";
import { estimatePrompt } from "../../../core/ledger/meter.ts";
import type { ChatRequest } from "../../../core/openai/request.ts";
import type { FailedAttempt } from "../../../core/routing/failure.ts";
import type { Complete } from "../../../core/routing/fallback.ts";
import type { Model, Provider } from "../../../core/routing/model.ts";
import { adaptModels } from "../capabilities/index.ts";

export function install(gateway: Installer): void {
  gateway.on(adaptModels, withRoom);
  gateway.around(() => withContextRoom, { outside: ["provider-limits"] });
}

/** Completes a request, of whose candidates those with room for it were selected before. */
export const withContextRoom =
  (complete: Complete): Complete =>
  (chat, candidates, deliver, original) => {
    const context = candidates.length < 2 ? original : { ...original, remaining };
    return complete(chat, candidates, deliver, context);
  };

/** The candidates to try next. If the prompt was too long for one, those that may be larger. */
function remaining(models: readonly Model[], failures: readonly FailedAttempt[]): readonly Model[] {
  const full = failures
    .filter(({ error }) => error.code === "context_length_exceeded")
    .map(({ model }) => model);
  return full.length > 0 ? withMoreRoom(models, full) : models;
}

/**
 * The models with room for the request, by a cheap estimate that errs on the low side. If no model
 * seems to have room, returns all: the providers count exactly. The estimate reads the whole
 * prompt, so it is made once for each provider.
 */
export function withRoom(models: readonly Model[], chat: ChatRequest): readonly Model[] {
  if (models.length < 2 || models.every(({ contextTokens }) => contextTokens === undefined))
    return models;
  const prompts = new Map<Provider, number>();
  const hasRoom = ({ provider, traits, contextTokens = Infinity }: Model): boolean => {
    const prompt = prompts.get(provider) ?? estimatePrompt(chat, provider.countMedia);
    prompts.set(provider, prompt);
    const output = Math.min(chat.maxTokens ?? 0, traits.max_output_tokens ?? Infinity);
    return 0.75 * prompt + output <= contextTokens;
  };
  const fitting = models.filter(hasRoom);
  return fitting.length > 0 ? fitting : models;
}

/**
 * The models that may have more room than the `full` ones, for which the prompt was too long: first
 * those known to be larger, then those of unknown size, each group in its order. If no full model
 * has a known size, every model of known size may be larger.
 */
export function withMoreRoom(models: readonly Model[], full: readonly Model[]): readonly Model[] {
  const largest = Math.max(0, ...full.map(({ contextTokens }) => contextTokens ?? 0));
  const larger = models.filter(({ contextTokens }) => (contextTokens ?? 0) > largest);
  const unknown = models.filter(({ contextTokens }) => contextTokens === undefined);
  return [...larger, ...unknown];
}
