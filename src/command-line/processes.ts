// The process that serves, or several of them: what extensions add to `serve`, and what those are
// given that start further processes or run in one of these.
import type { Limiter } from "../core/accounts/limiter.ts";
import type { Config } from "../core/config.ts";
import type { Extension } from "../core/extension/installer.ts";
import type { Gateway } from "../core/app.ts";
import type { LogTargets } from "../core/logs.ts";

/** As programSlots.watchConfig. */
export type Watch = (
  file: string,
  state: string | null,
  changed: () => Promise<void>,
) => { close(): void };

export interface SuperviseOptions extends LogTargets {
  /** The extensions that the configuration needs, in the order of src/extensions.ts. */
  readonly extensions: readonly Extension[];
  /**
   * Aborted when the process has received a signal to stop, which a terminal sends to its child
   * processes too.
   */
  readonly stopped: AbortSignal;
}

/**
 * The variable of the environment that tells a worker of this program from one of another program
 * that uses node:cluster too, such as PM2's cluster mode.
 */
export const WORKER_MARK = "CHAT_GATEWAY_WORKER";

/** The services of the program for a process that another one has started. */
export interface WorkerProgram {
  /**
   * Creates the gateway of this process. `extensions` are the names of those that the configuration
   * needs.
   */
  create(config: Config, extensions: readonly string[], limiter: Limiter): Promise<Gateway>;
  /** Puts another configuration in force, or reports why it cannot be. */
  reload(gateway: Gateway, config: Config, extensions: readonly string[]): Promise<void>;
  /** Ends the process: with the gateway drained, or at once if there is none. */
  end(gateway?: Gateway): void;
}
