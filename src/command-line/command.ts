// A command of the program, such as `keys list`, its arguments and services, and the slots of the
// program that extensions can fill.
import type { Readable, Writable } from "node:stream";
import type { Config } from "../core/config.ts";
import type { Loaded, LoadOptions } from "../config/load.ts";
import type { Environment } from "../config/secrets.ts";
import type { RunningGateway } from "../core/app.ts";
import { hook, slot, slotFamily } from "../core/extension/installer.ts";
import type { SuperviseOptions, Watch, WorkerProgram } from "./processes.ts";
import type { Manual } from "./manual.ts";

/** An option, `--name VALUE`. */
export interface CommandOption {
  /** The placeholder for the value in `help`: `FILE`. Absent: the option takes no value. */
  readonly value?: string;
  /** The purpose of the option, as `help` shows it: without a capital and a full stop. */
  readonly help: string;
  /** The default of an option with a value, as `help` shows it. Absent: there is none. */
  readonly fallback?: string;
  /** Whether the command needs the option. Absent: it does not. */
  readonly required?: boolean;
  /** Whether a value has the right form. Absent: every value has. */
  readonly test?: (value: string) => boolean;
  /** The right form, for the message about a wrong value: "a month such as 2026-11". */
  readonly expected?: string;
}

export interface Command {
  /** The summary in `help`, one line. */
  readonly summary: string;
  /** The name of the operand, in capitals. Absent: the command takes none. */
  readonly operand?: string;
  /** Whether the operand may be omitted. Absent: it is required. */
  readonly operandOptional?: boolean;
  /** The text about the operand, as in CommandOption.help. Absent: there is no operand. */
  readonly operandHelp?: string;
  /** A realistic command line, without the program's name. */
  readonly example: string;
  /**
   * The options by name, in the order in which `help` shows them. Every command also has
   * `--config`, `--help` and `--version`. Absent: there are no others.
   */
  readonly options?: Readonly<Record<string, CommandOption>>;
  /**
   * Whether SIGTERM and SIGINT stop the command through Terminal.stopped. Absent: they end the
   * process.
   */
  readonly stopsBySignal?: boolean;
  /**
   * Resolves with the exit code; undefined is 0. If it rejects with an Error, the message is
   * printed, and the exit code is 1, or 2 for a UsageError.
   */
  run(args: CommandArguments, terminal: Terminal): Promise<number | void>;
}

export interface CommandArguments {
  /** Empty: the command takes no operand, or an optional one was omitted. */
  readonly operand: string;
  /** The values by the names of the options. A flag that was set is "true". */
  readonly values: Readonly<Record<string, string | undefined>>;
}

/** With `secretsOptional`, root then becomes data_dir's owner. No `serves`: as `forThisHost`. */
export type LoadForCommand = Pick<
  LoadOptions,
  "secretsOptional" | "forThisHost" | "serves" | "members"
>;

/** The services of the process that a command needs. */
export interface Terminal {
  /** The environment variables of the process, which may hold secrets. */
  readonly env: Environment;
  /** Writes text to standard output. Resolves when it is written. */
  print(text: string): Promise<void>;
  /** Writes a line to standard error. */
  warn(line: string): void;
  /** Prints a result: `data` as JSON with --json, else `text`, which is for people. */
  printResult(args: CommandArguments, data: unknown, text: string): Promise<void>;
  /** Loads the configuration that --config names. Throws a ValidationError. */
  load(args: CommandArguments, options?: LoadForCommand): Promise<Loaded>;
  /**
   * Standard output. Commands use print() and printResult(). Only a live view writes here, and
   * `serve`, which prints its address and the access log.
   */
  readonly stdout: Writable & { readonly isTTY?: boolean };
  /** Opens standard input, at the first call. Absent: there is none. */
  readonly stdin?: (() => Readable) | undefined;
  /** Aborted when the command must end. */
  readonly stopped: AbortSignal;
}

/** A mistake in the command line: one line on standard error, exit code 2. */
export class UsageError extends Error {}

/** The option `--json`, which Terminal.printResult() applies. */
export const JSON_OPTION: CommandOption = { help: "print one line of JSON" };

/** The slots of the program that an extension can fill. */
export const programSlots = {
  /** Commands by name: `keys list`. The extension's entry in src/extensions.ts lists the names. */
  command: slotFamily<Command>("command"),
  /** The manual that `help` prints. Empty: there is none. */
  manual: slot<Manual>("manual"),
  /**
   * Calls `changed` whenever the content of a configuration file, or of one of its secret files,
   * changes, until the returned watcher is closed. `state`: the SHA-256 of the content in force, or
   * why the file could not be read; null if there was no file. Empty: only SIGHUP reloads.
   */
  watchConfig: slot<Watch>("watchConfig"),
  /**
   * Creates a supervisor, which replaces the gateway in this process and starts further processes.
   * Undefined: this configuration needs one process only.
   */
  supervise:
    slot<(config: Config, options: SuperviseOptions) => RunningGateway | undefined>("supervise"),
  /** Runs a process that `supervise` has started. The returned function stops it. */
  work: slot<(program: WorkerProgram) => () => void>("work"),
};

/** A gateway will start on this machine. Listeners throw a ValidationError if it never can. */
export const beforeServing = hook<(config: Config) => void>("beforeServing");
