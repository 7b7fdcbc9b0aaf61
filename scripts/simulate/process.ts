// Processes of the world: the program as esbuild bundles it, called with globals and modules of
// Node that lead into the world. So the sources need no seam: whatever they take from Node, time,
// chance, network, disk or other processes, comes from here, and what is not here does not exist.

import { EventEmitter } from "node:events";
import { Writable } from "node:stream";
import vm from "node:vm";
import { type Cluster, createCluster } from "./cluster.ts";
import { createModules, type Machine } from "./modules.ts";
import type { SimProcess } from "./world.ts";

/** Names that a bundle gets as parameters, in their order. */
const GLOBALS = [
  "require",
  "module",
  "process",
  "performance",
  "Date",
  "Math",
  "setTimeout",
  "clearTimeout",
  "setInterval",
  "clearInterval",
  "setImmediate",
  "clearImmediate",
  "AbortSignal",
  "fetch",
] as const;

/** A bundle that was compiled once. Each call makes a process of its own of it. */
export type Bundle = (...globals: readonly unknown[]) => void;

export const compile = (code: string, name: string): Bundle =>
  new vm.Script(`(function (${GLOBALS.join(", ")}) {${code}\n})`, {
    filename: name,
  }).runInThisContext() as Bundle;

/** What is written to a stream of the process. */
function createOutput(write: (text: string) => void): Writable {
  return new Writable({
    decodeStrings: false,
    write(chunk, _encoding, done) {
      write(String(chunk));
      done();
    },
  });
}

export interface StartOptions {
  readonly name: string;
  readonly argv: readonly string[];
  /** Called with whole lines of its standard output, and of its standard error. */
  readonly said: (line: string) => void;
  readonly warned: (line: string) => void;
  /** Called with its exit code when it ends by itself. */
  readonly ended?: (code: number) => void;
  /** Absent: it is a first process. */
  readonly cluster?: Cluster;
}

export interface StartedProcess {
  readonly owner: SimProcess;
  exports(): Record<string, unknown>;
  signal(name: "SIGTERM" | "SIGHUP"): void;
}

/** Starts the program of a bundle as a process of its own. */
export function startProcess(
  machine: Machine,
  bundle: Bundle,
  options: StartOptions,
): StartedProcess {
  const { world } = machine;
  const { name, argv, said, warned, ended } = options;
  const owner = world.createProcess(name);
  const signals = new EventEmitter();
  const exit = (code: number): void => {
    if (!owner.alive) return;
    world.end(owner, `exit ${code}`);
    ended?.(code);
  };
  owner.crashed = (error) => {
    warned(`crashed: ${(error as Error)?.stack ?? error}\n`);
    ended?.(1);
  };
  const cluster =
    options.cluster ??
    createCluster(world, owner, (workerCluster, workerName, workerSaid, workerWarned) => {
      const worker = { name: workerName, argv, said: workerSaid, warned: workerWarned };
      return startProcess(machine, bundle, { ...worker, cluster: workerCluster }).owner;
    });
  const { time, require } = createModules(machine, owner, cluster);
  const currentProcess = Object.assign(signals, {
    argv: ["node", "chat-gateway", ...argv],
    env: {},
    stdout: createOutput(said),
    stderr: createOutput(warned),
    stdin: undefined,
    exit,
    getuid: () => 1,
    pid: 1,
  });
  // A command has ended when it says with which code; a gateway serves on.
  Object.defineProperty(currentProcess, "exitCode", {
    set: (code: number) => {
      if (argv[0] !== "serve") exit(code);
    },
  });
  const module = { exports: {} as Record<string, unknown> };
  const globals: Record<(typeof GLOBALS)[number], unknown> = {
    require,
    module,
    process: currentProcess,
    performance: time.performance,
    Date: time.Date,
    Math: Object.assign(Object.create(Math), { random: world.random.random }),
    ...time.timers,
    AbortSignal: time.AbortSignal,
    fetch: () => Promise.reject(new Error("the world has no fetch")),
  };
  world.immediate(owner, `starts: ${argv.join(" ")}`, () =>
    bundle(...GLOBALS.map((global) => globals[global])),
  );
  return {
    owner,
    exports: () => module.exports,
    signal(signal) {
      signals.emit(signal, signal);
    },
  };
}
