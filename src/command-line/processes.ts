// The process that serves, or several of them: what extensions add to `serve`, and what those are
// given that start further processes or run in one of these.
import type { Writable } from "node:stream";
import type { Limiter } from "../core/accounts/limiter.ts";
import type { Config } from "../core/config.ts";
import type { Extension } from "../core/extension/extension.ts";
import type { RunningGateway } from "../core/app.ts";
import type { Report } from "../core/extension/report.ts";

/** Every member may be absent. */
export interface ServingExtension {
  /**
   * Called once before a gateway starts on this machine. Throws a ValidationError if it can never
   * start.
   */
  readonly prepare?: (config: Config) => void;
  /**
   * Calls `changed` whenever a configuration file, or the file of one of its secrets, has other
   * content, until what it returns is closed. `state` is that of the content in force: its SHA-256,
   * or why it could not be read; null if there was no file. At most one extension does.
   */
  readonly watchConfig?: (
    file: string,
    state: string | null,
    changed: () => Promise<void>,
  ) => { close(): void };
  /**
   * Takes the place of the gateway in this process, and starts others. Undefined: this
   * configuration does not want that.
   */
  readonly supervise?: (config: Config, options: SuperviseOptions) => RunningGateway | undefined;
  /** Runs a process that `supervise` has started. The returned function stops it. */
  readonly work?: (program: WorkerProgram) => () => void;
}

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
   * Whether the process has received a signal to stop, which a terminal sends to its child
   * processes too.
   */
  stopRequested(): boolean;
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
