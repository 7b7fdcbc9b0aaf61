// The models and aliases of one configuration, and the candidates of a request. contract.md
// "Routing aliases", "Candidates".
import { sha256 } from "../hash.ts";
import { ApiError } from "../openai/errors.ts";
import type { ChatRequest } from "../openai/request.ts";
import type { Traits } from "../providers/traits.ts";
import { cut } from "../schema/checker.ts";
import { noBreaker } from "./breaker.ts";
import {
  type CatalogServices,
  createProvider,
  type Model,
  type ModelAccess,
  type RoutingSettings,
} from "./model.ts";

export interface Catalog {
  /** By canonical name. */
  readonly models: ReadonlyMap<string, Model>;
  /**
   * The models that may serve a request, best first; at least one. Throws an ApiError or a
   * ValidationError that tells the client why there is none.
   */
  candidates(chat: ChatRequest, access: ModelAccess): readonly Model[];
  /** Canonical names and enabled aliases that an API key may use. */
  names(access: ModelAccess): readonly string[];
  /**
   * The models behind a name that a key may use, best first. Undefined: there is no such name.
   * Throws the 403.
   */
  modelsFor(name: string, access: ModelAccess): readonly Model[] | undefined;
}

/**
 * Raised when a change of the dialects may change what a model answers: it is a part of
 * system_fingerprint.
 */
const ADAPTER_VERSION = 3;

export function createCatalog(config: RoutingSettings, services: CatalogServices): Catalog {
  const models = createModels(config, services);
  const aliases = new Map<string, readonly Model[]>();
  for (const [name, { enabled, ranking }] of config.aliases) {
    const candidates = ranking.flatMap(({ rank, model }) => (rank ? [models.get(model)!] : []));
    if (enabled) aliases.set(name, candidates);
  }

  function modelsFor(name: string, access: ModelAccess): readonly Model[] | undefined {
    const model = models.get(name);
    const listed = model ? [model] : aliases.get(name);
    return listed && permitted(listed, name, access);
  }

  return {
    models,
    candidates(chat, access) {
      const allowed = modelsFor(chat.model, access);
      if (!allowed) throw noSuchModel(chat.model);
      if (allowed.length > 0) return services.capable?.(allowed, chat, config) ?? allowed;
      throw new ApiError("model_unavailable", `No model is available for '${chat.model}'.`, MODEL);
    },
    names: (access) =>
      [...models.keys(), ...aliases.keys()].filter((name) => access.models?.has(name) ?? true),
    modelsFor,
  };
}

/** The detail of an error of the request field `model`. */
const MODEL = { param: "model" };

export function noSuchModel(name: string): ApiError {
  const text = `The model ${JSON.stringify(cut(name, 80))} does not exist.`;
  return new ApiError("model_not_found", text, MODEL);
}

/** Creates the models of a configuration. Drops the breakers of models that have changed. */
function createModels(
  config: RoutingSettings,
  services: CatalogServices,
): ReadonlyMap<string, Model> {
  const { breakers, fingerprint } = services;
  // Providers first: if one cannot be created, the configuration in force keeps its breakers.
  const rows = [...config.models].map(([name, settings]) => {
    const provider = createProvider(settings, config, services);
    return { name, settings, provider };
  });
  const earlier = new Map(breakers);
  breakers.clear();
  const models = new Map<string, Model>();
  for (const { name, settings, provider } of rows) {
    const upstreamModel = settings.upstream_model ?? name;
    const { traits, provider: row } = settings;
    const same = [name, upstreamModel, provider.baseUrl, traits, config.providers.get(row)];
    const identity = sha256(JSON.stringify(same));
    const breaker = earlier.get(identity) ?? services.createBreaker?.(identity) ?? noBreaker;
    breakers.set(identity, breaker);
    models.set(name, {
      name,
      provider,
      address: addressOf(provider.baseUrl, traits, upstreamModel),
      upstreamModel,
      traits,
      reasoning: settings.reasoning,
      contextTokens: settings.context_tokens,
      highestPrice: () => settings.price,
      priceOf: () => settings.price,
      fingerprint: () => fingerprint([provider.name, upstreamModel, ADAPTER_VERSION]),
      enter: () => breaker.enter(config.breaker),
      status: () => breaker.status(config.breaker),
    });
  }
  return models;
}

function addressOf(baseUrl: string, traits: Traits, upstreamModel: string): Model["address"] {
  const segment = encodeURIComponent(upstreamModel).replaceAll("%40", "@"); // as in `m@20260101`
  const filled = (template: string | undefined): string | undefined =>
    template?.replaceAll("{model}", () => segment);
  const [whole, streamed = whole] = [filled(traits.path), filled(traits.stream_path)];
  const query = new URLSearchParams(traits.query).toString();
  return (path, stream) => {
    const address = baseUrl + ((stream ? streamed : whole) ?? path);
    if (query === "") return address;
    return `${address}${address.includes("?") ? "&" : "?"}${query}`;
  };
}

/**
 * An alias allows the models behind it, or those of them that the key also names. Throws the 403.
 */
function permitted(listed: readonly Model[], name: string, access: ModelAccess): readonly Model[] {
  const { models } = access;
  if (!models) return listed;
  if (!models.has(name))
    throw new ApiError("model_not_allowed", "This API key may not use this model.", MODEL);
  const named = listed.filter((model) => models.has(model.name));
  return named.length > 0 ? named : listed;
}
