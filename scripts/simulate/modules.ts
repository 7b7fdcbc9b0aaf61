// The modules of Node that simulated processes get.

import assert from "node:assert/strict";
import crypto from "node:crypto";
import { createRequire } from "node:module";
import { arch, platform, version } from "node:process";
import { createSecureContext } from "node:tls";
import { type Cluster, createCluster } from "./cluster.ts";
import { createDisk, type Disk, systemError } from "./disk.ts";
import { createFiles } from "./files.ts";
import { createNetwork, type Network } from "./network.ts";
import type { Postgres } from "./postgres.ts";
import type { ClientOptions, Redis } from "./redis.ts";
import { createHttp } from "./server.ts";
import {
  countOpen,
  createSimulator,
  type Pending,
  type SimProcess,
  type Simulator,
} from "./simulator.ts";

/** What all processes of a simulated machine share. */
export interface Machine {
  readonly sim: Simulator;
  readonly network: Network;
  readonly disk: Disk;
  /** The servers of optional packages. Absent: the package is not installed. */
  readonly redis?: Redis;
  readonly postgres?: Postgres;
  /** Called before each change of the disk by the program. It may end the process. */
  readonly beforeChange: (owner: SimProcess, what: string) => void;
}

const realRequire = createRequire(import.meta.url);

/** Modules that have no access to time, chance or the machine: processes get the real ones. */
const REAL_MODULES = [
  ...["node:buffer", "node:events", "node:path", "node:stream", "node:stream/promises"],
  ...["node:string_decoder", "node:util", "node:zlib"],
];

/** The deterministic functions of node:crypto. Keys are random, but are kept in files. */
const PURE: readonly (keyof typeof crypto)[] = [
  ...(["createHash", "createHmac", "hash", "timingSafeEqual", "createCipheriv"] as const),
  ...(["createDecipheriv", "hkdfSync", "createPrivateKey", "createPublicKey"] as const),
  ...(["sign", "verify", "X509Certificate"] as const),
];
const PURE_CRYPTO = Object.fromEntries(PURE.map((name) => [name, crypto[name]]));

const randomBytes = ({ random }: Simulator, size: number): Buffer =>
  Buffer.from(Array.from({ length: size }, () => Math.floor(256 * random.random())));

/** The timers and clocks of one process. */
function createTime(sim: Simulator, owner: SimProcess) {
  type Listener = (...args: unknown[]) => void;

  function createTimer(ms: number, listener: Listener, args: unknown[]) {
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
      pending = sim.after(Math.max(1, ms || 0), owner, "a timer", () => {
        clear();
        listener(...args);
      });
    };
    set();
    const timer = { refresh: set, unref: () => timer, clear };
    return timer;
  }

  class SimDate extends Date {
    constructor(...values: readonly unknown[]) {
      super(...((values.length === 0 ? [sim.wallClock()] : values) as [number]));
    }
    static override now(): number {
      return sim.wallClock();
    }
  }
  const immediately = (listener: Listener, ...args: unknown[]): Pending =>
    sim.immediate(owner, "an immediate", () => listener(...args));

  const timers = {
    setTimeout: (listener: Listener, ms: number, ...args: unknown[]) =>
      createTimer(ms, listener, args),
    clearTimeout: (timer?: { clear(): void }) => timer?.clear(),
    setImmediate: immediately,
    // The program does not use these. Without these lines it could reach the real ones.
    setInterval: undefined,
    clearInterval: undefined,
    clearImmediate: undefined,
  };
  const promises = {
    setTimeout: (ms: number, value?: unknown, { signal }: { signal?: AbortSignal } = {}) =>
      new Promise((resolve, reject) => {
        const timer = createTimer(ms, () => resolve(value), []);
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
  const performance = { now: () => sim.time() };
  const signals = {
    any: AbortSignal.any.bind(AbortSignal),
    timeout(ms: number): AbortSignal {
      const controller = new AbortController();
      createTimer(ms, () => controller.abort(new DOMException("late", "TimeoutError")), []);
      return controller.signal;
    },
  };
  return { timers, promises, performance, Date: SimDate, AbortSignal: signals };
}

/** Creates the modules of one process. */
export function createModules(machine: Machine, owner: SimProcess, cluster: Cluster) {
  const { sim, disk } = machine;
  const time = createTime(sim, owner);
  const beforeChange = (what: string): void => {
    if (!owner.alive) throw systemError("EIO", what);
    machine.beforeChange(owner, what);
  };
  const { fs, promises } = createFiles({ sim, disk, owner, beforeChange });
  const { net: simNet, http: simHttp } = createHttp(machine, owner);
  const histogram = { enable() {}, disable() {}, reset() {}, percentile: () => 0, max: 0 };
  const modules = new Map<string, unknown>([
    ["node:fs", fs],
    ["node:fs/promises", promises],
    ["node:net", simNet],
    ["node:http", simHttp],
    ["node:https", {}],
    ["node:dns", {}],
    ["node:tls", { createSecureContext }],
    ["node:crypto", { ...PURE_CRYPTO, randomBytes: (size: number) => randomBytes(sim, size) }],
    ["node:timers/promises", time.promises],
    ["node:cluster", cluster],
    ["node:os", { hostname: () => "machine" }],
    ["node:perf_hooks", { monitorEventLoopDelay: () => histogram }],
    ["node:v8", { getHeapStatistics: () => ({ heap_size_limit: 2 ** 31 }) }],
    ["node:module", { createRequire: () => peer }],
    ["node:process", { arch, platform, version }],
  ]);

  for (const name of REAL_MODULES) modules.set(name, realRequire(name));

  /** An optional package. */
  function peer(name: string): unknown {
    const { redis, postgres } = machine;
    if (name === "redis" && redis)
      return { createClient: (options: ClientOptions) => redis.createClient(owner, options) };
    if (name === "pg" && postgres) return postgres.packageFor(owner);
    throw Object.assign(new Error("not installed"), { code: "MODULE_NOT_FOUND" });
  }

  function require(name: string): unknown {
    const known = modules.get(name);
    if (known === undefined) throw new Error(`the simulation has no ${name}`);
    return known;
  }

  return { time, require, modules };
}

/** The modules of a simulated process, by their names. */
export function simulatedModules(): ReadonlyMap<string, object> {
  const sim = createSimulator({ seed: 1, startsAt: 0 });
  const [disk, network] = [createDisk(sim), createNetwork(sim)];
  const machine = { sim, disk, network, beforeChange: () => undefined };
  const owner = sim.createProcess("nobody");
  const cluster = createCluster(sim, owner, () => assert.fail("no workers"));
  return createModules(machine, owner, cluster).modules as Map<string, object>;
}
