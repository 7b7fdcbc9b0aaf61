// The data and services that the steps of a chat request share.
import type { Caller, Keyring } from "../accounts/keyring.ts";
import type { Limiter } from "../accounts/limiter.ts";
import type { Clock } from "../clock.ts";
import type { Config } from "../config.ts";
import type { Diagnose } from "../diagnose.ts";
import type { Exchange } from "../http/exchange.ts";
import type { Hold, Ledger } from "../ledger/ledger.ts";
import type { Observers } from "../observer.ts";
import type { ChatRequest } from "../openai/request.ts";
import type { RequestContext } from "../routing/attempt.ts";
import type { Complete } from "../routing/fallback.ts";
import type { Catalog } from "../routing/catalog.ts";
import type { Model } from "../routing/model.ts";
import type { JsonExcess } from "../schema/large-json.ts";
import type { Guard } from "../http/request-listener.ts";
import type { ClientApi } from "./client-api.ts";

/** The data that depends on one configuration. A request keeps the snapshot that it began with. */
export interface Snapshot {
  /** The checked configuration, with every default. */
  readonly config: Config;
  /** The keys of this configuration, and those that were created while the gateway runs. */
  readonly keyring: Keyring;
  /** The models and aliases of this configuration. */
  readonly catalog: Catalog;
  /** Calls the guards of all extensions in order, until one answers or refuses. */
  readonly guard: Guard;
}

/** Services that outlive a configuration. */
export interface ChatServices {
  /** Admits each request before its body is read (contract.md "Order of checks"). */
  readonly limiter: Limiter;
  /** Opens each request before a provider is called. Without books it keeps nothing. */
  readonly ledger: Ledger;
  /** Reports failed attempts, other events of models, and bugs of this program. */
  readonly diagnose: Diagnose;
  /** Stamps replies, and times attempts and deadlines. */
  readonly clock: Clock;
  /** As slots.jsonExcess. */
  readonly jsonExcess: JsonExcess | undefined;
  /** Completes a request: routing/fallback.ts, with what extensions put around it. */
  readonly complete: Complete;
  /** Absent or undefined: no extension has budgets. */
  readonly hold?: HoldFor | undefined;
}

/** As slots.hold. Undefined: the request falls under no budget. */
export type HoldFor = (request: AcceptedRequest) => Hold | undefined | Promise<Hold | undefined>;

/**
 * A request that was admitted and checked, and has candidates. All later steps share this one
 * object.
 */
export interface AcceptedRequest extends RequestContext {
  /** The client API of the request and its response. */
  readonly api: ClientApi;
  /** The HTTP request and its response. */
  readonly exchange: Exchange;
  /** The key of the request, and the account that it belongs to. */
  readonly caller: Caller;
  /** The checked body, whatever format it came in. */
  readonly chat: ChatRequest;
  /** In force when the request began. A reload does not change it. */
  readonly config: Config;
  /** Best first; at least one. */
  readonly candidates: readonly Model[];
  /** When the request had been checked, by the monotonic clock. */
  readonly startedAt: number;
  /** The observers of this request. */
  readonly observers: Observers;
  /** Gives back the account's concurrency slot. Only the first call counts. */
  readonly releaseSlot: () => void;
  /** Removes the request from its rate limits. To be called before it is refused. */
  readonly refund: () => void;
  /** The budget hold for this request. Absent or undefined: there is none, or none yet. */
  hold?: Hold | undefined;
}
