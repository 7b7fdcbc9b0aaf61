// The context of a command: its terminal and its configuration.
import { existsSync, statSync } from "node:fs";
import type { Writable } from "node:stream";
import type { CommandArguments, LoadForCommand, Terminal } from "./command.ts";
import { loadConfig, type Loaded } from "../config/load.ts";
import type { Loader } from "../config/loader.ts";

/** The signals that the process has received since its start. */
export interface Signals {
  /** Calls the listener at each SIGHUP, and at once if one has arrived already. */
  onHangup(listener: () => void): void;
  /** Aborted by the first SIGTERM or SIGINT. The second ends the process. */
  readonly stopped: AbortSignal;
  /**
   * Lets these signals end the process, as they do without a listener. That includes signals that
   * have arrived already.
   */
  restoreDefault(names: readonly ("SIGHUP" | "SIGTERM" | "SIGINT")[]): void;
}

/** The parts of the process that the program uses. */
export interface Process extends Pick<Terminal, "env" | "print" | "stdout" | "stdin"> {
  /** SIGHUP reloads; SIGTERM and SIGINT stop (contract.md "Stopping"). */
  readonly signals: Signals;
  /** Standard error, for diagnostics and for error messages of commands. */
  readonly stderr: Writable;
  /** If the process is root, makes it continue as this user. */
  switchUser(user: { readonly uid: number; readonly gid: number }): void;
  /** Ends the process once its logs are written, or after some seconds if a reader is slow. */
  exit(code: number): void;
}

export function createTerminal(currentProcess: Process, loader: Loader): Terminal {
  const { env, print, stdout, stdin } = currentProcess;

  async function load(
    { values: { config: file } }: CommandArguments,
    options: LoadForCommand = {},
  ): Promise<Loaded> {
    const { forThisHost = false, secretsOptional } = options;
    const loaded = await loadConfig({ file, env, loader, serves: forThisHost, ...options });
    const { data_dir } = loaded.config;
    // Files that root writes must belong to the owner of data_dir, or a gateway that is not root
    // could not read them.
    if (secretsOptional && existsSync(data_dir)) currentProcess.switchUser(statSync(data_dir));
    return loaded;
  }

  return {
    env,
    print,
    warn(line) {
      currentProcess.stderr.write(`chat-gateway: ${line}\n`);
    },
    printResult: ({ values }, data, text) =>
      print(values["json"] === undefined ? text : `${JSON.stringify(data)}\n`),
    load,
    stdout,
    stdin,
    stopped: currentProcess.signals.stopped,
  };
}
