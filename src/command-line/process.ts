// What the program is given of the process that runs it. src/main.ts makes it.
import type { Readable, Writable } from "node:stream";
import type { Environment } from "../config/schema.ts";

/** The signals that the process has received since its first moment. */
export interface Signals {
  /** Calls the listener at each SIGHUP, and at once if one has come already. */
  onHangup(listener: () => void): void;
  /**
   * Calls the listener at the first SIGTERM or SIGINT, and at once if it has come already. The
   * second ends the process.
   */
  onStop(listener: () => void): void;
  /** Whether a SIGTERM or SIGINT has come. */
  stopRequested(): boolean;
  /**
   * Lets signals end the process, as they do where nobody listens; also those that have come
   * already.
   */
  leaveToSystem(names: readonly ("SIGHUP" | "SIGTERM" | "SIGINT")[]): void;
}

/** What the process gives to the program. */
export interface Process {
  /** Its environment variables, which may hold secrets. */
  readonly env: Environment;
  /** SIGHUP reloads; SIGTERM and SIGINT stop (DESIGN.md "Stopping"). */
  readonly signals: Signals;
  /** For the access log, and for the line that announces the gateway. */
  readonly stdout: Writable;
  /** For diagnostics, and for what is wrong with a command. */
  readonly stderr: Writable;
  /** Standard input, which is opened at the first call. Absent: there is none. */
  readonly stdin?: () => Readable;
  /** Writes text to standard output. Resolves when it is written. */
  print(text: string): Promise<void>;
  /** What the process does from here on, it does as this user, if it is root. */
  actAs(user: { readonly uid: number; readonly gid: number }): void;
  /** Ends the process at once. */
  exit(code: number): void;
}
