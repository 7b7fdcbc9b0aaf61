// Runs the program as a separate process, from the sources or as one built file.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, existsSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { buildSync } from "esbuild";
import { PROGRAM } from "../../scripts/build.ts";
import { clockArgs, clockModule } from "./today.ts";
import { within } from "./wait.ts";

/** A program to run. Peer packages are searched for in the folder `cwd`. */
export interface Program {
  /** Node's arguments up to the program's file, with absolute paths. */
  readonly args: readonly string[];
  readonly cwd: string;
  /** The command that runs the program, with its arguments. Absent: Node with the tests' clock. */
  readonly command?: readonly string[];
}

/**
 * COMPILED_PROGRAM: the program as one file, beside all compiled modules. `npm test` builds these
 * before the tests. Absent: a test file runs alone.
 */
const { COMPILED_PROGRAM, NODE_V8_COVERAGE } = process.env;

/** The sources, run by tsx if Node cannot run TypeScript. */
export function fromSources(cwd: string, file = "src/main.ts"): Program {
  const native = "typescript" in process.features && process.features.typescript;
  return {
    args: [...(native ? [] : ["--import", import.meta.resolve("tsx")]), resolve(file)],
    cwd,
  };
}

/** The same modules that the tests import, so that the coverage of both can be added up. */
export function fromModules(cwd: string, file = "src/main.ts"): Program {
  if (COMPILED_PROGRAM === undefined) return fromSources(cwd, file);
  return { args: [resolve(dirname(COMPILED_PROGRAM), file.replace(/\.ts$/, ".js"))], cwd };
}

/** The program as one file, which starts faster. Writes it to the folder `place` if missing. */
export function bundled(place: string, cwd = place): Program {
  const outfile = join(place, "gateway.mjs");
  if (!existsSync(outfile)) {
    if (COMPILED_PROGRAM === undefined)
      buildSync({ ...PROGRAM, entryPoints: [resolve("src/main.ts")], outfile });
    else copyFileSync(COMPILED_PROGRAM, outfile);
  }
  return { args: [outfile], cwd };
}

/** The program that starts fastest or, if coverage is measured, the one that can be measured. */
export const quickest = (place: string, cwd = place): Program =>
  NODE_V8_COVERAGE === undefined ? bundled(place, cwd) : fromModules(cwd);

/** How a process ended. */
export interface Ended {
  readonly code: number | null;
  readonly signal: string | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A process that was started. */
export type Running = ReturnType<typeof launch>;

/** Options of launch(). */
export interface LaunchOptions {
  readonly env?: NodeJS.ProcessEnv | undefined;
  /** Whether it leads its own process group, as if started by a terminal. Absent: false. */
  readonly detached?: boolean;
  /**
   * Called with each line of the output. The output is then kept only until the program listens,
   * because it may be long. "ignore": the same without calls. Absent: all output is kept.
   */
  readonly onLine?: ((line: string, from: "stdout" | "stderr") => void) | "ignore" | undefined;
}

/** Starts a program with further arguments. */
export function launch(
  { args, cwd, command: [first = "", ...rest] = [process.execPath, ...clockArgs] }: Program,
  more: readonly string[],
  { env: over = {}, detached = false, onLine }: LaunchOptions = {},
) {
  const { PATH = "" } = process.env;
  // The program inherits only the variables that coverage needs, and prints no warnings of Node.
  // tsx must compile it with the same tsconfig.json as the tests, or their coverage could not be
  // added up.
  const env = {
    PATH,
    NODE_NO_WARNINGS: "1",
    TSX_TSCONFIG_PATH: resolve("tsconfig.json"),
    ...(NODE_V8_COVERAGE !== undefined && { NODE_V8_COVERAGE }),
    ...over,
  };
  const child = spawn(first, [...rest, ...args, ...more], {
    cwd,
    detached,
    stdio: ["ignore", "pipe", "pipe"],
    env,
  });
  let stdout = "";
  let stderr = "";
  let listens: RegExpExecArray | null = null;
  const isKept = () => onLine === undefined || !listens;
  for (const from of ["stdout", "stderr"] as const)
    if (typeof onLine === "function")
      createInterface(child[from]).on("line", (line) => onLine(line, from));
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    if (isKept()) stderr += text;
  });
  /** Resolves when the program has ended, with the output that was kept. */
  const ended = once(child, "close").then(
    ([code, signal]): Ended => ({ code, signal, stdout, stderr }),
  );
  /** The address that the program prints. Rejects if it ends before. */
  const address = new Promise<string>((resolve, reject) => {
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      if (isKept()) stdout += text;
      listens ??= /^(?:chat-gateway )?listens on (\S+)(?: \(.*\))?\n/m.exec(stdout);
      if (listens) resolve(listens[1]!);
    });
    ended.then(({ code, signal }) =>
      reject(new Error(`it ended with ${code ?? signal} before it listened: ${stderr}`)),
    );
  });
  address.catch(() => undefined); // a caller may kill the program without waiting for the address
  return {
    child,
    stdout: () => stdout,
    stderr: () => stderr,
    address,
    /** The address of the admin listener. Empty: it has not been printed. */
    admin: () => /admin on (http:[^\s;)]+)/.exec(stdout)?.[1] ?? "",
    ended,
  };
}

/** Runs a command to its end. */
export async function runToEnd(program: Program, args: readonly string[], ms = 60_000) {
  const { child, ended } = launch(program, args);
  return within(ended, `the end of ${args.join(" ")}`, ms).finally(() => child.kill("SIGKILL"));
}

const DAY_MS = 86_400_000;

/** Added to the beginning of tomorrow: the gateway closes a day some seconds after its end. */
const OVER_MS = 60_000;

/** The same program with its wall clock set to the beginning of tomorrow, in UTC. */
export function tomorrow(program: Program): Program {
  const shift = DAY_MS - (Date.now() % DAY_MS) + OVER_MS;
  return { ...program, args: ["--import", clockModule(shift), ...program.args] };
}
