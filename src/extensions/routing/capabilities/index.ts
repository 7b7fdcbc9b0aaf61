// Models that lack what a request needs are no candidates: tools, JSON mode, log probabilities,
// images, a parameter that the provider would refuse. contract.md "Candidates".
import type { Config } from "../../../core/config.ts";
import { moment, type Installer } from "../../../core/extension/installer.ts";
import { slots } from "../../../core/extension/places.ts";
import type { ChatRequest } from "../../../core/openai/request.ts";
import type { Model } from "../../../core/routing/model.ts";
import { fail } from "../../../core/schema/checker.ts";
import { requirementsOf } from "./requirements.ts";

export function install(gateway: Installer): void {
  gateway.fill(
    slots.capable,
    ({ installed, current }) =>
      (models, chat) =>
        installed
          .listeners(adapted)
          .reduce((left, { call }) => call(left, chat, current().config), capable(models, chat)),
  );
}

/** These models can serve a request. Returns them, some changed for this request. */
export const adapted =
  moment<(models: readonly Model[], chat: ChatRequest, config: Config) => readonly Model[]>(
    "adapted",
  );

/**
 * The models that have all that the request needs. Throws a ValidationError if none has: it names
 * what no model has at all, or else the first requirement. There is at least one model.
 */
export function capable(models: readonly Model[], chat: ChatRequest): readonly Model[] {
  const requirements = requirementsOf(chat);
  const found = models.filter((model) =>
    requirements.every((requirement) => requirement.satisfiedBy(model)),
  );
  if (found.length > 0) return found;
  const unmet =
    requirements.find(({ satisfiedBy }) => !models.some(satisfiedBy)) ?? requirements[0]!;
  return fail("unsupported_value", unmet.message, unmet.path);
}
