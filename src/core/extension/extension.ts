// What an extension is: an optional part of the program, in a folder of its own under
// src/extensions, that the core knows by the interfaces of this file only. src/extensions.ts names
// them all; an extension whose line is deleted there does not exist.
import type { Writable } from "node:stream";
import type { CreatedKeys } from "../accounts/keyring.ts";
import type { Limiter } from "../accounts/limiter.ts";
import type { Clock } from "../clock.ts";
import type { Formats } from "../config/formats.ts";
import type { Config } from "../config/schema.ts";
import type { Diagnose } from "../diagnose.ts";
import type { Routes } from "../http/exchange.ts";
import type { WriteLines } from "../http/line-log.ts";
import type { BoundPipeline, SecureListener } from "../http/server.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { Observer } from "../observer.ts";
import type { ChatRequest } from "../openai/request.ts";
import type { DialectDefinition } from "../providers/dialect.ts";
import type { ValidationIssue } from "../schema/checker.ts";
import type { Transport } from "../upstream/transport.ts";
import type {
  HostRunner,
  HostSources,
  RunningGateway,
  SuperviseOptions,
  WorkerProgram,
} from "./processes.ts";
import type { Setting } from "./setting.ts";

/**
 * A line of src/extensions.ts: when an extension is loaded. Everything but `name` and `load` may be
 * absent: it is no reason to load it.
 */
export interface ExtensionEntry<X extends Extension = Extension> {
  readonly name: string;
  /** Its settings, as Setting.path has them. It is loaded when a configuration has one of them. */
  readonly settings?: readonly string[];
  /** The dialects that it brings. It is loaded when a provider uses one. */
  readonly dialects?: readonly string[];
  /** It brings the configuration of a program without a file. At most one extension does. */
  readonly hasConfig?: boolean;
  /** Its `supervise` starts processes, which need its `work`. At most one extension does. */
  readonly startsProcesses?: boolean;
  /** It is loaded with every configuration. */
  readonly checks?: boolean;
  /** It is loaded whenever a gateway serves. */
  readonly serves?: boolean;
  /**
   * It is loaded when a setting has another value than the word for what the program does without
   * it.
   */
  readonly replaces?: { readonly setting: string; readonly word: string };
  load(): Promise<{ readonly extension: X }>;
}

/** Everything but `name` may be absent: the extension adds nothing of that kind. */
export interface Extension {
  readonly name: string;
  readonly settings?: readonly Setting<unknown>[];
  readonly dialects?: readonly DialectDefinition[];
  /**
   * An estimate of the tokens that the images, audio and files of a request are. `rules`: as in
   * DialectDefinition.mediaRules.
   */
  readonly mediaTokens?: (chat: ChatRequest, rules: string) => number;
  /** What a program without a file runs with: JSON, as if it had been read. */
  readonly builtInConfig?: unknown;
  /** A store outside of the process that one of the settings can name. */
  readonly store?: StoreAddress;
  /**
   * Creates what makes a provider's text fit for the operator: it takes the secrets of the
   * configuration out. Absent: no text is shown.
   */
  readonly createRedact?: (
    config: Config,
    extensions: readonly Extension[],
  ) => (text: string) => string;
  /** The secrets in its settings, which must not show in a log. */
  readonly secrets?: (config: Config) => readonly string[];
  /**
   * What its settings demand of others, beyond their shape. Looks at the raw JSON, so that an issue
   * of shape elsewhere hides none.
   */
  readonly issues?: (json: unknown, formats: Formats) => readonly ValidationIssue[];
  /** Issues of a configuration's text, which is valid JSON. */
  readonly textIssues?: (text: string) => readonly ValidationIssue[];
  /** What is odd in a valid configuration. `check` prints it. */
  readonly warnings?: (config: Config) => readonly Warning[];
  /**
   * Issues of a configuration on the machine that is to serve with it, such as an unreadable
   * certificate. Looks at the raw JSON.
   */
  readonly issuesHere?: (json: unknown) => readonly ValidationIssue[];
  /**
   * What a configuration needs that is not there, such as a package; throws a ValidationError.
   * `check` calls it.
   */
  readonly assertReady?: (config: Config, extensions: readonly Extension[]) => void;
  /** A key of 64 hexadecimal digits that stays with a data_dir. Throws if it cannot be had. */
  readonly fingerprintSecret?: (dataDir: string) => string;
  /**
   * Calls `changed` whenever a configuration file has other content; `digest` is that of the
   * content in force, null if there was no file.
   */
  readonly watchConfig?: (
    file: string,
    digest: string | null,
    changed: () => Promise<void>,
  ) => void;
  /**
   * Called once before a gateway starts on this machine. Throws a ValidationError if it can never
   * start.
   */
  readonly prepare?: (config: Config) => void;
  /**
   * The keys that it knows beside those of the configuration. Throws a ValidationError if they
   * cannot be read.
   */
  readonly openKeys?: (options: KeySourceOptions) => KeySource;
  /**
   * What serves HTTPS on the listener of this section; undefined if the configuration wants HTTP.
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
  /**
   * Takes the place of the gateway in this process, and starts others. Undefined: this
   * configuration does not want that.
   */
  readonly supervise?: (config: Config, options: SuperviseOptions) => RunningGateway | undefined;
  /** Runs a process that `supervise` has started. What it returns stops it. */
  readonly work?: (program: WorkerProgram) => () => void;
}

/** Something in a configuration with which a gateway starts, but hardly as it is meant. */
export interface Warning {
  readonly path: ValidationIssue["path"];
  readonly message: string;
}

/**
 * A kind of address that stands where else a built-in word does: `"redis://..."` for `"memory"`.
 */
export interface StoreAddress {
  /** The setting's path: `limits.store`. */
  readonly setting: string;
  readonly scheme: RegExp;
  /** What the address is of, for messages: "a PostgreSQL database (postgres://...)". */
  readonly expected: string;
}

/** The sections of gateway.json that have a listener. */
export type ListenerSection = "server" | "admin";

export interface SecureSection extends SecureListener {
  /**
   * Reads the certificate of another configuration, or throws a ValidationError. What it returns
   * puts it in force for new connections.
   */
  reload(config: Config): () => void;
}

export interface KeySourceOptions {
  readonly dataDir: string;
  /** Call it when the keys are others than before. */
  changed(): void;
  readonly diagnose: Diagnose;
}

/** Keys that are found while the gateway runs. */
export interface KeySource {
  current(): CreatedKeys;
  close(): void;
}

export interface Observation {
  readonly observer: Observer;
  /** What it has seen so far, as data that can be sent to another process. */
  report(): unknown;
}

/** What an extension is given to build its part of a gateway. */
export interface GatewayContext {
  /** The configuration in force at the start. */
  readonly config: Config;
  /** All extensions that are loaded. */
  readonly extensions: readonly Extension[];
  readonly clock: Clock;
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
  /** Further paths of the public listener. */
  readonly routes?: Routes;
  /** For Report.extensions: data that can be sent to another process. */
  report?(): unknown;
  /** Called before the gateway listens. Rejects if it cannot start. */
  open?(): Promise<void>;
  /**
   * Prepares for another configuration, or throws a ValidationError. What it returns puts it in
   * force, and must not fail.
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
