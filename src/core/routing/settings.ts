// What routing needs of the configuration. A checked configuration has all of these fields, so it
// can be passed as it is.
import type { Price } from "../ledger/price.ts";
import type { Traits } from "../providers/traits.ts";

/** Traits that a provider or a model sets. Absent: as its vendor's preset says. */
type TraitSettings = { readonly [name in keyof Traits]?: Traits[name] | undefined };
/** Settings of one provider. Absent: as the whole configuration says. */
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
  /** How often the same model is asked again. */
  readonly max_retries: number;
  /** Milliseconds before the first retry; twice as many before each further one. */
  readonly backoff_ms: number;
  /** The longest wait in milliseconds. A provider that asks for more is not asked again. */
  readonly max_wait_ms: number;
}

export interface BreakerSettings {
  /** So many failures in a row open the breaker. */
  readonly failures: number;
  /** Milliseconds until an open breaker lets a probe through. */
  readonly cooldown_ms: number;
}

export interface ProviderSettings extends TraitSettings {
  /** The vendor whose preset applies. Absent: the dialect's own preset. */
  readonly vendor?: string | undefined;
  /** A name in the table of dialects. */
  readonly dialect: string;
  /** Without a slash at its end. */
  readonly base_url: string;
  /** Absent: requests carry no key. */
  readonly api_key?: string | undefined;
  readonly timeouts?: Overrides<TimeoutSettings> | undefined;
  readonly retry?: Overrides<RetrySettings> | undefined;
}

export interface ModelSettings extends TraitSettings {
  readonly provider: string;
  /** The provider's name of the model. Absent: the model's own name. */
  readonly upstream_model?: string | undefined;
  /** The model can think. */
  readonly reasoning: boolean;
  /** Size of the context window in tokens. Absent: unknown. */
  readonly context_tokens?: number | undefined;
  readonly reasoning_score?: number | undefined;
  readonly quality_score?: number | undefined;
  /** Absent: the model costs nothing. */
  readonly price?: Price | undefined;
}

/** An alias has either a policy or a list of models. */
export interface AliasSettings {
  readonly policy?: "reasoning" | "value" | undefined;
  readonly models?: readonly string[] | undefined;
  readonly enabled: boolean;
}

export interface RoutingSettings {
  readonly models: ReadonlyMap<string, ModelSettings>;
  readonly providers: ReadonlyMap<string, ProviderSettings>;
  readonly aliases: ReadonlyMap<string, AliasSettings>;
  readonly timeouts: TimeoutSettings;
  readonly retry: RetrySettings;
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
