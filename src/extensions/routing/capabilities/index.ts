// Models that lack what a request needs are no candidates: tools, JSON mode, log probabilities,
// images, a parameter that the provider would refuse. contract.md "Candidates".
import { moment, type Installer } from "../../../core/extension/installer.ts";
import { slots } from "../../../core/extension/places.ts";
import type { ChatRequest } from "../../../core/openai/request.ts";
import type { Capable, Model } from "../../../core/routing/model.ts";
import { fail } from "../../../core/schema/checker.ts";
import { requirementsOf } from "./requirements.ts";

export function install(gateway: Installer): void {
  gateway.fill(slots.capable, ({ installed }) => {
    const lackings = installed.listeners(lacking).map(({ call }) => call);
    return (models, chat, config) =>
      installed
        .listeners(adapted)
        .reduce((left, { call }) => call(left, chat, config), capable(models, chat, lackings));
  });
}

/** These models can serve a request. Returns them, some changed for this request. */
export const adapted = moment<Capable>("adapted");

/** What a model lacks for a request. */
export interface Lack {
  /** The field of the client's request that needs it. */
  readonly path: (string | number)[];
  /** For the client. */
  readonly message: string;
}

/**
 * What a model lacks because of its format, which only the format's extension knows. Undefined:
 * nothing, or it has another format than the listener's.
 */
export type LackOf = (
  model: Pick<Model, "traits" | "provider">,
  chat: ChatRequest,
) => Lack | undefined;
export const lacking = moment<LackOf>("lacking");

/**
 * The models that have all that the request needs. Throws a ValidationError if none has: it names
 * what no model has at all, or else the first requirement. There is at least one model.
 */
export function capable(
  models: readonly Model[],
  chat: ChatRequest,
  lackings: readonly LackOf[] = [],
): readonly Model[] {
  const requirements = requirementsOf(chat);
  const lackOf = (model: Model) => lackings.flatMap((call) => call(model, chat) ?? [])[0];
  const able = models.filter((model) => requirements.every((each) => !each.lackOf(model)));
  const found = able.filter((model) => !lackOf(model));
  if (found.length > 0) return found;
  const unmet = requirements.find((each) => models.every(each.lackOf));
  const lack = unmet ? undefined : lackOf(able[0] ?? models[0]!);
  if (lack) return fail("unsupported_value", lack.message, lack.path);
  const { path, ...first } = unmet ?? requirements[0]!;
  return fail("unsupported_value", models.map(first.lackOf).find(Boolean)!, path);
}
