// Which models there are, who serves them, and which a name stands for. SPEC.md "Routing aliases", DESIGN.md "Candidates".
import type { Caller } from "../accounts/keys.ts";
import type { MediaRules } from "../openai/usage.ts";
import { estimatePrompt } from "../ledger/meter.ts";
import type { Config, ModelConfig, ProviderConfig } from "../config/schema.ts";
import { dialectNamed, VENDORS } from "../config/dialects.ts";
import type { SignatureStore } from "../providers/dialect.ts";
import { createSignatureStore } from "../providers/signatures.ts";
import type { Traits } from "../providers/traits.ts";
import { traitsOf, withOverrides } from "../providers/vendors.ts";
import type { Transport } from "../upstream/fetch.ts";
import type { ChatRequest } from "../openai/request.ts";
import { cut, fail } from "../schema/checker.ts";
import { ApiError } from "../openai/errors.ts";
import { createBreaker, type Breaker } from "./breaker.ts";
import type { Fingerprint } from "./fingerprint.ts";
import { rank } from "./policy.ts";
import { redactionOf, type Redact } from "./redact.ts";

const ADAPTER_VERSION = 3; // raised when a change of the dialects may change what a model answers: it is a part of system_fingerprint
export type Provider = ReturnType<typeof createProvider>;
export type Model = ReturnType<typeof createModel>;
export type Catalog = ReturnType<typeof createCatalog>;
/** What outlives a configuration: breakers, as long as it is the same model at the same provider with the same key; the key of
 * `fingerprint`. */
export const createMemory = (fingerprint: Fingerprint) => ({
  breakers: new Map<string, Breaker>(),
  signatures: createSignatureStore(),
  fingerprint,
});

/** `monotonic` is the breakers' clock, in milliseconds. */
export function createCatalog(
  config: Config,
  send: Transport,
  { breakers, signatures, fingerprint }: ReturnType<typeof createMemory>,
  monotonic = () => performance.now(),
) {
  const redact = redactionOf(config);
  const providers = new Map(
    [...config.providers].map(([name, provider]) => [
      name,
      createProvider(name, provider, config, send, signatures, redact),
    ]),
  );
  const models = new Map<string, Model>();
  const earlier = new Map(breakers);
  breakers.clear();
  for (const [name, settings] of config.models) {
    const provider = providers.get(settings.provider)!;
    const key = JSON.stringify([
      name,
      settings.upstream_model ?? name,
      provider.baseUrl,
      provider.headers,
    ]);
    const breaker = earlier.get(key) ?? createBreaker(monotonic);
    breakers.set(key, breaker);
    models.set(
      name,
      createModel(
        name,
        settings,
        provider,
        traitsOf(VENDORS, config.providers.get(settings.provider)!, settings),
        breaker,
        config.breaker,
        fingerprint,
      ),
    );
  }
  const ranking = new Map([...config.aliases].map(([name, alias]) => [name, rank(config, alias)]));
  const candidatesOf = (alias: string) =>
    ranking.get(alias)!.flatMap(({ model, rank }) => (rank === null ? [] : [models.get(model)!]));
  const aliases = new Map(
    [...config.aliases].flatMap(([name, { enabled }]) =>
      enabled ? [[name, candidatesOf(name)]] : [],
    ),
  );

  return {
    /** The models that may serve the request, best first, never none; throws the ApiError or ValidationError that says why not. */
    candidates(chat: ChatRequest, caller: Caller): readonly Model[] {
      const canonical = models.get(chat.model);
      const listed = canonical ? [canonical] : aliases.get(chat.model);
      if (!listed) throw noSuchModel(chat.model);
      const allowed = allowedModels(listed, chat.model, caller);
      const needs = needsOf(chat);
      const able = allowed.filter((model) => needs.every((need) => need.met(model.traits)));
      if (able.length > 0) return withRoom(able, chat);
      if (allowed.length === 0)
        throw new ApiError("model_unavailable", `No model is available for '${chat.model}'.`, {
          param: "model",
        });
      const unmet =
        needs.find((need) => !allowed.some((model) => need.met(model.traits))) ?? needs[0]!;
      return fail("unsupported_value", unmet.words, unmet.path);
    },
    models,
    ranking, // of every alias, enabled or not, all models with their rank and the reason for it
    /** Canonical names and enabled aliases that the caller may use. */
    names: (caller: Caller) =>
      [...models.keys(), ...aliases.keys()].filter(
        (name) => !caller.models || caller.models.has(name),
      ),
    /** What a client may expect of a name that `names` has for this caller. */
    abilities(name: string, caller: Caller): Abilities {
      const canonical = models.get(name);
      if (canonical) return abilitiesOf([canonical]);
      return abilitiesOf(allowedModels(aliases.get(name) ?? [], name, caller));
    },
  };
}

export const noSuchModel = (name: string): ApiError =>
  new ApiError("model_not_found", `The model ${JSON.stringify(cut(name, 80))} does not exist.`, {
    param: "model",
  });

interface Abilities {
  /** In tokens. Of an alias the smallest that is known of its candidates, so that a prompt has room whoever serves; null: none is known. */
  readonly context_length: number | null;
  /** Most tokens of a reply; of an alias, and where none is known, as above. */
  readonly max_output_tokens: number | null;
  /** Of an alias what at least one candidate can do, because a request that needs it goes to such a one. */
  readonly capabilities: readonly string[];
}

function abilitiesOf(candidates: readonly Model[]): Abilities {
  const smallest = (known: readonly (number | undefined)[]): number | null => {
    const numbers = known.filter((each) => each !== undefined);
    return numbers.length === 0 ? null : Math.min(...numbers);
  };
  return {
    context_length: smallest(candidates.map(({ contextTokens }) => contextTokens)),
    max_output_tokens: smallest(candidates.map(({ traits }) => traits.max_output_tokens)),
    capabilities: [...new Set(candidates.flatMap(capabilitiesOf))].sort(),
  };
}

function capabilitiesOf({ traits, reasoning }: Model): readonly string[] {
  const hasLogprobs = !traits.think_tags && !traits.omit.includes("logprobs");
  const supported = traits.supports.filter((name) => name !== "logprobs" || hasLogprobs);
  return reasoning ? [...supported, "reasoning"] : supported;
}

const orAll = <T>(some: readonly T[], all: readonly T[]): readonly T[] =>
  some.length > 0 ? some : all;
/** Those with room for the prompt, by a cheap estimate that is rather too low; all if none seems to: the provider counts better. */
function withRoom(models: readonly Model[], chat: ChatRequest): readonly Model[] {
  if (models.length < 2 || models.every(({ contextTokens }) => contextTokens === undefined))
    return models;
  const prompts = new Map<MediaRules, number>(); // the estimate goes through all of the prompt, so once for each way to count
  const tokensFor = ({ provider: { mediaRules } }: Model): number => {
    const prompt = prompts.get(mediaRules) ?? estimatePrompt(chat, mediaRules);
    prompts.set(mediaRules, prompt);
    return 0.75 * prompt + (chat.maxTokens ?? 0);
  };
  return orAll(
    models.filter((model) => tokensFor(model) <= (model.contextTokens ?? Infinity)),
    models,
  );
}

/** Of the candidates that are left after a model has said that the prompt is too long for it: those that are known to have more
 * room, in their order, then those of unknown size, in theirs. One that is known to have no more room is left out. `full`: the
 * models that have said so. Where the size of none of these is known, every known size may be more. */
export function withMoreRoom(models: readonly Model[], full: readonly Model[]): readonly Model[] {
  const largest = Math.max(0, ...full.map(({ contextTokens }) => contextTokens ?? 0));
  const larger = models.filter(({ contextTokens }) => (contextTokens ?? 0) > largest);
  const unknown = models.filter(({ contextTokens }) => contextTokens === undefined);
  return [...larger, ...unknown];
}

/** A key's `models` are the names it may send; an alias gives it the models behind it or, if it also names some of these, those. */
function allowedModels(
  listed: readonly Model[],
  name: string,
  { models }: Caller,
): readonly Model[] {
  if (!models) return listed;
  if (!models.has(name))
    throw new ApiError("model_not_allowed", "This API key may not use this model.", {
      param: "model",
    });
  return orAll(
    listed.filter((model) => models.has(model.name)),
    listed,
  );
}

const MEDIA = { image_url: "images", input_audio: "audio", file: "files" } as const;
/** `words` are for the client, where no model can. */
const need = (
  asked: unknown,
  path: (string | number)[],
  met: (traits: Traits) => boolean,
  words = `this model does not support ${path}`,
) => ({ asked, path, met, words });
/** Parameters without which the reply would mean something else; others are left out where they are not known. */
const MEANINGFUL = ["logprobs", "stop", "frequency_penalty", "presence_penalty"] as const;
const able =
  (name?: Traits["supports"][number]) =>
  ({ supports }: Traits) =>
    supports.some((each) => each === name);
/** The kinds of media in a conversation, each with the first message that has it. */
function mediaIn(messages: ChatRequest["messages"]) {
  const kinds = new Map<(typeof MEDIA)[keyof typeof MEDIA], number>();
  for (const [index, { content }] of messages.entries()) {
    if (typeof content === "string" || !content) continue;
    for (const { type } of content) {
      if (type !== "text" && !kinds.has(MEDIA[type])) kinds.set(MEDIA[type], index);
    }
  }
  return kinds;
}
/** What a request asks for that not every model can do. */
function needsOf(chat: ChatRequest) {
  const { tools, tool_choice: choice, response_format: format, logprobs } = chat;
  const forced = choice === "required" || typeof choice === "object";
  return [
    need(tools, ["tools"], able("tools")),
    need(
      forced,
      ["tool_choice"],
      ({ tool_choice }) => tool_choice !== "auto",
      "with this model a tool cannot be forced",
    ),
    // LangChain for Python looks for this very phrase (WIRE 1.5).
    need(
      format,
      ["response_format"],
      able(format?.type),
      `'response_format' of type '${format?.type}' is not supported with this model`,
    ),
    // Those of thoughts that are left out of the text would give them away.
    need(logprobs, ["logprobs"], (traits) => able("logprobs")(traits) && !traits.think_tags),
    ...MEANINGFUL.filter((name) => chat[name]).map((name) =>
      need(true, [name], ({ omit }) => !omit.includes(name)),
    ),
    ...[...mediaIn(chat.messages)].map(([kind, index]) =>
      need(true, ["messages", index, "content"], able(kind), `this model does not take ${kind}`),
    ),
  ].filter(({ asked }) => asked);
}

function createProvider(
  name: string,
  provider: ProviderConfig,
  config: Config,
  send: Transport,
  signatures: SignatureStore,
  redact: Redact,
) {
  const definition = dialectNamed(provider.dialect)!;
  /** What one provider signed another refuses, and one account's thoughts are nothing for another. */
  const dialectFor = (account: string) => {
    const mine = (id: string) => JSON.stringify([provider.base_url, account, id]);
    return definition.create({
      get: (id) => signatures.get(mine(id)),
      set: (id, text) => signatures.set(mine(id), text),
    });
  };
  return {
    name,
    dialectFor,
    /** What it says goes through this before anybody reads it. */
    redact,
    mediaRules: definition.mediaRules,
    baseUrl: provider.base_url,
    send: definition.transport?.({ paceMs: provider.pace_ms }) ?? send,
    headers: provider.api_key === undefined ? undefined : dialectFor("").auth(provider.api_key),
    timeouts: withOverrides(config.timeouts, provider.timeouts),
    retry: withOverrides(config.retry, provider.retry),
    maxReplyBytes: config.server.max_reply_bytes,
    attemptMs: provider.timeouts?.total_ms, // bound of one attempt, where the provider has its own; the request as a whole has another
  };
}

function createModel(
  name: string,
  settings: ModelConfig,
  provider: Provider,
  traits: Traits,
  breaker: Breaker,
  rules: Config["breaker"],
  fingerprintOf: Fingerprint,
) {
  let fingerprint: string | undefined;
  const {
    upstream_model: upstreamModel = name,
    context_tokens: contextTokens,
    reasoning,
    price,
  } = settings;
  return {
    name,
    provider,
    upstreamModel,
    traits,
    reasoning,
    contextTokens,
    price,
    /** The system_fingerprint of its replies. */
    get fingerprint(): string {
      fingerprint ??= fingerprintOf([provider.name, upstreamModel, ADAPTER_VERSION]);
      return fingerprint;
    },
    /** Leave for one attempt, if the model's breaker gives it; and how that stands. */
    enter: () => breaker.enter(rules),
    status: () => breaker.status(rules),
  };
}
