// Which models there are, who serves them, and which a name stands for. SPEC.md "Routing aliases", DESIGN.md "Candidates".
import type { Caller } from "../accounts/keys.ts";
import { estimatePrompt } from "../accounting/usage.ts";
import { sha256, type Capability, type Config, type ModelConfig, type ProviderConfig } from "../config/schema.ts";
import { createDemoFetch } from "../demo/provider.ts";
import { createOpenaiDialect } from "../dialects/openai.ts";
import type { Fetch } from "../http/fetch.ts";
import type { ChatRequest } from "../protocol/chat-request.ts";
import { fail } from "../protocol/checker.ts";
import { ApiError } from "../protocol/errors.ts";
import { createBreaker, type Breaker } from "./breaker.ts";
import { rank } from "./policy.ts";

/** Raised when a change of the dialects may change what a model answers: it is a part of system_fingerprint. */
const ADAPTER_VERSION = 1;
export type Provider = ReturnType<typeof createProvider>;
export type Model = ReturnType<typeof createModel>;
export type Catalog = ReturnType<typeof createCatalog>;
/** The breakers: they outlive a configuration, as long as it is the same model at the same provider with the same key. */
export type Breakers = Map<string, Breaker>;

/** `monotonic` is the breakers' clock, in milliseconds. */
export function createCatalog(config: Config, fetch: Fetch, breakers: Breakers = new Map(), monotonic = () => performance.now()) {
  const providers = new Map([...config.providers].map(([name, provider]) => [name, createProvider(name, provider, config, fetch)]));
  const models = new Map<string, Model>();
  const earlier = new Map(breakers);
  breakers.clear();
  for (const [name, settings] of config.models) {
    const provider = providers.get(settings.provider)!;
    const key = JSON.stringify([name, settings.upstream_model ?? name, provider.baseUrl, provider.headers]);
    const breaker = earlier.get(key) ?? createBreaker(monotonic);
    breakers.set(key, breaker);
    models.set(name, createModel(name, settings, provider, breaker, config.breaker));
  }
  const ranking = new Map([...config.aliases].map(([name, alias]) => [name, rank(config, alias)]));
  const aliases = new Map<string, readonly Model[]>();
  for (const [name, alias] of config.aliases) {
    if (alias.enabled) aliases.set(name, ranking.get(name)!.flatMap(({ model, rank }) => (rank === null ? [] : [models.get(model)!])));
  }

  return {
    /** The models that may serve the request, best first, never none; throws the ApiError or CheckError that says why not. */
    candidates(chat: ChatRequest, caller: Caller): readonly [Model, ...Model[]] {
      const canonical = models.get(chat.model);
      const listed = canonical ? [canonical] : aliases.get(chat.model);
      if (!listed) throw new ApiError("model_not_found", `The model ${shown(chat.model)} does not exist.`, { param: "model" });
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
    /** Of every alias, enabled or not, all models with their rank and the reason for it. */
    ranking,
    /** Canonical names and enabled aliases that the caller may use. */
    names: (caller: Caller) => [...models.keys(), ...aliases.keys()].filter((name) => !caller.models || caller.models.has(name)),
  };
}

/** Those with room for the prompt, by a cheap estimate that is rather too low; all if none seems to: the provider counts better. */
function withRoom(models: readonly Model[], chat: ChatRequest): readonly Model[] {
  if (models.length < 2 || models.every(({ contextTokens }) => contextTokens === undefined)) return models;
  const tokens = 0.75 * estimatePrompt(chat) + (chat.maxTokens ?? 0);
  const roomy = models.filter(({ contextTokens = Infinity }) => tokens <= contextTokens);
  return roomy.length > 0 ? roomy : models;
}

/** A key's `models` are the names it may send; an alias gives it the models behind it or, if it also names some of these, those. */
function allowedModels(listed: readonly Model[], name: string, { models }: Caller): readonly Model[] {
  if (!models) return listed;
  if (!models.has(name)) throw new ApiError("model_not_allowed", "This API key may not use this model.", { param: "model" });
  const named = listed.filter((model) => models.has(model.name));
  return named.length > 0 ? named : listed;
}

const MEDIA = { image_url: "images", input_audio: "audio", file: "files" } as const;

/** What a request asks for that not every model can do, with the words for a client whose model cannot. */
function needsOf(chat: ChatRequest) {
  const needs: { capability: Capability; path: (string | number)[]; refusal: string }[] = [];
  if (chat.tools) needs.push({ capability: "tools", path: ["tools"], refusal: "this model does not support tools" });
  const format = chat.response_format?.type;
  if (format) {
    // LangChain for Python looks for this very phrase (WIRE 1.5).
    const refusal = `'response_format' of type '${format}' is not supported with this model`;
    needs.push({ capability: format, path: ["response_format"], refusal });
  }
  if (chat.logprobs) needs.push({ capability: "logprobs", path: ["logprobs"], refusal: "this model does not support logprobs" });
  chat.messages.forEach(({ content }, index) => {
    if (typeof content === "string" || content === null) return;
    for (const part of content) {
      if (part.type === "text") continue;
      const capability = MEDIA[part.type];
      needs.push({ capability, path: ["messages", index, "content"], refusal: `this model does not take ${capability}` });
    }
  });
  return needs;
}

function createProvider(name: string, provider: ProviderConfig, config: Config, fetch: Fetch) {
  const isDemo = provider.dialect === "demo";
  return {
    name,
    dialect: createOpenaiDialect({ thinking: isDemo ? "thinking" : provider.thinking }),
    fetch: isDemo ? createDemoFetch({ paceMs: provider.pace_ms }) : fetch,
    baseUrl: provider.base_url ?? "http://demo.invalid",
    headers: provider.api_key === undefined ? undefined : { Authorization: `Bearer ${provider.api_key}` },
    timeouts: overridden(config.timeouts, provider.timeouts),
    /** Bound of one attempt, where the provider has its own; the request as a whole has another. */
    attemptMs: provider.timeouts?.total_ms,
    retry: overridden(config.retry, provider.retry),
  };
}

const overridden = <T extends object>(general: T, own: object = {}): T =>
  ({ ...general, ...Object.fromEntries(Object.entries(own).filter(([, value]) => value !== undefined)) });

function createModel(name: string, settings: ModelConfig, provider: Provider, breaker: Breaker, rules: Config["breaker"]) {
  const upstreamModel = settings.upstream_model ?? name;
  return {
    name, provider, upstreamModel,
    reasoning: settings.reasoning,
    supports: new Set(settings.supports),
    contextTokens: settings.context_tokens,
    price: settings.price,
    fingerprint: `fp_${sha256(JSON.stringify([provider.name, upstreamModel, ADAPTER_VERSION])).slice(0, 12)}`,
    /** Leave for one attempt, if the model's breaker gives it. */
    enter: () => breaker.enter(rules),
    status: () => breaker.status(rules),
  };
}

const shown = (name: string): string => JSON.stringify(name.length > 80 ? `${name.slice(0, 77)}...` : name);
