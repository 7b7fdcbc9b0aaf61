// The program as a process of its own, from the sources or as the built file: started, listened to,
// killed.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, existsSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { buildSync } from "esbuild";
import { PROGRAM } from "../../scripts/build.ts";
import { within } from "./wait.ts";

/** What is run, and where: a peer package is looked for in that folder. */
export interface Program {
  /** Node's arguments up to and with the program's file, all paths absolute. */
  readonly args: readonly string[];
  readonly cwd: string;
  /** What runs Node, with its arguments; absent: nothing but Node itself. */
  readonly command?: readonly string[];
}

/**
 * What `npm test` has made before it began: the program as one file, beside it every module
 * compiled. Absent: a test file runs alone.
 */
const { COMPILED_PROGRAM, NODE_V8_COVERAGE } = process.env;

/** The sources as they are, through tsx where Node does not run TypeScript itself. */
export function fromSources(cwd: string, file = "src/main.ts"): Program {
  const native = "typescript" in process.features && process.features.typescript;
  return {
    args: [...(native ? [] : ["--import", import.meta.resolve("tsx")]), resolve(file)],
    cwd,
  };
}

/**
 * The module that the tests themselves would import, so that the coverage of both can be added up.
 */
export function fromModules(cwd: string, file = "src/main.ts"): Program {
  if (COMPILED_PROGRAM === undefined) return fromSources(cwd, file);
  return { args: [resolve(dirname(COMPILED_PROGRAM), file.replace(/\.ts$/, ".js"))], cwd };
}

/**
 * The same as one file, made in `place` unless it is there: it starts in a fraction of the time.
 */
export function bundled(place: string, cwd = place): Program {
  const outfile = join(place, "gateway.mjs");
  if (!existsSync(outfile)) {
    if (COMPILED_PROGRAM === undefined)
      buildSync({ ...PROGRAM, entryPoints: [resolve("src/main.ts")], outfile });
    else copyFileSync(COMPILED_PROGRAM, outfile);
  }
  return { args: [outfile], cwd };
}

/** One file, but where coverage is measured. */
export const quickest = (place: string, cwd = place): Program =>
  NODE_V8_COVERAGE === undefined ? bundled(place, cwd) : fromModules(cwd);

export interface Ended {
  readonly code: number | null;
  readonly signal: string | null;
  readonly stdout: string;
  readonly stderr: string;
}

export type Running = ReturnType<typeof launch>;

/** How a process differs from others. */
export interface LaunchOptions {
  readonly env?: NodeJS.ProcessEnv | undefined;
  /** At the head of a process group of its own, as a terminal starts it. */
  readonly detached?: boolean;
  /**
   * Called with each line of its output. Once it listens, nothing is kept: it may say much for
   * long. Absent: all of its output is kept.
   */
  readonly heard?: ((line: string, from: "stdout" | "stderr") => void) | "nobody" | undefined;
}

export function launch(
  { args, cwd, command: [first = "", ...rest] = [process.execPath] }: Program,
  more: readonly string[],
  { env: over = {}, detached = false, heard }: LaunchOptions = {},
) {
  const { PATH = "" } = process.env;
  // Nothing of the surroundings gets in, but for what coverage needs; warnings about Node itself
  // are not the program's. tsx must compile for it what it compiles for the tests (the same
  // tsconfig.json), or its coverage cannot be added to theirs.
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
  const isKept = () => heard === undefined || !listens;
  for (const from of ["stdout", "stderr"] as const)
    if (typeof heard === "function")
      createInterface(child[from]).on("line", (line) => heard(line, from));
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    if (isKept()) stderr += text;
  });
  /** Resolves with its output, as far as it is kept, when it has ended. */
  const ended = once(child, "close").then(
    ([code, signal]): Ended => ({ code, signal, stdout, stderr }),
  );
  /** Where it listens; rejects if it ends before it has said so. */
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
  address.catch(() => undefined); // some are killed before they listen, and nobody waits
  return {
    child,
    stdout: () => stdout,
    stderr: () => stderr,
    address,
    /** The admin listener's address, once it listens. */
    admin: () => /admin on (http:[^\s;)]+)/.exec(stdout)?.[1] ?? "",
    ended,
  };
}

/** Runs a command to its end. */
export async function runToEnd(
  program: Program,
  args: readonly string[],
  ms = 60_000,
): Promise<Ended> {
  const { child, ended } = launch(program, args);
  return within(ended, `the end of ${args.join(" ")}`, ms).finally(() => child.kill("SIGKILL"));
}

const DAY_MS = 86_400_000;

/** A day is closed only when it is over for some seconds. */
const OVER_MS = 60_000;

/** The same program, whose wall clock is set forward to the beginning of the next day of UTC. */
export function tomorrow(program: Program): Program {
  const shift = DAY_MS - (Date.now() % DAY_MS) + OVER_MS;
  const module = `const { now } = Date;
    globalThis.Date = class extends Date {
      constructor(...args) { super(...(args.length > 0 ? args : [Date.now()])); }
      static now() { return now() + ${shift}; }
    };`;
  const url = `data:text/javascript,${encodeURIComponent(module)}`;
  return { ...program, args: ["--import", url, ...program.args] };
}
