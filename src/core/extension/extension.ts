// What an extension can add to a gateway. An extension is an optional part of the program, in a
// folder of its own under src/extensions. The core knows it by the interfaces of this folder only.
// What else it can add, to the configuration and to the command line, is declared where that is
// used: config/extension.ts, command-line/command.ts.
import type { Writable } from "node:stream";
import type { AccountLimits, CreatedKeys } from "../accounts/keyring.ts";
import type { Limiter } from "../accounts/limiter.ts";
import type { ClientApi } from "../chat/client-api.ts";
import type { HoldFor } from "../chat/context.ts";
import type { Clock } from "../clock.ts";
import type { Config } from "../config.ts";
import type { Diagnose } from "../diagnose.ts";
import type { Capacity } from "../http/connection.ts";
import type { Exchange, Routes } from "../http/exchange.ts";
import type { WriteLines } from "../http/line-log.ts";
import type { Guard } from "../http/request-listener.ts";
import type { BoundPipeline, SecureListener } from "../http/server.ts";
import type { Ledger, RequestTrace } from "../ledger/ledger.ts";
import type { Observer } from "../observer.ts";
import type { ChatRequest } from "../openai/request.ts";
import type { DialectDefinition } from "../providers/dialect.ts";
import type { Breaker } from "../routing/breaker.ts";
import type { Complete } from "../routing/fallback.ts";
import type { Capable } from "../routing/model.ts";
import type { Check } from "../schema/checker.ts";
import type { JsonExcess } from "../schema/large-json.ts";
import type { Snapshot } from "../chat/context.ts";
import type { Transport } from "../upstream/transport.ts";
import type { Report } from "./report.ts";

/** Everything but `name` may be absent: the extension adds nothing of that kind. */
export interface Extension {
  /** No other extension has it. Its reports are found by this name. */
  readonly name: string;
  /** Wire formats of providers. One with the name of the core's own takes its place. */
  readonly dialects?: readonly DialectDefinition[];
  /**
   * An estimate of the tokens that the images, audio and files of a request are. `rules`: as in
   * DialectDefinition.mediaRules.
   */
  readonly mediaTokens?: (chat: ChatRequest, rules: string) => number;
  /**
   * Creates what makes a provider's text fit for the operator: it takes the secrets of the
   * configuration out. Absent: no text is shown.
   */
  readonly createRedact?: (
    config: Config,
    extensions: readonly Extension[],
  ) => (text: string) => string;
  /**
   * Looks at a JSON text from a client or a provider before it is parsed. It is called for texts of
   * more than 32 KiB. Absent: only their length is bounded.
   */
  readonly jsonExcess?: JsonExcess;
  /** Creates the breaker of a model. At most one extension does. Absent: there are none. */
  readonly createBreaker?: (clock: Clock) => Breaker;
  /**
   * Leaves out the models that lack what a request needs. Throws a ValidationError if none is left.
   * At most one extension does. Absent: all that are allowed are asked.
   */
  readonly capable?: Capable;
  /**
   * Adds fields beyond the contract to the check of a chat completions request. `check` has those
   * of the extensions that are loaded before this one. The schema of the result is published.
   */
  readonly extendRequest?: (check: Check<ChatRequest>) => Check<ChatRequest>;
  /** The secrets in its settings, which must not show in a log. */
  readonly secrets?: (config: Config) => readonly string[];
  /**
   * The key of system_fingerprint. It is called when the first one is needed. Absent: the key is
   * random, and lives as long as the process.
   */
  readonly fingerprintKey?: (dataDir: string, diagnose: Diagnose) => Buffer;
  /**
   * The keys that it knows beside those of the configuration. Throws a ValidationError if they
   * cannot be read. At most one extension does.
   */
  readonly openKeys?: (options: KeySourceOptions) => KeySource;
  /**
   * Serves HTTPS on the listener of this section; undefined if the configuration has plain HTTP.
   * Throws a ValidationError if the certificate cannot be used.
   */
  readonly secure?: (config: Config, section: ListenerSection) => SecureSection | undefined;
  /**
   * Writes the lines of a log to a stream, and bounds what is kept for a slow reader. At most one
   * extension does.
   */
  readonly boundLog?: (stream: Writable, events: DropEvents) => WriteLines;
  /**
   * Bounds the requests of a connection that are parsed at once. At most one extension does.
   * Without it Node parses what one read brings.
   */
  readonly boundPipeline?: BoundPipeline;
  /**
   * Bounds the connections of the public listener, and what is kept in memory for them. At most one
   * extension does. Absent: nothing bounds them.
   */
  readonly capacity?: (config: Config) => Capacity;
  /**
   * Each request of the public listener passes this first, while this configuration is in force.
   * Undefined: there is nothing to do with this configuration.
   */
  readonly guard?: (config: Config) => Guard | undefined;
  /** Starts to listen to the gateway's work in one process. */
  readonly observe?: () => Observation;
  /**
   * Sums up what `GatewayPart.report` and `Observation.report` gave in each process that serves, as
   * members of GET /status.
   */
  readonly status?: (reports: readonly unknown[], config: Config) => object;
  /** Creates its part of a gateway, once in each process that serves. */
  readonly start?: (context: GatewayContext) => GatewayPart;
  /** Starts what exists once in the installation. At most one extension does. */
  readonly createHost?: (sources: HostSources) => HostRunner;
}

/** The sections of gateway.json that have a listener. */
export type ListenerSection = "server" | "admin";

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
  /** Call it when the keys are others than before, not before `openKeys` has returned. */
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

export interface Observation {
  /** Hears of all work of this process. */
  readonly observer: Observer;
  /** What it has seen so far, as data that can be sent to another process. */
  report(): unknown;
}

/** The services from which an extension builds its part of a gateway. */
export interface GatewayContext {
  /** The configuration in force at the start. */
  readonly config: Config;
  /**
   * The snapshot in force at the moment of the call. Not to be called before the gateway listens.
   */
  current(): Snapshot;
  /** All extensions that are loaded. */
  readonly extensions: readonly Extension[];
  /** To be used in the place of the machine's clocks and timers. */
  readonly clock: Clock;
  /** Tells the operator of events, on standard error. */
  readonly diagnose: Diagnose;
  /** The limiter of this process. */
  readonly limiter: Limiter;
}

/** What an extension adds to a gateway. Everything may be absent. */
export interface GatewayPart {
  /** Takes the place of the ledger that keeps nothing. */
  readonly ledger?: Ledger;
  /** Takes the place of this process's own limiter. */
  readonly limiter?: Limiter;
  /** Takes the place of Node's fetch for calls to providers. */
  readonly transport?: Transport;
  /** Called at the beginning of each chat request. At most one part has it. Must not throw. */
  readonly trace?: (exchange: Exchange) => RequestTrace;
  /**
   * Holds what a request may cost, before it is opened in the ledger. At most one part has it.
   * Throws the ApiError of a request that its account cannot pay for. Called synchronously;
   * undefined: the request falls under no budget.
   */
  readonly hold?: HoldFor;
  /** Further formats in which clients can ask for a reply. */
  readonly apis?: readonly ClientApi[];
  /**
   * Puts something around the work of completing a request: it may choose among the candidates,
   * change an attempt, or ask again. The part that is started first is the outermost.
   */
  readonly around?: (complete: Complete) => Complete;
  /** Further paths of the public listener. */
  readonly routes?: Routes;
  /** For Report.extensions: data that can be sent to another process. */
  report?(): unknown;
  /** Called before the gateway listens. Rejects if it cannot start. */
  open?(): Promise<void>;
  /**
   * Prepares for another configuration, or throws a ValidationError. The returned function puts it
   * in force, and must not fail.
   */
  reload?(config: Config): () => void;
  /**
   * Called after the last request has ended. Parts are closed in the reverse of the order in which
   * they were opened.
   */
  close?(): void | Promise<void>;
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
  /** All extensions that are loaded. */
  readonly extensions: readonly Extension[];
  /** To be used in the place of the machine's clocks and timers. */
  readonly clock: Clock;
  /** Tells the operator of events, on standard error. */
  readonly diagnose: Diagnose;
  /** Of all processes that serve at the moment. */
  reports(): Promise<readonly Report[]>;
  /**
   * What extensions have observed in this process, if it does not serve itself. Absent: it does,
   * and reports.
   */
  observed?(): Report["extensions"];
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
