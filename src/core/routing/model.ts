// A model and the provider that serves it, as one configuration describes them.
import type { Clock } from "../clock.ts";
import type { Price } from "../ledger/price.ts";
import type { MediaRules } from "../openai/usage.ts";
import type { Dialect, DialectDefinition, Target } from "../providers/dialect.ts";
import { withOverrides, type VendorPresets } from "../providers/vendors.ts";
import type { Transport } from "../upstream/transport.ts";
import type { Breaker, BreakerStatus, Pass } from "./breaker.ts";
import type { Fingerprint } from "./fingerprint.ts";
import type { Redact } from "./redact.ts";
import type { RetrySettings, RoutingSettings, TimeoutSettings } from "./settings.ts";

export interface Provider {
  readonly name: string;
  /** Paths of requests are appended to it. */
  readonly baseUrl: string;
  /** The headers that carry the provider's key. Undefined: it needs none. */
  readonly headers: Readonly<Record<string, string>> | undefined;
  readonly timeouts: TimeoutSettings;
  readonly retry: RetrySettings;
  /** Milliseconds of one attempt. Undefined: only the request as a whole is bounded. */
  readonly attemptMs: number | undefined;
  /** Bytes of a whole reply. */
  readonly maxReplyBytes: number;
  readonly mediaRules: MediaRules;
  readonly transport: Transport;
  /** Takes secrets out of the provider's messages. */
  readonly redact: Redact;
  /** The dialect for requests of one account. */
  dialectFor(account: string): Dialect;
}

export interface Model extends Target {
  /** Its canonical name. */
  readonly name: string;
  readonly provider: Provider;
  /** Size of the context window in tokens. Undefined: unknown. */
  readonly contextTokens: number | undefined;
  /** Undefined: the model costs nothing. */
  readonly price: Price | undefined;
  /** The system_fingerprint of its replies. */
  fingerprint(): string;
  /** A pass for one attempt. Undefined: the model's breaker is open. */
  enter(): Pass | undefined;
  /** The state of the model's breaker. */
  status(): BreakerStatus;
}

/** What outlives a configuration. */
export interface CatalogMemory {
  /** A breaker stays as long as it is the same model at the same provider with the same key. */
  readonly breakers: Map<string, Breaker>;
  readonly fingerprint: Fingerprint;
}

export interface CatalogServices {
  /** By name. */
  readonly dialects: ReadonlyMap<string, DialectDefinition>;
  readonly presets: VendorPresets;
  readonly transport: Transport;
  readonly redact: Redact;
  readonly memory: CatalogMemory;
  readonly clock: Clock;
}

/** `config` has a provider of this name. */
export function createProvider(
  name: string,
  config: RoutingSettings,
  { dialects, transport, redact }: CatalogServices,
): Provider {
  const settings = config.providers.get(name)!;
  const definition = dialects.get(settings.dialect);
  if (!definition) throw new TypeError(`there is no dialect ${settings.dialect}`);

  const baseUrl = settings.base_url;
  const dialectFor = (account: string): Dialect => definition.create({ baseUrl, account });
  const { api_key } = settings;
  return {
    name,
    baseUrl,
    headers: api_key === undefined ? undefined : dialectFor("").auth(api_key),
    timeouts: withOverrides(config.timeouts, settings.timeouts),
    retry: withOverrides(config.retry, settings.retry),
    attemptMs: settings.timeouts?.total_ms,
    maxReplyBytes: config.server.max_reply_bytes,
    mediaRules: definition.mediaRules,
    transport: definition.transport?.(settings) ?? transport,
    redact,
    dialectFor,
  };
}
