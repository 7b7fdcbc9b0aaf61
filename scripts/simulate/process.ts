// Processes of the world: the program as esbuild bundles it, called with globals and modules of
// Node that lead into the world. So the sources need no seam: whatever they take from Node, time,
// chance, network, disk or other processes, comes from here, and what is not here does not exist.

import { EventEmitter } from "node:events";
import { Writable } from "node:stream";
import vm from "node:vm";
import { type Cluster, createCluster } from "./cluster.ts";
import { createModules, type Machine } from "./modules.ts";
import type { SimProcess } from "./world.ts";

/** A program. Each call makes a process of its own of it, with these globals. */
export type Bundle = (globals: object) => void;

/** All processes have globals of the same names, so it is compiled once. */
export function createBundle(code: string, filename: string): Bundle {
  let program: ((...globals: readonly unknown[]) => void) | undefined;
  return (globals) => {
    program ??= new vm.Script(`(function (${Object.keys(globals).join(", ")}) {${code}\n})`, {
      filename,
    }).runInThisContext() as typeof program;
    program!(...Object.values(globals));
  };
}

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
  const module = { exports: {} as Record<string, unknown> };
  const globals = {
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
  world.immediate(owner, `starts: ${argv.join(" ")}`, () => {
    bundle(globals);
    // A command has ended when it says later with which code; a gateway serves on.
    Object.defineProperty(currentProcess, "exitCode", {
      set: (code: number) => {
        if (argv[0] !== "serve") exit(code);
      },
    });
  });
  return {
    owner,
    exports: () => module.exports,
    signal(signal) {
      signals.emit(signal, signal);
    },
  };
}
