// Runs the program's commands in this process: the same arguments, output and exit code, without
// the time that a process takes to start. Tests in which several processes interact, or one is
// killed, start real ones (program.ts).

import { Writable, type Readable } from "node:stream";
import { extensions } from "../../src/extensions.ts";
import type { Process } from "../../src/command-line/terminal.ts";
import { run } from "../../src/program.ts";
import type { Ended } from "./program.ts";
import "./today.ts"; // for its clock

/** Signals that never arrive. */
const SIGNALS = {
  onHangup: () => undefined,
  stopped: new AbortController().signal,
  restoreDefault: () => undefined,
};

/** A stream that keeps everything written to it. */
function createSink(changed: (text: string) => void = () => undefined) {
  let text = "";
  const stream = new Writable({
    decodeStrings: false,
    write(chunk, _encoding, done) {
      text += String(chunk);
      changed(text);
      done();
    },
  });
  return { stream, text: () => text };
}

/** The environment and the terminal of a command. */
export interface Surroundings {
  readonly env?: Readonly<Record<string, string>>;
  /** Whether standard output and standard error are terminals. Absent: they are not. */
  readonly isTerminal?: boolean;
  /** Standard input. Absent: there is none. */
  readonly stdin?: Readable;
  /** Called with all of standard output so far, after each write. */
  readonly printed?: (stdout: string) => void;
}

/** Runs a command other than `serve` to its end. */
export async function runHere(
  args: readonly string[],
  { env = {}, isTerminal = false, stdin, printed }: Surroundings = {},
): Promise<Ended> {
  const stdout = createSink(printed);
  const stderr = createSink();
  if (isTerminal) for (const { stream } of [stdout, stderr]) Object.assign(stream, { isTTY: true });
  const currentProcess: Process = {
    env,
    signals: SIGNALS,
    stdout: stdout.stream,
    stderr: stderr.stream,
    ...(stdin && { stdin: () => stdin }),
    print: async (text) => {
      stdout.stream.write(text);
    },
    switchUser: () => undefined,
    exit: (status) => {
      throw new Error(`the command wanted to exit with ${status}`);
    },
  };
  const code = await run(args, currentProcess, extensions);
  return { code: code ?? 0, signal: null, stdout: stdout.text(), stderr: stderr.text() };
}
