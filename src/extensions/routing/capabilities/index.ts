// Models that lack what a request needs are no candidates: tools, JSON mode, log probabilities,
// images, a parameter that the provider would refuse. contract.md "Candidates".
import type { Config } from "../../../core/config.ts";
import { moment, type Installer } from "../../../core/extension/installer.ts";
import { slots } from "../../../core/extension/places.ts";
import type { ChatRequest } from "../../../core/openai/request.ts";
import type { Model } from "../../../core/routing/model.ts";
import { fail } from "../../../core/schema/checker.ts";
import { type MediaFault, requirementsOf } from "./requirements.ts";

export function install(gateway: Installer): void {
  gateway.fill(slots.capable, ({ installed, current }) => {
    const faults = installed.listeners(mediaFault).map(({ call }) => call);
    return (models, chat) =>
      installed
        .listeners(adapted)
        .reduce(
          (left, { call }) => call(left, chat, current().config),
          capable(models, chat, faults),
        );
  });
}

/** These models can serve a request. Returns them, some changed for this request. */
export const adapted =
  moment<(models: readonly Model[], chat: ChatRequest, config: Config) => readonly Model[]>(
    "adapted",
  );

/** Says which media a format does not take. */
export const mediaFault = moment<MediaFault>("mediaFault");

/**
 * The models that have all that the request needs. Throws a ValidationError if none has: it names
 * what no model has at all, or else the first requirement. There is at least one model.
 */
export function capable(
  models: readonly Model[],
  chat: ChatRequest,
  faults: readonly MediaFault[] = [],
): readonly Model[] {
  const requirements = requirementsOf(chat, faults);
  const found = models.filter((model) => requirements.every(({ lackOf }) => !lackOf(model)));
  if (found.length > 0) return found;
  const unmet = requirements.find(({ lackOf }) => models.every(lackOf)) ?? requirements[0]!;
  const [lack] = models.flatMap((model) => unmet.lackOf(model) ?? []);
  return fail("unsupported_value", lack!, unmet.path);
}
