// A model and the provider that serves it, and the settings that they are made from. A checked
// configuration has all of these settings, so it can be passed as it is.
import type { CountMedia } from "../ledger/meter.ts";
import type { Price } from "../ledger/price.ts";
import type { ChatRequest } from "../openai/request.ts";
import type { Usage } from "../openai/usage.ts";
import type { Dialect, DialectDefinition, Target } from "../providers/dialect.ts";
import type { TraitOverrides, Traits } from "../providers/traits.ts";
import type { JsonExcess } from "../schema/large-json.ts";
import type { Transport } from "../upstream/transport.ts";
import { VERSION } from "../version.ts";
import type { Breaker, BreakerSettings, BreakerStatus, Pass } from "./breaker.ts";
import type { Fingerprint } from "./fingerprint.ts";

/** A provider's own values of settings. Absent: those of the whole configuration. */
type Overrides<T> = { readonly [name in keyof T]?: T[name] | undefined };

/** All in milliseconds. */
export interface TimeoutSettings {
  /** To make a new connection. */
  readonly connect_ms: number;
  /** From the sent request to the first delta of a stream, or the first byte of a whole reply. */
  readonly first_token_ms: number;
  /** Between two pieces of a reply. */
  readonly idle_ms: number;
  /** For the request and all of its attempts. In a provider's settings: for one attempt. */
  readonly total_ms: number;
  /** From the end of a reply to its usage and the end of its stream. */
  readonly closing_ms: number;
  /** How long a stream is read on after its client left. 0: not at all. */
  readonly leave_ms: number;
}

export interface RetrySettings {
  /** How many times the same model is asked again. */
  readonly max_retries: number;
  /** Milliseconds before the first retry. The wait doubles with each further one. */
  readonly backoff_ms: number;
  /** The longest wait in milliseconds. A provider that asks for more is not asked again. */
  readonly max_wait_ms: number;
}

export interface ProviderSettings extends TraitOverrides {
  /** The vendor whose preset applies. Absent: the dialect's own preset. */
  readonly vendor?: string | undefined;
  /** A name in the table of dialects. */
  readonly dialect: string;
  /** Without a slash at its end. */
  readonly base_url: string;
  /** Absent: requests carry no key. */
  readonly api_key?: string | undefined;
  /** The cloud region that signatures name. Absent: there is none. */
  readonly region?: string | undefined;
  /** Timeouts that differ from the configuration's. Absent: none does. */
  readonly timeouts?: Overrides<TimeoutSettings> | undefined;
  /** Settings that differ from the configuration's. Absent: none does. */
  readonly retry?: Overrides<RetrySettings> | undefined;
}

export interface ModelSettings {
  /** A name in RoutingSettings.providers. */
  readonly provider: string;
  /** The vendor's traits, with the overrides of the provider and of the model. */
  readonly traits: Traits;
  /** The wire format in which the provider serves this model. Absent: the provider's. */
  readonly dialect?: string | undefined;
  /** The address at which the provider serves this model. Absent: the provider's. */
  readonly base_url?: string | undefined;
  /** The provider's name of the model. Absent: the model's own name. */
  readonly upstream_model?: string | undefined;
  /** Whether the model can think. */
  readonly reasoning: boolean;
  /** Size of the context window in tokens. Absent: unknown. */
  readonly context_tokens?: number | undefined;
  /** Absent: the model costs nothing. */
  readonly price?: Price | undefined;
}

export interface RankedModel {
  /** A name in RoutingSettings.models. */
  readonly model: string;
  /** From 1, the best. Null: the model is not a candidate. */
  readonly rank: number | null;
  /** The reason for the rank, for the operator. */
  readonly why: string;
}

export interface AliasSettings {
  /** The policy that ranks its models, for the operator. Absent: it has a list of its own. */
  readonly policy?: "reasoning" | "value" | "fastest" | undefined;
  /** Its models by their ranks, best first. */
  readonly ranking: readonly RankedModel[];
  /** False: clients get the answer for an unknown model, a 404 (errors.md, model_not_found). */
  readonly enabled: boolean;
}

export interface RoutingSettings {
  /** By canonical name, in the order of the configuration. */
  readonly models: ReadonlyMap<string, ModelSettings>;
  /** By name, as ModelSettings.provider has it. */
  readonly providers: ReadonlyMap<string, ProviderSettings>;
  /** By name, such as `auto/chat`. contract.md "Routing aliases". */
  readonly aliases: ReadonlyMap<string, AliasSettings>;
  /** For providers that state none of their own. */
  readonly timeouts: TimeoutSettings;
  /** For providers that state none of their own. */
  readonly retry: RetrySettings;
  /** For every model, each with a breaker of its own. contract.md "Breaker". */
  readonly breaker: BreakerSettings;
  /** `max_reply_bytes`: bytes of a provider's whole reply. */
  readonly server: { readonly max_reply_bytes: number };
  /** The currency of prices, three capital letters. */
  readonly currency: string;
}

/** The names of models and aliases that an API key may use. */
export interface ModelAccess {
  /** Undefined: all. */
  readonly models: ReadonlySet<string> | undefined;
}

/** Removes secrets from a provider's text. */
export type Redact = (text: string) => string;

export interface Provider {
  /** The operator's name for it. Clients never see it (wire.md "Error body"). */
  readonly name: string;
  /** The name of its wire format. */
  readonly dialect: string;
  /** Paths of requests are appended to it. */
  readonly baseUrl: string;
  /** The headers of every request except Accept, the provider's key included. */
  readonly headers: Readonly<Record<string, string>>;
  /** The configuration's timeouts, with the provider's overrides. */
  readonly timeouts: TimeoutSettings;
  /** The configuration's retry settings, with the provider's overrides. */
  readonly retry: RetrySettings;
  /** The most milliseconds of one attempt. Undefined: only the whole request has a bound. */
  readonly attemptMs: number | undefined;
  /** The most bytes of a whole reply. */
  readonly maxReplyBytes: number;
  /** Estimates media tokens by the rules of the dialect; 0 without an estimator. */
  readonly countMedia: CountMedia;
  /** The gateway's transport, with what extensions put around it for this provider. */
  readonly transport: Transport;
  /** As in CatalogServices. */
  readonly redact: Redact | undefined;
  /** As slots.jsonExcess. */
  readonly jsonExcess: JsonExcess | undefined;
  /** The dialect for requests of one account. */
  dialectFor(account: string): Dialect;
}

export interface Model extends Target {
  /** Its canonical name. */
  readonly name: string;
  /** The provider that serves it. */
  readonly provider: Provider;
  /** The highest price with at most `promptTokens` in the prompt. Undefined: it costs nothing. */
  highestPrice(promptTokens: number): Price | undefined;
  /** The price of a reply with these tokens. */
  priceOf(usage: Usage): Price | undefined;
  /** The address of a request for it. `path`: the format's own, as in ProviderRequest. */
  address(path: string, stream: boolean): string;
  /** The system_fingerprint of its replies. */
  fingerprint(): string;
  /** A pass for one attempt. Undefined: the model's breaker is open. */
  enter(): Pass | undefined;
  /** The state of the model's breaker. */
  status(): BreakerStatus;
}

/** Returns the models that can serve a request, best first; at least one. */
export type Capable = (models: Models, chat: ChatRequest, config: RoutingSettings) => Models;
/** Candidates, best first. */
export type Models = readonly Model[];

/** The provider that a transport calls. */
export interface Destination {
  /** As Provider.name. */
  readonly provider: string;
  /** The dialect of the model that is asked, as Provider.dialect. */
  readonly dialect: string;
  /** The provider's checked row of the configuration. */
  readonly settings: ProviderSettings;
  /** The whole checked configuration. */
  readonly config: object;
}

/** Returns the transport for a destination: the given one, or a wrapper around it. */
export type Reach = (destination: Destination, transport: Transport) => Transport;

export interface CatalogServices {
  /** By name. */
  readonly dialects: ReadonlyMap<string, DialectDefinition>;
  /** The gateway's transport. `reach` may wrap or replace it for a provider. */
  readonly transport: Transport;
  /** As hooks.reach, for all extensions. */
  readonly reach: Reach;
  /** Undefined: the operator sees neither a provider's message nor the path of its URL. */
  readonly redact: Redact | undefined;
  /** As slots.jsonExcess. */
  readonly jsonExcess: JsonExcess | undefined;
  /** As slots.breaker. Undefined: there are none. */
  readonly createBreaker?: ((identity: string) => Breaker) | undefined;
  /** As slots.capable. Undefined: all can serve. */
  readonly capable?: Capable | undefined;
  /** As slots.mediaTokens. Undefined: media count nothing. */
  readonly mediaTokens: ((chat: ChatRequest, rules: string) => number) | undefined;
  /**
   * The breakers in use, by identity. A reload keeps the breaker of a model as long as its upstream
   * name, its address, its traits and the settings of its provider stay the same.
   */
  readonly breakers: Map<string, Breaker>;
  /** A reload keeps its key, and so the fingerprints. */
  readonly fingerprint: Fingerprint;
}

/** The headers of every call. A provider's own may replace them. */
const CALL_HEADERS = {
  "Content-Type": "application/json",
  "Accept-Encoding": "identity",
  "user-agent": `chat-gateway/${VERSION}`,
};

/** The provider of a model. `config` has one of this name. */
export function createProvider(
  { provider: name, traits, ...model }: ModelSettings,
  config: RoutingSettings,
  { dialects, transport, reach, redact, jsonExcess, mediaTokens }: CatalogServices,
): Provider {
  const settings = config.providers.get(name)!;
  const { dialect = settings.dialect, base_url: baseUrl = settings.base_url } = model;
  const definition = dialects.get(dialect);
  if (!definition) throw new TypeError(`there is no dialect ${dialect}`);
  return {
    name,
    dialect,
    baseUrl,
    headers: { ...CALL_HEADERS, ...traits.headers, ...keyHeaders(traits.auth, settings.api_key) },
    timeouts: withOverrides(config.timeouts, settings.timeouts),
    retry: withOverrides(config.retry, settings.retry),
    attemptMs: settings.timeouts?.total_ms,
    maxReplyBytes: config.server.max_reply_bytes,
    countMedia: (chat) => mediaTokens?.(chat, definition.mediaRules) ?? 0,
    transport: reach({ provider: name, dialect, settings, config }, transport),
    redact,
    jsonExcess,
    dialectFor: (account) => definition.create({ baseUrl, account }),
  };
}

/** The headers that carry a key. `key` undefined: there is none. */
export function keyHeaders(
  auth: Traits["auth"],
  key: string | undefined,
): Readonly<Record<string, string>> {
  if (key === undefined || auth === "none") return {};
  return auth === "bearer" ? { Authorization: `Bearer ${key}` } : { [auth]: key };
}

/** A copy of `general` with the values that `overrides` has for its fields. */
export const withOverrides = <T extends object>(general: T, overrides: object = {}): T => ({
  ...general,
  ...Object.fromEntries(
    Object.entries(overrides).filter(([name, value]) => name in general && value !== undefined),
  ),
});
