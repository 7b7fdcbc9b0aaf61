// A gateway that can be started, as its program sees it.
import type { Config } from "../config.ts";
import type { Diagnose } from "../diagnose.ts";
import type { Extension } from "./extension.ts";

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
