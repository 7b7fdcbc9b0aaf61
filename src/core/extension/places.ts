// The places of the core that an extension can fill, and the moments that extensions can hear. An
// empty place has the meaning that its comment states. At the end: the core's own dialect, check of
// requests and transport, with what extensions add to them.
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
import { createdSlot, moment, slot, slotFamily, type Create, type Installed } from "./installer.ts";

export const slots = {
  /** Wire formats of providers, by name. One with the name of the core's own takes its place. */
  dialect: slotFamily<DialectDefinition>("dialect"),
  /** Formats of clients beside chat completions, by name. */
  clientApi: slotFamily<Create<ClientApi>>("clientApi", true),
  /** Calls providers. Empty: Node's fetch does. */
  transport: createdSlot<Transport>("transport"),
  /** Takes the place of this process's own limiter. */
  limiter: createdSlot<Limiter>("limiter"),
  /** Keeps what requests cost. Empty: nothing is kept. */
  ledger: createdSlot<Ledger>("ledger"),
  /**
   * Holds what a request may cost, before it is opened in the ledger. Throws the ApiError of a
   * request that its account cannot pay for. Empty: there are no budgets.
   */
  hold: createdSlot<HoldFor>("hold"),
  /**
   * Creates the breaker of a model. `identity` is another one when the model's name, its upstream
   * name, the provider's address or key is another. Empty: there are none.
   */
  breaker: createdSlot<(identity: string) => Breaker>("breaker"),
  /**
   * Leaves out the models that lack what a request needs, and may change others for it. Throws a
   * ValidationError if none is left. Empty: all that are allowed are asked.
   */
  capable: createdSlot<Capable>("capable"),
  /**
   * Estimates the tokens that the images, audio and files of a request are. `rules`: as in
   * DialectDefinition.mediaRules. Empty: they count as none.
   */
  mediaTokens: slot<(chat: ChatRequest, rules: string) => number>("mediaTokens"),
  /**
   * Looks at a JSON text from a client or a provider before it is parsed. It is called for texts of
   * more than 32 KiB. Empty: only their length is bounded.
   */
  jsonExcess: slot<JsonExcess>("jsonExcess"),
  /**
   * Creates what makes a provider's text fit for the operator: it takes the secrets of the
   * configuration out. Empty, or undefined: no text is shown.
   */
  redact: slot<(config: Config, installed: Installed) => Redact | undefined>("redact"),
  /**
   * The key of system_fingerprint. It is called when the first one is needed. Empty: the key is
   * random, and lives as long as the process.
   */
  fingerprintKey: slot<(dataDir: string, diagnose: Diagnose) => Buffer>("fingerprintKey"),
  /**
   * The keys that are known beside those of the configuration. Throws a ValidationError if they
   * cannot be read. Empty: there are none.
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
  /**
   * Bounds the requests of a connection that are parsed at once. Empty: Node parses what one read
   * brings.
   */
  boundPipeline: slot<BoundPipeline>("boundPipeline"),
  /**
   * Bounds the connections of the public listener, and what is kept in memory for them. Empty:
   * nothing does.
   */
  capacity: slot<(config: Config) => Capacity>("capacity"),
  /** Starts what exists once, however many processes serve. Empty: nothing does. */
  host: slot<(sources: HostSources) => HostRunner>("host"),
};

export const moments = {
  /**
   * Fields beyond the contract are added to the check of a chat completions request. `check` has
   * those of the extensions before. The schema of the result is published.
   */
  extendRequest: moment<(check: Check<ChatRequest>) => Check<ChatRequest>>("extendRequest"),
  /**
   * A configuration is put in force. The guard is the first that each request of the public
   * listener passes; undefined: there is nothing to do with this configuration.
   */
  guards: moment<(config: Config) => Guard | undefined>("guards"),
  /**
   * A configuration is put in force that has this provider. Returns the transport with which the
   * provider is reached: this one, or one around it.
   */
  reach:
    moment<(to: Destination, transport: Transport, services: ReachServices) => Transport>("reach"),
  /** The secrets in an extension's settings are asked for, which must not show in a log. */
  secrets: moment<(config: Config) => readonly string[]>("secrets"),
  /**
   * GET /status is asked. `reports`: what this extension's ProcessEvents.report gave in each
   * process that serves. Returns members of the answer.
   */
  status: moment<(reports: readonly unknown[], config: Config) => object>("status"),
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
  /** Call it when the keys are others than before, not before the slot's function has returned. */
  changed(): void;
  /** Tells the operator of keys that cannot be read any more. */
  readonly diagnose: Diagnose;
}

/** Keys that are found while the gateway runs. */
export interface KeySource {
  /** The keys of this moment. It is asked at each change, not for each request. */
  current(): CreatedKeys;
  /** Stops watching for changes of the keys. */
  close(): void;
}

/** Called for lines that the reader of a log was too slow for. */
export interface DropEvents {
  /** One line was dropped. */
  dropped(): void;
  /** The reader is no longer behind. `lines` were dropped since it was. */
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
  /** To be used in the place of the machine's clocks and timers. */
  readonly clock: Clock;
  /** Tells the operator of events, on standard error. */
  readonly diagnose: Diagnose;
  /** Of all processes that serve at the moment. */
  reports(): Promise<readonly Report[]>;
  /** Lines that this process has dropped beside those of the reports. None where it serves. */
  droppedLines(): DroppedLines;
  /** Every account that has a key at this moment, with its limit. */
  accounts(): AccountLimits;
  /** Requests of the last 60 seconds that count against the limit of this name: `account acme`. */
  used(limit: string): number;
}

/** The extensions that exist once, as one. */
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

/** What one process that serves says of itself: data that can be sent to another process. */
export interface Report {
  /** The process stops, and refuses new requests. */
  readonly draining: boolean;
  /** Requests that have been received and not answered. */
  readonly inFlight: number;
  /** Of the logs of this process, since it began. */
  readonly droppedLines: DroppedLines;
  /** What extensions report, by their names. */
  readonly extensions: Readonly<Record<string, unknown>>;
}

/** The wire formats by their names. One of an extension takes the place of the core's own. */
export const dialectsIn = (installed: Installed): ReadonlyMap<string, DialectDefinition> =>
  new Map([["openai", openaiDialectDefinition], ...installed.family(slots.dialect)]);

/** The check of a chat completions request. */
export const requestCheck = (installed: Installed): Check<ChatRequest> =>
  installed
    .listeners(moments.extendRequest)
    .reduce<Check<ChatRequest>>((check, { call }) => call(check), chatRequest);

/** What extensions have for the models of a configuration. */
export const modelServices = (config: Config, installed: Installed, services: ReachServices) =>
  ({
    dialects: dialectsIn(installed),
    reach: (destination, transport) =>
      installed
        .listeners(moments.reach)
        .reduce((inner, { call }) => call(destination, inner, services), transport),
    redact: installed.filled(slots.redact)?.(config, installed),
    jsonExcess: installed.filled(slots.jsonExcess),
    mediaTokens: installed.filled(slots.mediaTokens),
  }) satisfies Partial<CatalogServices>;
