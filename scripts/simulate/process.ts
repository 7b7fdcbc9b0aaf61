// Simulated processes: the program as bundled by esbuild, called with simulated globals and modules
// of Node. So the sources need no hooks: time, chance, network, disk and other processes reach them
// only through these, and what is not simulated does not exist.

import { EventEmitter } from "node:events";
import { readFileSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { Writable } from "node:stream";
import vm from "node:vm";
import { build, type Plugin } from "esbuild";
import { WORKER_MARK } from "../../src/command-line/processes.ts";
import { VERSION } from "../../src/core/version.ts";
import { ONE_FILE } from "../build.ts";
import { type Cluster, createCluster, type Output } from "./cluster.ts";
import { createModules, type Machine } from "./modules.ts";

/** A change of one source file, which plants a bug. */
export interface Change {
  /** Relative to src: `core/accounts/limiter.ts`. */
  readonly file: string;
  /** A text that the file has once. */
  readonly find: string;
  /** Its replacement. Absent: nothing. */
  readonly replace?: string;
}

/** This script may run compiled, so the sources are looked for in the working directory. */
const SRC = resolve("src");

/** Applies a change. Throws unless the text contains its place exactly once. */
function changed(text: string, { file, find, replace = "" }: Change): string {
  const parts = text.split(find);
  if (parts.length !== 2) throw new Error(`src/${file} has ${parts.length - 1} times: ${find}`);
  return parts.join(replace);
}

/** Applies changes while esbuild reads the sources. */
const changing = (changes: readonly Change[]): Plugin => ({
  name: "changes",
  setup({ onLoad }) {
    onLoad({ filter: /[\\/]src[\\/].*\.ts$/ }, ({ path }) => {
      const file = relative(SRC, path).replaceAll("\\", "/");
      const own = changes.filter((change) => change.file === file);
      if (own.length === 0) return undefined;
      return { contents: own.reduce(changed, readFileSync(path, "utf8")), loader: "ts" };
    });
  },
});

/** A program. Each call runs it as another process, with these globals. */
export type Bundle = (globals: object) => void;

/** The programs of a run. */
export interface Bundles {
  readonly gateway: Bundle;
  readonly actors: Bundle;
}

async function bundle(entry: string, changes: readonly Change[]): Promise<Bundle> {
  const { outputFiles } = await build({
    ...ONE_FILE,
    format: "cjs",
    entryPoints: [entry],
    plugins: [changing(changes)],
    write: false,
    logOverride: { "empty-import-meta": "silent" },
  });
  const code = outputFiles[0]!.text.replace(/^#!.*/, "");
  const filename = relative("", entry);
  let program: ((...globals: readonly unknown[]) => void) | undefined;
  return (globals) => {
    // The globals of all processes have the same names, so one compiled script serves all.
    const text = `(function (${Object.keys(globals).join(", ")}) {${code}\n})`;
    program ??= new vm.Script(text, { filename }).runInThisContext() as typeof program;
    program!(...Object.values(globals));
  };
}

/** Bundles the gateway, with planted bugs. */
export const bundleGateway = (changes: readonly Change[] = []): Promise<Bundle> =>
  bundle(join(SRC, "main.ts"), changes);

/** Bundles the clients and the provider. */
export const bundleActors = (): Promise<Bundle> =>
  bundle(resolve("scripts/simulate/actors.ts"), []);

/** How to start a process. */
export interface StartOptions {
  readonly name: string;
  readonly argv: readonly string[];
  readonly onOutput: Output;
  /** Its node:cluster, if it is a worker. Absent: it is a primary process. */
  readonly cluster?: Cluster;
}

/** A process that was started. */
export type Running = ReturnType<typeof startProcess>;

/** Starts the program of a bundle as a process of its own. */
export function startProcess(machine: Machine, bundle: Bundle, options: StartOptions) {
  const { sim } = machine;
  const { name, argv, onOutput } = options;
  const owner = sim.createProcess(name);
  const signals = new EventEmitter();
  const module = { exports: {} };
  const running = {
    owner,
    /** What it has written so far. */
    stdout: "",
    stderr: "",
    /** Undefined: it still runs, or was killed. */
    exitCode: undefined as number | undefined,
    exports: (): Record<string, unknown> => module.exports,
    signal: (signal: "SIGTERM" | "SIGHUP") => signals.emit(signal, signal),
  };
  function print(text: string, from: "stdout" | "stderr"): void {
    running[from] += text;
    onOutput(text, from);
  }
  const output = (from: "stdout" | "stderr"): Writable =>
    new Writable({
      decodeStrings: false,
      write(chunk, _encoding, done) {
        print(String(chunk), from);
        done();
      },
    });
  function exit(code: number): void {
    if (!owner.alive) return;
    sim.end(owner, `exit ${code}`);
    running.exitCode = code;
  }
  owner.crashed = (error) => {
    running.exitCode = 1;
    print(`crashed: ${(error as Error)?.stack ?? error}\n`, "stderr");
  };
  const cluster =
    options.cluster ??
    createCluster(sim, owner, (own, workerName, onWorkerOutput) => {
      const worker = { name: workerName, argv, onOutput: onWorkerOutput, cluster: own };
      return startProcess(machine, bundle, worker).owner;
    });
  const { time, require } = createModules(machine, owner, cluster);
  const currentProcess = Object.assign(signals, {
    argv: ["node", "chat-gateway", ...argv],
    env: cluster.isWorker ? { [WORKER_MARK]: VERSION } : {},
    stdout: output("stdout"),
    stderr: output("stderr"),
    stdin: undefined,
    exit,
    getuid: () => 1,
    getBuiltinModule: require,
    versions: {},
    pid: 1,
  });
  const globals = {
    require,
    module,
    process: currentProcess,
    performance: time.performance,
    Date: time.Date,
    Math: Object.assign(Object.create(Math), { random: sim.random.random }),
    ...time.timers,
    AbortSignal: time.AbortSignal,
    fetch: () => Promise.reject(new Error("the simulation has no fetch")),
  };
  sim.immediate(owner, `starts: ${argv.join(" ")}`, () => {
    bundle(globals);
    // A command sets process.exitCode when its work is done. A gateway continues to serve.
    Object.defineProperty(currentProcess, "exitCode", {
      set: (code: number) => {
        if (argv[0] !== "serve") exit(code);
      },
    });
  });
  return running;
}
