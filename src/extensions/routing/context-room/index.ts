// The room in the context windows of an alias's candidates. A candidate that has no room for a
// prompt is not asked, and after one has found the prompt too long only those are asked that may
// have more room. A bound of the reply that the client did not state is kept within the window.
// contract.md "Candidates", "Attempts".
import type { Installer } from "../../../core/extension/installer.ts";
import { estimatePrompt } from "../../../core/ledger/meter.ts";
import type { ChatRequest } from "../../../core/openai/request.ts";
import type { Attempt } from "../../../core/routing/attempt.ts";
import type { FailedAttempt } from "../../../core/routing/failure.ts";
import type { Complete } from "../../../core/routing/fallback.ts";
import type { Model, Provider } from "../../../core/routing/model.ts";
import { adapted } from "../capabilities/index.ts";

/** A prompt that seems to leave less may be shorter than its estimate. */
const LEAST_OUTPUT = 256;

/** The conversations whose candidates have room: the estimate is not made again for them. */
const decided = new WeakSet<ChatRequest["messages"]>();

export function install(gateway: Installer): void {
  gateway.on(adapted, (models, chat) => {
    decided.add(chat.messages);
    return withRoom(models, chat);
  });
  gateway.around(() => aroundRoom, { outside: ["provider-limits"] });
}

/** Completes a request with the candidates that have room for it. */
export const aroundRoom =
  (complete: Complete): Complete =>
  (chat, candidates, deliver, given) => {
    const context = isBoundForClient(chat) ? { ...given, attempt: fitting(given.attempt) } : given;
    if (candidates.length < 2) return complete(chat, candidates, deliver, context);
    // A reply that is continued elsewhere is a longer conversation.
    const roomy = decided.has(chat.messages) ? candidates : withRoom(candidates, chat);
    return complete(chat, roomy, deliver, { ...context, remaining });
  };

/** The client's own limit of the reply's length. Undefined: it stated none. */
const statedOutput = ({ max_tokens, max_completion_tokens, maxTokens }: ChatRequest) =>
  max_tokens === undefined && max_completion_tokens === undefined ? undefined : maxTokens;

/** Whether the reply is bounded, and not by the client: by what a budget holds for it. */
const isBoundForClient = (chat: ChatRequest): boolean =>
  chat.maxTokens !== undefined && statedOutput(chat) === undefined;

/**
 * The same attempt, with a bound that leaves room for the prompt in the model's window: providers
 * refuse a request for more than that.
 */
const fitting =
  (attempt: Attempt): Attempt =>
  (chat, serving, deliver, options) => {
    const { provider, contextTokens } = serving.model;
    if (contextTokens === undefined) return attempt(chat, serving, deliver, options);
    const room = roomBeside(estimatePrompt(chat, provider.countMedia), contextTokens);
    const bounded = { ...chat, maxTokens: Math.min(chat.maxTokens ?? Infinity, room) };
    return attempt(bounded, serving, deliver, options);
  };

/**
 * The tokens of a reply beside a prompt of so many. The estimate may be too low by half, so that
 * half of it is kept free too, but no more than half of the rest.
 */
function roomBeside(prompt: number, contextTokens: number): number {
  const rest = contextTokens - prompt;
  return Math.max(LEAST_OUTPUT, Math.floor(rest - Math.min(prompt, rest) / 2));
}

/**
 * The candidates still to be asked. Once the prompt was too long for a model, only those that may
 * have more room.
 */
function remaining(models: readonly Model[], failures: readonly FailedAttempt[]): readonly Model[] {
  const full = failures
    .filter(({ error }) => error.code === "context_length_exceeded")
    .map(({ model }) => model);
  return full.length > 0 ? withMoreRoom(models, full) : models;
}

/**
 * The models with room for the request, by a cheap estimate that is rather too low. All models if
 * none seems to have room: the providers count better. The estimate goes through the whole prompt,
 * so it is made once for each provider.
 */
export function withRoom(models: readonly Model[], chat: ChatRequest): readonly Model[] {
  if (models.length < 2 || models.every(({ contextTokens }) => contextTokens === undefined))
    return models;
  const prompts = new Map<Provider, number>();
  const hasRoom = ({ provider, traits, contextTokens = Infinity }: Model): boolean => {
    const prompt = prompts.get(provider) ?? estimatePrompt(chat, provider.countMedia);
    prompts.set(provider, prompt);
    const output = Math.min(statedOutput(chat) ?? 0, traits.max_output_tokens ?? Infinity);
    return 0.75 * prompt + output <= contextTokens;
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
