// The interfaces of extensions that watch the configuration of `serve`, start further processes, or
// run in such a process.
import type { Limiter } from "../core/accounts/limiter.ts";
import type { Config } from "../core/config.ts";
import type { Extension } from "../core/extension/installer.ts";
import type { Gateway } from "../core/app.ts";
import type { LogTargets } from "../core/logs.ts";

/** The function in programSlots.watchConfig. */
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
 * The environment variable that distinguishes a worker of this program from a worker of another
 * program that uses node:cluster, such as PM2's cluster mode. Its value is the version of the
 * primary: a worker of another version might misunderstand the messages.
 */
export const WORKER_MARK = "CHAT_GATEWAY_WORKER";

/** The program's services for a process that another one has started. */
export interface WorkerProgram {
  /**
   * Creates the gateway of this process. `extensions`: the names of the extensions that the
   * configuration needs.
   */
  create(config: Config, extensions: readonly string[], limiter: Limiter): Promise<Gateway>;
  /** Puts another configuration in force. If that fails, reports the reason. */
  reload(gateway: Gateway, config: Config, extensions: readonly string[]): Promise<void>;
  /** Ends the process: after the gateway is drained, or at once if there is none. */
  end(gateway?: Gateway): void;
}
