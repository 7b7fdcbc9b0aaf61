// A model and the provider that serves it, as one configuration describes them.
import type { Price } from "../ledger/price.ts";
import type { MediaRules } from "../openai/usage.ts";
import type { Dialect, DialectDefinition, SignatureStore, Target } from "../providers/dialect.ts";
import { withOverrides } from "../providers/vendors.ts";
import type { Transport } from "../upstream/transport.ts";
import type { BreakerStatus, Pass } from "./breaker.ts";
import type { Redact } from "./redact.ts";
import type { RetrySettings, RoutingSettings, TimeoutSettings } from "./settings.ts";

/** Dialects by their names. */
export type Dialects = ReadonlyMap<string, DialectDefinition>;

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
  readonly fingerprint: string;
  /** A pass for one attempt. Undefined: the model's breaker is open. */
  enter(): Pass | undefined;
  /** The state of the model's breaker. */
  status(): BreakerStatus;
}

/** What all providers of a configuration share. */
export interface ProviderServices {
  readonly dialects: Dialects;
  readonly transport: Transport;
  readonly signatures: SignatureStore;
  readonly redact: Redact;
}

/** `config` has a provider of this name. */
export function createProvider(
  name: string,
  config: RoutingSettings,
  { dialects, transport, signatures, redact }: ProviderServices,
): Provider {
  const settings = config.providers.get(name)!;
  const definition = dialects.get(settings.dialect);
  if (!definition) throw new TypeError(`there is no dialect ${settings.dialect}`);

  /**
   * Signatures are kept apart by provider and account: other providers refuse them, and other
   * accounts must not see them.
   */
  function dialectFor(account: string): Dialect {
    const keyOf = (id: string) => JSON.stringify([settings.base_url, account, id]);
    return definition!.create({
      get: (id) => signatures.get(keyOf(id)),
      set: (id, text) => signatures.set(keyOf(id), text),
    });
  }

  const { api_key } = settings;
  return {
    name,
    baseUrl: settings.base_url,
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
