// Which models have room for a prompt in their context windows.
import { estimatePrompt } from "../ledger/meter.ts";
import type { ChatRequest } from "../openai/request.ts";
import type { Model, Provider } from "./model.ts";

/**
 * The models with room for the request, by a cheap estimate that is rather too low. All models if
 * none seems to have room: the providers count better. The estimate goes through the whole prompt,
 * so it is made once for each provider.
 */
export function withRoom(models: readonly Model[], chat: ChatRequest): readonly Model[] {
  if (models.length < 2 || models.every(({ contextTokens }) => contextTokens === undefined))
    return models;
  const prompts = new Map<Provider, number>();
  const hasRoom = ({ provider, contextTokens = Infinity }: Model): boolean => {
    const prompt = prompts.get(provider) ?? estimatePrompt(chat, provider.countMedia);
    prompts.set(provider, prompt);
    return 0.75 * prompt + (chat.maxTokens ?? 0) <= contextTokens;
  };
  const fitting = models.filter(hasRoom);
  return fitting.length > 0 ? fitting : models;
}

/**
 * The models that may have more room than those that are `full`, for which the prompt was too long:
 * first those that are known to be larger, then those of unknown size, each group in its order. If
 * the size of no full model is known, every known size may be larger.
 */
export function withMoreRoom(models: readonly Model[], full: readonly Model[]): readonly Model[] {
  const largest = Math.max(0, ...full.map(({ contextTokens }) => contextTokens ?? 0));
  const larger = models.filter(({ contextTokens }) => (contextTokens ?? 0) > largest);
  const unknown = models.filter(({ contextTokens }) => contextTokens === undefined);
  return [...larger, ...unknown];
}
