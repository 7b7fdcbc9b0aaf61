// Processes of the world: the program as esbuild bundles it, called with globals and modules of
// Node that lead into the world. So the sources need no seam: whatever they take from Node, time,
// chance, network, disk or other processes, comes from here, and what is not here does not exist.

import assert from "node:assert/strict";
import crypto from "node:crypto";
import { EventEmitter } from "node:events";
import http from "node:http";
import { createRequire } from "node:module";
import net from "node:net";
import { resolve } from "node:path";
import { PassThrough, Writable } from "node:stream";
import { createSecureContext } from "node:tls";
import vm from "node:vm";
import { createCluster, type Cluster } from "./cluster.ts";
import { createDisk, type Disk, type Inode, systemError } from "./disk.ts";
import { createFiles } from "./files.ts";
import { createNetwork, type Network, type SimSocket, simulateServer } from "./network.ts";
import { countOpen, createWorld, type Pending, type SimProcess, type World } from "./world.ts";

/** What one machine of the world has. */
export interface Machine {
  readonly world: World;
  readonly network: Network;
  readonly disk: Disk;
  /** Optional peer packages, by name. */
  readonly peers: ReadonlyMap<string, (owner: SimProcess) => unknown>;
  /** Called before each change of the disk by the program. It may end the process. */
  readonly beforeChange: (owner: SimProcess, what: string) => void;
}

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

const realRequire = createRequire(import.meta.url);

/** Modules that neither wait nor look at the machine. */
const HARMLESS = [
  "node:async_hooks",
  "node:assert/strict",
  "node:buffer",
  "node:events",
  "node:path",
  "node:process",
  "node:stream",
  "node:stream/promises",
  "node:string_decoder",
  "node:url",
  "node:util",
  "node:zlib",
];

/** What of node:crypto has no chance in it. Keys are drawn by chance, which their files keep. */
const {
  createHash,
  createHmac,
  hash,
  timingSafeEqual,
  createCipheriv,
  createDecipheriv,
  hkdfSync,
  createPrivateKey,
  createPublicKey,
  sign,
  verify,
  X509Certificate,
} = crypto;
const HASHES = {
  createHash,
  createHmac,
  hash,
  timingSafeEqual,
  createCipheriv,
  createDecipheriv,
  hkdfSync,
  createPrivateKey,
  createPublicKey,
  sign,
  verify,
  X509Certificate,
};

/** Timers, and a wall clock, of one process. */
function createTime({ world }: Machine, owner: SimProcess) {
  type Listener = (...args: unknown[]) => void;

  function createTimer(ms: number, listener: Listener, args: unknown[], repeats: boolean) {
    let pending: Pending | undefined;
    const clear = (): void => {
      if (!pending) return;
      pending.isCancelled = true;
      pending = undefined;
      countOpen(owner, "timer", -1);
    };
    const set = (): void => {
      clear();
      countOpen(owner, "timer", 1);
      pending = world.after(Math.max(1, ms || 0), owner, "a timer", () => {
        clear();
        if (repeats) set();
        listener(...args);
      });
    };
    set();
    const timer = { refresh: () => (set(), timer), ref: () => timer, unref: () => timer, clear };
    return timer;
  }

  const clear = (timer?: { clear(): void }): void => timer?.clear();
  class SimDate extends Date {
    constructor(...values: readonly unknown[]) {
      super(...((values.length === 0 ? [world.wallClock()] : values) as [number]));
    }
    static override now(): number {
      return world.wallClock();
    }
  }
  const immediately = (listener: Listener, ...args: unknown[]): Pending =>
    world.immediate(owner, "an immediate", () => listener(...args));

  const timers = {
    setTimeout: (listener: Listener, ms: number, ...args: unknown[]) =>
      createTimer(ms, listener, args, false),
    clearTimeout: clear,
    setInterval: (listener: Listener, ms: number, ...args: unknown[]) =>
      createTimer(ms, listener, args, true),
    clearInterval: clear,
    setImmediate: immediately,
    clearImmediate(pending?: Pending) {
      if (pending) pending.isCancelled = true;
    },
  };
  const promises = {
    setTimeout: (ms: number, value?: unknown, { signal }: { signal?: AbortSignal } = {}) =>
      new Promise((resolve, reject) => {
        const timer = createTimer(ms, () => resolve(value), [], false);
        signal?.addEventListener("abort", () => {
          timer.clear();
          reject(signal.reason);
        });
      }),
    setImmediate: (value?: unknown) =>
      new Promise((resolve) => {
        immediately(() => resolve(value));
      }),
  };
  const performance = { now: () => world.time() };
  const signals = {
    abort: AbortSignal.abort.bind(AbortSignal),
    any: AbortSignal.any.bind(AbortSignal),
    timeout(ms: number): AbortSignal {
      const controller = new AbortController();
      createTimer(ms, () => controller.abort(new DOMException("late", "TimeoutError")), [], false);
      return controller.signal;
    },
  };
  return { timers, promises, performance, Date: SimDate, AbortSignal: signals };
}

const randomBytes = ({ random }: World, size: number): Buffer =>
  Buffer.from(Array.from({ length: size }, () => Math.floor(256 * random.random())));

/** Node's own servers and agents, over the network of the world. */
function createHttp({ network, disk }: Machine, owner: SimProcess) {
  /** A Unix socket may be given another name while it answers: its inode is its place. */
  function bindPath(path: string): string {
    if (disk.find(path)) throw systemError("EADDRINUSE", "listen", path);
    return placeOf(disk.create(path, "socket", 0o600));
  }
  function under<S extends net.Server>(server: S): S {
    server.once("listening", () => stopChecking(server));
    return simulateServer(server, { owner, network, bindPath });
  }
  function connect(
    to: string | { readonly path?: string | null; readonly port?: number },
    opened?: () => void,
  ): SimSocket {
    const options = typeof to === "string" ? { path: to } : to;
    const path = options.path ?? undefined;
    const inode = path === undefined ? undefined : disk.find(resolve(path));
    const place = inode ? placeOf(inode) : `127.0.0.1:${"port" in options ? options.port : 0}`;
    const refusal = path !== undefined && !inode ? "ENOENT" : "ECONNREFUSED";
    const socket = network.connect(owner, { place, refusal, options });
    if (opened) socket.once("connect", opened);
    return socket;
  }
  class Agent extends http.Agent {
    createConnection(options: object): net.Socket {
      return connect(options) as unknown as net.Socket;
    }
  }
  return {
    net: {
      isIP: net.isIP,
      connect,
      createConnection: connect,
      createServer: (listener: (socket: net.Socket) => void) => under(net.createServer(listener)),
    },
    http: {
      STATUS_CODES: http.STATUS_CODES,
      request: http.request,
      get: http.get,
      Agent,
      createServer: (options: object, listener?: http.RequestListener) =>
        under(http.createServer(options, listener)),
    },
  };
}

const placeOf = ({ number }: Inode): string => `/socket ${number}`;

/** Node looks for slow requests by a timer of the machine, which the world cannot have. */
function stopChecking(server: net.Server): void {
  for (const symbol of Object.getOwnPropertySymbols(server))
    if (symbol.description === "http.server.connectionsCheckingInterval")
      clearInterval(Reflect.get(server, symbol));
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
  /** What the bundle exports. */
  exports(): Record<string, unknown>;
  signal(name: "SIGTERM" | "SIGHUP"): void;
}

/** The modules of Node as a process gets them. */
function createModules(machine: Machine, owner: SimProcess, cluster: Cluster) {
  const { world, disk } = machine;
  const time = createTime(machine, owner);
  const beforeChange = (what: string): void => {
    if (!owner.alive) throw systemError("EIO", what);
    machine.beforeChange(owner, what);
  };
  const { fs, promises } = createFiles({ world, disk, owner, beforeChange });
  const { net: simNet, http: simHttp } = createHttp(machine, owner);
  const histogram = { enable() {}, disable() {}, reset() {}, percentile: () => 0, max: 0 };
  const modules = new Map<string, unknown>([
    ["node:fs", fs],
    ["node:fs/promises", promises],
    ["node:net", simNet],
    ["node:http", simHttp],
    ["node:https", {}],
    ["node:tls", { createSecureContext }],
    ["node:crypto", { ...HASHES, randomBytes: (size: number) => randomBytes(world, size) }],
    ["node:timers/promises", time.promises],
    ["node:cluster", cluster],
    ["node:os", { hostname: () => "machine" }],
    ["node:perf_hooks", { monitorEventLoopDelay: () => histogram }],
    ["node:v8", { getHeapStatistics: () => ({ heap_size_limit: 2 ** 31 }) }],
    ["node:module", { createRequire: () => requirePeer }],
  ]);

  for (const name of HARMLESS) modules.set(name, realRequire(name));

  function requirePeer(name: string): unknown {
    const peer = machine.peers.get(name);
    if (!peer) throw Object.assign(new Error(name), { code: "MODULE_NOT_FOUND" });
    return peer(owner);
  }

  function require(name: string): unknown {
    const known = modules.get(name);
    if (known === undefined) throw new Error(`the world has no ${name}`);
    return known;
  }

  return { time, require, modules };
}

/** The modules of Node that a process of the world gets, by their names. */
export function simulatedModules(): ReadonlyMap<string, object> {
  const world = createWorld({ seed: 1, startsAt: 0 });
  const [disk, network] = [createDisk(world), createNetwork(world)];
  const machine = { world, disk, network, peers: new Map(), beforeChange: () => undefined };
  const owner = world.createProcess("nobody's");
  const cluster = createCluster(world, owner, () => assert.fail("no workers"));
  return createModules(machine, owner, cluster).modules as Map<string, object>;
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
    warned(`crashed: ${(error as Error)?.stack ?? error}`);
    ended?.(1);
  };
  const cluster =
    options.cluster ??
    createCluster(world, owner, (workerCluster, workerName) => {
      const [output, errors] = [new PassThrough(), new PassThrough()];
      const worker = startProcess(machine, bundle, {
        name: workerName,
        argv,
        said: (text) => output.write(text),
        warned: (text) => errors.write(text),
        cluster: workerCluster,
      });
      return { owner: worker.owner, signal: worker.signal, output, errors };
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
    signal: (signal) => void signals.emit(signal, signal),
  };
}
