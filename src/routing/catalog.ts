// Which models there are, who serves them, and which ones a name stands for: canonical names and aliases, SPEC.md "Routing
// aliases", DESIGN.md "Candidates".

import { createHash } from "node:crypto";
import type { Caller } from "../accounts/keys.ts";
import { estimatePrompt } from "../accounting/usage.ts";
import type { Capability, Config, ModelConfig, ProviderConfig } from "../config/schema.ts";
import { createDemoFetch } from "../demo/provider.ts";
import type { Dialect } from "../dialects/dialect.ts";
import { createOpenaiDialect } from "../dialects/openai.ts";
import type { Fetch } from "../http/fetch.ts";
import type { ChatRequest } from "../protocol/chat-request.ts";
import { fail } from "../protocol/checker.ts";
import { ApiError } from "../protocol/errors.ts";
import { createBreaker, type Breaker, type BreakerStatus, type Pass } from "./breaker.ts";
import { rank, type Ranked } from "./policy.ts";

/** Raised when a change of the dialects may change what a model answers: it is a part of system_fingerprint. */
const ADAPTER_VERSION = 1;

export interface Provider {
  readonly name: string;
  readonly dialect: Dialect;
  readonly fetch: Fetch;
  readonly baseUrl: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly timeouts: Config["timeouts"];
  /** Bound of one attempt, where the provider has its own; the request as a whole has another. */
  readonly attemptMs: number | undefined;
  readonly retry: Config["retry"];
}

export interface Model {
  readonly name: string;
  readonly provider: Provider;
  readonly upstreamModel: string;
  readonly reasoning: boolean;
  readonly supports: ReadonlySet<Capability>;
  readonly contextTokens: number | undefined;
  readonly price: ModelConfig["price"];
  readonly fingerprint: string;
  /** Leave for one attempt, if the model's breaker gives it. */
  enter(): Pass | undefined;
  status(): BreakerStatus;
}

export interface Catalog {
  /** The models that may serve the request, best first, never none; throws the ApiError or CheckError that says why not. */
  candidates(chat: ChatRequest, caller: Caller): readonly [Model, ...Model[]];
  /** Canonical names and enabled aliases that the caller may use. */
  names(caller: Caller): string[];
  readonly models: ReadonlyMap<string, Model>;
  /** Of every alias, enabled or not, all models with their rank and the reason for it. */
  readonly ranking: ReadonlyMap<string, readonly Ranked[]>;
}

/** The breakers: they outlive a configuration, as long as it is the same model at the same provider with the same key. */
export type Breakers = Map<string, Breaker>;

/** `monotonic` is the breakers' clock, in milliseconds. */
export function createCatalog(config: Config, fetch: Fetch, breakers: Breakers = new Map(), monotonic = () => performance.now()): Catalog {
  const providers = new Map([...config.providers].map(([name, provider]) => [name, createProvider(name, provider, config, fetch)]));
  const models = new Map([...config.models].map(([name, model]) => [name, createModel(name, model, providers.get(model.provider)!)]));
  const ranking = new Map([...config.aliases].map(([name, alias]) => [name, rank(config, alias)]));
  const aliases = new Map<string, readonly Model[]>();
  for (const [name, alias] of config.aliases) {
    if (alias.enabled) aliases.set(name, ranking.get(name)!.flatMap(({ model, rank }) => (rank === null ? [] : [models.get(model)!])));
  }

  const breakersInUse = new Set([...models.values()].map(breakerKey));
  for (const key of breakers.keys()) if (!breakersInUse.has(key)) breakers.delete(key);

  function createModel(name: string, model: ModelConfig, provider: Provider): Model {
    const upstreamModel = model.upstream_model ?? name;
    const identity = JSON.stringify([provider.name, upstreamModel, ADAPTER_VERSION]);
    const key = breakerKey({ name, provider, upstreamModel });
    const breaker = breakers.get(key) ?? createBreaker(monotonic);
    breakers.set(key, breaker);
    return {
      name,
      provider,
      upstreamModel,
      reasoning: model.reasoning,
      supports: new Set(model.supports),
      contextTokens: model.context_tokens,
      price: model.price,
      fingerprint: `fp_${createHash("sha256").update(identity).digest("hex").slice(0, 12)}`,
      enter: () => breaker.enter(config.breaker),
      status: () => breaker.status(config.breaker),
    };
  }

  return {
    candidates(chat, caller) {
      const canonical = models.get(chat.model);
      const listed = canonical ? [canonical] : aliases.get(chat.model);
      if (!listed) throw new ApiError("model_not_found", `The model ${JSON.stringify(shortened(chat.model))} does not exist.`, { param: "model" });
      const allowed = allowedModels(listed, chat.model, caller);
      const needs = needsOf(chat);
      const able = allowed.filter((model) => needs.every((need) => model.supports.has(need.capability)));
      const [first, ...others] = withRoom(able, chat);
      if (first) return [first, ...others];
      if (allowed.length === 0) throw new ApiError("model_unavailable", `No model is available for '${chat.model}'.`, { param: "model" });
      const unmet = needs.find((need) => !allowed.some((model) => model.supports.has(need.capability))) ?? needs[0]!;
      return fail("unsupported_value", unmet.refusal, unmet.path);
    },
    models,
    ranking,
    names: (caller) => [...models.keys(), ...aliases.keys()].filter((name) => !caller.models || caller.models.has(name)),
  };
}

/**
 * The candidates that have room for the prompt, by a cheap estimate that is rather too low than too high. If none seems to,
 * all stay: the provider counts better.
 */
function withRoom(models: readonly Model[], chat: ChatRequest): readonly Model[] {
  if (models.length < 2 || models.every(({ contextTokens }) => contextTokens === undefined)) return models;
  const tokens = 0.75 * estimatePrompt(chat) + (chat.maxTokens ?? 0);
  const roomy = models.filter(({ contextTokens = Infinity }) => tokens <= contextTokens);
  return roomy.length > 0 ? roomy : models;
}

/**
 * A key's `models` are the names it may send. A key that names an alias may use the models behind it; if it also names
 * some of these, only those.
 */
function allowedModels(listed: readonly Model[], name: string, { models }: Caller): readonly Model[] {
  if (!models) return listed;
  if (!models.has(name)) throw new ApiError("model_not_allowed", "This API key may not use this model.", { param: "model" });
  const named = listed.filter((model) => models.has(model.name));
  return named.length > 0 ? named : listed;
}

interface Need {
  readonly capability: Capability;
  readonly path: (string | number)[];
  readonly refusal: string;
}

/** What a request asks for that not every model can do, with the words for a client whose model cannot. */
function needsOf(chat: ChatRequest): Need[] {
  const needs: Need[] = [];
  const need = (capability: Capability, path: Need["path"], refusal: string) => needs.push({ capability, path, refusal });
  if (chat.tools) need("tools", ["tools"], "this model does not support tools");
  const format = chat.response_format?.type;
  // LangChain for Python looks for this very phrase (WIRE 1.5).
  if (format) need(format, ["response_format"], `'response_format' of type '${format}' is not supported with this model`);
  if (chat.logprobs) need("logprobs", ["logprobs"], "this model does not support logprobs");
  chat.messages.forEach((message, index) => {
    if (typeof message.content === "string") return;
    for (const part of message.content ?? []) {
      const path = ["messages", index, "content"];
      if (part.type === "image_url") need("images", path, "this model does not take images");
      if (part.type === "input_audio") need("audio", path, "this model does not take audio");
      if (part.type === "file") need("files", path, "this model does not take files");
    }
  });
  return needs;
}

function createProvider(name: string, provider: ProviderConfig, config: Config, fetch: Fetch): Provider {
  return {
    name,
    dialect: createOpenaiDialect({ thinking: provider.dialect === "demo" ? "thinking" : provider.thinking }),
    fetch: provider.dialect === "demo" ? createDemoFetch({ paceMs: provider.pace_ms }) : fetch,
    baseUrl: provider.base_url ?? "http://demo.invalid",
    headers: provider.api_key === undefined ? {} : { Authorization: `Bearer ${provider.api_key}` },
    timeouts: { ...config.timeouts, ...given(provider.timeouts) },
    attemptMs: provider.timeouts?.total_ms,
    retry: { ...config.retry, ...given(provider.retry) },
  };
}

const breakerKey = ({ name, provider, upstreamModel }: Pick<Model, "name" | "provider" | "upstreamModel">) =>
  JSON.stringify([name, upstreamModel, provider.baseUrl, provider.headers]);

const given = (fields: object | undefined) => Object.fromEntries(Object.entries(fields ?? {}).filter(([, value]) => value !== undefined));

const shortened = (name: string): string => (name.length > 80 ? `${name.slice(0, 77)}...` : name);
