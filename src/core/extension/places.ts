// The slots of the core, each of which one extension can fill, and the hooks that extensions can
// listen to. The comment of a slot says what happens if it is empty. The functions at the end
// combine the core's dialect, request check and model services with those of extensions.
import type { Writable } from "node:stream";
import type { AccountLimits, CreatedKeys } from "../accounts/keyring.ts";
import type { Limiter } from "../accounts/limiter.ts";
import type { ClientApi } from "../chat/client-api.ts";
import type { HoldFor } from "../chat/context.ts";
import type { Clock } from "../clock.ts";
import type { Config } from "../config.ts";
import type { Diagnose } from "../diagnose.ts";
import type { Capacity } from "../http/connection.ts";
import type { WriteLines } from "../http/line-log.ts";
import type { Guard } from "../http/request-listener.ts";
import type { BoundPipeline, SecureListener } from "../http/server.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { chatRequest, type ChatRequest } from "../openai/request.ts";
import type { DialectDefinition } from "../providers/dialect.ts";
import { openaiDialectDefinition } from "../providers/openai/index.ts";
import type { Breaker } from "../routing/breaker.ts";
import type { Capable, CatalogServices, Destination, Redact } from "../routing/model.ts";
import type { Check } from "../schema/checker.ts";
import type { JsonExcess } from "../schema/large-json.ts";
import type { Transport } from "../upstream/transport.ts";
import { createdSlot, hook, slot, slotFamily, type Create, type Installed } from "./installer.ts";

export const slots = {
  /** Wire formats of providers, by name. One named "openai" replaces the core's own. */
  dialect: slotFamily<DialectDefinition>("dialect"),
  /** Client APIs other than chat completions, by name. */
  clientApi: slotFamily<Create<ClientApi>>("clientApi", true),
  /** Calls providers. Empty: Node's fetch does. */
  transport: createdSlot<Transport>("transport"),
  /** Replaces this process's own limiter. Empty: that limiter admits. */
  limiter: createdSlot<Limiter>("limiter"),
  /** Keeps what requests cost. Empty: nothing is kept. */
  ledger: createdSlot<Ledger>("ledger"),
  /**
   * Holds what a request may cost, before it is opened in the ledger. Throws the ApiError of a
   * request that its account cannot pay for. Empty: there are no budgets.
   */
  hold: createdSlot<HoldFor>("hold"),
  /**
   * Creates the breaker of a model. `identity` depends on the model's name, its upstream name and
   * address, and the settings of its provider. Empty: there are no breakers.
   */
  breaker: createdSlot<(identity: string) => Breaker>("breaker"),
  /**
   * Drops the models that cannot do what a request needs, and may adapt others to it. Throws a
   * ValidationError if none is left. Made anew at a reload, which may load further extensions.
   * Empty: all permitted models are candidates.
   */
  capable: slot<(installed: Installed) => Capable>("capable"),
  /**
   * Estimates the tokens of a request's images, audio and files. `rules`: as
   * DialectDefinition.mediaRules. Empty: they count as 0.
   */
  mediaTokens: slot<(chat: ChatRequest, rules: string) => number>("mediaTokens"),
  /**
   * Bounds the values of a JSON text from a client or a provider before it is parsed. Called for
   * texts of more than 32 KiB. Empty: only the length is bounded.
   */
  jsonExcess: slot<JsonExcess>("jsonExcess"),
  /**
   * Creates the function that removes the configuration's secrets from a provider's text. Empty, or
   * undefined: the operator sees no such text.
   */
  redact: slot<(config: Config, installed: Installed) => Redact | undefined>("redact"),
  /**
   * Reads the key of system_fingerprint, when the first one is needed. Empty: each process draws a
   * random key.
   */
  fingerprintKey: slot<(dataDir: string, diagnose: Diagnose) => Buffer>("fingerprintKey"),
  /**
   * Opens the source of keys outside the configuration. Throws a ValidationError if they cannot be
   * read. Empty: there are none.
   */
  keySource: slot<(options: KeySourceOptions) => KeySource>("keySource"),
  /**
   * Serves HTTPS on the listener of this section; undefined if the configuration has plain HTTP.
   * Throws a ValidationError if the certificate cannot be used. Empty: there is only plain HTTP.
   */
  secure: slot<(config: Config, section: ListenerSection) => SecureSection | undefined>("secure"),
  /**
   * Writes the lines of a log to a stream, and bounds what is kept for a slow reader. Empty: all of
   * it is kept.
   */
  boundLog: slot<(stream: Writable, events: DropEvents) => WriteLines>("boundLog"),
  /** Bounds the unanswered requests of a connection. Empty: there is no bound. */
  boundPipeline: slot<BoundPipeline>("boundPipeline"),
  /** Bounds the connections of the public listener and their memory. Empty: there is no bound. */
  capacity: slot<(config: Config) => Capacity>("capacity"),
  /** Starts the parts that exist once, however many processes serve. Empty: there are none. */
  host: slot<(sources: HostSources) => HostRunner>("host"),
};

export const hooks = {
  /**
   * Adds fields beyond the contract to the check of a chat completions request. `check` already has
   * those of earlier extensions. The schema of the result is published.
   */
  extendRequest: hook<(check: Check<ChatRequest>) => Check<ChatRequest>>("extendRequest"),
  /**
   * A configuration is put in force. The returned guard runs before the handler of each request to
   * the public listener; undefined: this configuration needs none.
   */
  guards: hook<(config: Config) => Guard | undefined>("guards"),
  /**
   * A configuration with this provider is put in force. Returns the provider's transport: the given
   * one, or a wrapper around it.
   */
  reach:
    hook<(to: Destination, transport: Transport, services: ReachServices) => Transport>("reach"),
  /** Returns the secrets in an extension's settings, which no log may show. */
  secrets: hook<(config: Config) => readonly string[]>("secrets"),
  /**
   * Returns members of the response to GET /status. `reports`: the results of this extension's
   * ProcessEvents.report in each process that serves.
   */
  status: hook<(reports: readonly unknown[], config: Config) => object>("status"),
};

/** The sections of gateway.json that have a listener. */
export type ListenerSection = "server" | "admin";

/** The services of a transport around another. */
export type ReachServices = Pick<HostSources, "clock" | "diagnose">;

export interface SecureSection extends SecureListener {
  /**
   * Reads the certificate of another configuration, or throws a ValidationError. The returned
   * function puts it in force for new connections.
   */
  reload(config: Config): () => void;
}

export interface KeySourceOptions {
  /** The folder of everything that is kept: `data_dir` of the configuration at the start. */
  readonly dataDir: string;
  /** Call it when the keys have changed, but only after the slot's function has returned. */
  changed(): void;
  /** Reports to the operator that the keys can no longer be read. */
  readonly diagnose: Diagnose;
}

/** Keys that are found while the gateway runs. */
export interface KeySource {
  /** The current keys. Called after each change, not for each request. */
  current(): CreatedKeys;
  /** Stops watching for changes of the keys. */
  close(): void;
}

/** Events of a log whose reader is too slow or gone. */
export interface DropEvents {
  /** One line was dropped. */
  dropped(): void;
  /** The reader has caught up. `lines` were dropped meanwhile. */
  recovered(lines: number): void;
}

/**
 * The sources of an installation: the gateway of this process, or the processes that it has
 * started.
 */
export interface HostSources {
  /** The configuration at the start. */
  readonly config: Config;
  /** The configuration in force. */
  current(): Config;
  /** What all extensions have installed. */
  readonly installed: Installed;
  /** Use it instead of the system's clocks and timers. */
  readonly clock: Clock;
  /** Reports events to the operator, on standard error. */
  readonly diagnose: Diagnose;
  /** The reports of all processes that serve at the moment. */
  reports(): Promise<readonly Report[]>;
  /** Lines dropped by this process that no report counts. None if this process serves. */
  droppedLines(): DroppedLines;
  /** Every account that has a key at this moment, with its limit. */
  accounts(): AccountLimits;
  /** Requests of the last 60 seconds that count against the limit of this name: `account acme`. */
  used(limit: string): number;
}

/** Runs the parts of extensions that exist once. */
export interface HostRunner {
  /** To be called when the public listener has its address. Rejects if one of them cannot start. */
  listen(publicAddress: string): Promise<void>;
  /** What the start line of the gateway says about them. */
  announcements(): readonly string[];
  /** Resolves when all of them have closed what they opened. */
  close(): Promise<void>;
}

/** How many lines of each log were dropped, because its reader was too slow. */
export type DroppedLines = Readonly<Record<"access" | "diagnostics", number>>;

/** The figures of one process that serves: data that can be sent to another process. */
export interface Report {
  /** Whether the process is stopping and refuses new requests. */
  readonly draining: boolean;
  /** Requests that have been received and not answered. */
  readonly inFlight: number;
  /** The lines that the logs of this process have dropped since it began. */
  readonly droppedLines: DroppedLines;
  /** What extensions report, by their names. */
  readonly extensions: Readonly<Record<string, unknown>>;
}

/** The wire formats by their names. An extension's "openai" replaces the core's own. */
export const dialectsIn = (installed: Installed): ReadonlyMap<string, DialectDefinition> =>
  new Map([["openai", openaiDialectDefinition], ...installed.family(slots.dialect)]);

/** The check of a chat completions request. */
export const requestCheck = (installed: Installed): Check<ChatRequest> =>
  installed
    .listeners(hooks.extendRequest)
    .reduce<Check<ChatRequest>>((check, { call }) => call(check), chatRequest);

/** What extensions have for the models of a configuration. */
export const modelServices = (config: Config, installed: Installed, services: ReachServices) =>
  ({
    dialects: dialectsIn(installed),
    reach: (destination, transport) =>
      installed
        .listeners(hooks.reach)
        .reduce((inner, { call }) => call(destination, inner, services), transport),
    redact: installed.filled(slots.redact)?.(config, installed),
    jsonExcess: installed.filled(slots.jsonExcess),
    mediaTokens: installed.filled(slots.mediaTokens),
    capable: installed.filled(slots.capable)?.(installed),
  }) satisfies Partial<CatalogServices>;
