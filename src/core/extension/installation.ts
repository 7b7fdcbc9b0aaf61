// A gateway as its program sees it, and what extensions are given that exist once in an
// installation, whether one process serves or several.
import type { AccountLimits } from "../accounts/keyring.ts";
import type { Clock } from "../clock.ts";
import type { Config } from "../config.ts";
import type { Diagnose } from "../diagnose.ts";
import type { Extension } from "./extension.ts";
import type { Report } from "./report.ts";

/**
 * What an installation is made of: the gateway of this process, or the processes that it has
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
  /** What the line that announces the gateway says of them. */
  announcements(): readonly string[];
  /** Resolves when all of them have closed what they opened. */
  close(): Promise<void>;
}

/** A gateway that can be started, as program.ts uses it. */
export interface RunningGateway {
  /**
   * Resolves with the address that clients can use. Rejects if a part cannot start or the address
   * cannot be bound; everything is closed then.
   */
  listen(): Promise<string>;
  /** What else the line that announces the gateway says. */
  announcements(): readonly string[];
  /** Tells the operator of events, such as a reload that failed. */
  readonly diagnose: Diagnose;
  /**
   * Puts another configuration in force for requests and connections that come from now on. Throws
   * a ValidationError if it cannot be.
   */
  reload(config: Config, extensions: readonly Extension[]): void;
  /**
   * Takes no new requests, lets those in flight run for as long as server.drain_ms says, and
   * closes.
   */
  drain(): Promise<void>;
}
