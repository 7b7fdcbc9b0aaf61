// A command of the program, such as `keys list`, what it is given, and what an extension can add to
// the program.
import type { Readable, Writable } from "node:stream";
import type { Config } from "../core/config.ts";
import type { Loaded, LoadOptions } from "../config/load.ts";
import type { Environment } from "../config/secrets.ts";
import type { RunningGateway } from "../core/app.ts";
import { moment, slot, slotFamily } from "../core/extension/installer.ts";
import type { SuperviseOptions, Watch, WorkerProgram } from "./processes.ts";
import type { Manual } from "./manual.ts";

/** An option, `--name VALUE`. */
export interface CommandOption {
  /** What `help` shows in the value's place: `FILE`. Absent: it takes no value. */
  readonly value?: string;
  /** The purpose of the option, as `help` shows it: without a capital and a full stop. */
  readonly meaning: string;
  /** The default of an option with a value, as `help` shows it. Absent: there is none. */
  readonly fallback?: string;
  /** The command cannot run without it. Absent: it can. */
  readonly required?: boolean;
  /** Whether a value has the right form. Absent: any has. */
  readonly test?: (value: string) => boolean;
  /** The right form, for the message about a wrong one: "a month such as 2026-11". */
  readonly expected?: string;
}

export interface Command {
  /** The summary in `help`, one line. */
  readonly summary: string;
  /** The name of its operand, in capitals. Absent: the command takes none. */
  readonly operand?: string;
  /** The operand may be left out. Absent: it is required. */
  readonly operandOptional?: boolean;
  /** The meaning of the operand, as CommandOption.meaning. Absent where there is no operand. */
  readonly operandMeaning?: string;
  /** A command line of it that makes sense, without the program's name. */
  readonly example: string;
  /**
   * By their names, in the order in which `help` shows them. `--config`, `--help` and `--version`
   * are every command's.
   */
  readonly options?: Readonly<Record<string, CommandOption>>;
  /**
   * It is stopped by SIGTERM and SIGINT through Terminal.stopped. Absent: these end the process.
   */
  readonly stopsBySignal?: boolean;
  /**
   * Resolves with the exit code; undefined is 0. An Error that it throws is printed, with exit code
   * 1.
   */
  run(args: CommandArguments, terminal: Terminal): Promise<number | void>;
}

export interface CommandArguments {
  /** Empty where the command takes none, or where one that is optional was left out. */
  readonly operand: string;
  /** By the names of the options. A flag that was set is "true". */
  readonly values: Readonly<Record<string, string | undefined>>;
}

/** With `secretsOptional` root acts as the owner of data_dir. `serves` absent: as `here`. */
export type LoadForCommand = Pick<LoadOptions, "secretsOptional" | "here" | "serves" | "members">;

/** The services of the process that a command needs. */
export interface Terminal {
  /** The environment variables of the process, which may hold secrets. */
  readonly env: Environment;
  /** Writes text to standard output. Resolves when it is written. */
  print(text: string): Promise<void>;
  /** Writes a line to standard error. */
  warn(line: string): void;
  /** Prints a result: as JSON with --json, else as text for people. */
  answer(args: CommandArguments, data: unknown, text: string): Promise<void>;
  /** Loads the configuration that --config names. Throws a ValidationError. */
  load(args: CommandArguments, options?: LoadForCommand): Promise<Loaded>;
  /**
   * Standard output. Commands print by print() and answer(); a live view takes it over. `serve`
   * announces the gateway there, and writes the access log.
   */
  readonly stdout: Writable & { readonly isTTY?: boolean };
  /** Opens standard input, at the first call. Absent: there is none. */
  readonly stdin?: (() => Readable) | undefined;
  /** Aborted when the command is to end. */
  readonly stopped: AbortSignal;
}

/** A mistake in the command line: one line on standard error, exit code 2. */
export class UsageError extends Error {}

/** Terminal.answer follows it. */
export const JSON_OPTION: CommandOption = { meaning: "print one line of JSON" };

/** The places of the program that an extension can fill. */
export const programSlots = {
  /** Commands, by their names as they are typed: `keys list`. The entry lists the names. */
  command: slotFamily<Command>("command"),
  /** What `help` prints. */
  manual: slot<Manual>("manual"),
  /**
   * Calls `changed` whenever a configuration file, or the file of one of its secrets, has other
   * content, until what it returns is closed. `state` is that of the content in force: its SHA-256,
   * or why it could not be read; null if there was no file. Empty: a reload takes SIGHUP.
   */
  watchConfig: slot<Watch>("watchConfig"),
  /**
   * Takes the place of the gateway in this process, and starts others. Undefined: this
   * configuration does not want that.
   */
  supervise:
    slot<(config: Config, options: SuperviseOptions) => RunningGateway | undefined>("supervise"),
  /** Runs a process that `supervise` has started. The returned function stops it. */
  work: slot<(program: WorkerProgram) => () => void>("work"),
};

/** A gateway is to start on this machine. Throws a ValidationError if it can never start. */
export const beforeServing = moment<(config: Config) => void>("beforeServing");
