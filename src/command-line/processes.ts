// The process that serves, or several of them: what extensions add to `serve`, and what those are
// given that start further processes or run in one of these.
import type { Writable } from "node:stream";
import type { Limiter } from "../core/accounts/limiter.ts";
import type { Config } from "../core/config.ts";
import type { Extension } from "../core/extension/installer.ts";
import type { RunningGateway } from "../core/app.ts";
import type { Report } from "../core/extension/places.ts";

/** As programSlots.watchConfig. */
export type Watch = (
  file: string,
  state: string | null,
  changed: () => Promise<void>,
) => { close(): void };

/** Where the two logs go. */
export interface LogSinks {
  /** Gets one JSON line a response: standard output. */
  readonly accessLog: Writable;
  /** Gets one JSON line an event: standard error. */
  readonly diagnostics: Writable;
}

export interface SuperviseOptions extends LogSinks {
  /** The extensions that the configuration needs, in the order of src/extensions.ts. */
  readonly extensions: readonly Extension[];
  /**
   * Aborted when the process has received a signal to stop, which a terminal sends to its child
   * processes too.
   */
  readonly stopped: AbortSignal;
}

/** The services of the program for a process that another one has started. */
export interface WorkerProgram {
  /**
   * Creates the gateway of this process. `extensions` are the names of those that the configuration
   * needs.
   */
  create(config: Config, extensions: readonly string[], limiter: Limiter): Promise<WorkerGateway>;
  /** Puts another configuration in force, or reports why it cannot be. */
  reload(gateway: WorkerGateway, config: Config, extensions: readonly string[]): Promise<void>;
  /** Ends the process: with the gateway drained, or at once if there is none. */
  end(gateway?: WorkerGateway): void;
}

/** A gateway that is one of several processes. */
export interface WorkerGateway extends RunningGateway {
  /** The report of this process at this moment. */
  report(): Report;
}
