// Excludes models that lack a capability that a request needs: tools, JSON mode, log probabilities,
// images, a parameter that the provider would refuse. contract.md "Candidates".
import { hook, type Installer } from "../../../core/extension/installer.ts";
import { slots } from "../../../core/extension/places.ts";
import type { ChatRequest } from "../../../core/openai/request.ts";
import type { Capable, Model } from "../../../core/routing/model.ts";
import { fail } from "../../../core/schema/checker.ts";
import { requirementsOf, type FindLack, type Requirement } from "./requirements.ts";

export type { FindLack } from "./requirements.ts";

export function install(gateway: Installer): void {
  gateway.fill(slots.capable, (installed) => {
    const lackings = installed.listeners(findLack).map(({ call }) => call);
    return (models, chat, config) =>
      installed
        .listeners(adaptModels)
        .reduce((left, { call }) => call(left, chat, config), capable(models, chat, lackings));
  });
}

/** Listeners get the models that can serve a request, and may return some of them adapted to it. */
export const adaptModels = hook<Capable>("adaptModels");

/**
 * What a model lacks because of its format, which only the format's extension knows. A listener
 * returns undefined if the model lacks nothing or has another format.
 */
export const findLack = hook<FindLack>("findLack");

/**
 * The models that meet all requirements of the request. If no model does, throws a ValidationError
 * that names one unmet requirement: of the models that fail only because of their format, or, if
 * there are none, of all models. A requirement that all of these fail to meet is preferred.
 */
export function capable(
  models: readonly Model[],
  chat: ChatRequest,
  lackings: readonly FindLack[] = [],
): readonly Model[] {
  const ofFormats: Requirement = (model) => lackings.flatMap((call) => call(model, chat) ?? [])[0];
  const ofModels = requirementsOf(chat);
  const able = models.filter((model) => !ofModels.some((lackOf) => lackOf(model)));
  const found = able.filter((model) => !ofFormats(model));
  if (found.length > 0) return found;
  const asked = able.length > 0 ? able : models;
  const all = [...ofModels, ofFormats];
  const unmet =
    all.find((lackOf) => asked.every(lackOf)) ?? all.find((lackOf) => asked.some(lackOf))!;
  const { message, path } = asked.flatMap((model) => unmet(model) ?? [])[0]!;
  return fail("unsupported_value", message, path);
}
