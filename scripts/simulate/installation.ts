// The installations of a simulation, each a machine with a gateway, its configuration and its
// commands, and the environment that they share. The asynchronous functions here are called from
// outside of the simulation, and run it until their work is done.

import { configOf, type Phase } from "../reconcile/plan.ts";
import type * as Actors from "./actors.ts";
import { createDisk } from "./disk.ts";
import type { Machine } from "./modules.ts";
import { createNetwork } from "./network.ts";
import { createPostgres } from "./postgres.ts";
import { type Bundles, type Running, startProcess } from "./process.ts";
import { createRedis } from "./redis.ts";
import type { SimProcess, Simulator } from "./simulator.ts";

/** The requests that the account "limited" may make in a minute. */
export const LIMITED_RPM = 3;
/** `server.keep_alive_ms`: short, so that many streams begin with a comment. */
const KEEP_ALIVE_MS = 250;
/** `usage.sync_ms`: long, because each pass takes some twenty events. */
const SYNC_MS = 400;

const CONFIG_FILE = "/gateway.json";
/** The data_dir on each machine. */
export const DATA_DIR = "/data";

/** What all installations share: the network, the servers, and the actors. */
export type Environment = ReturnType<typeof createEnvironment>;

/** Starts the servers and the actors. */
export function createEnvironment(sim: Simulator, bundles: Bundles) {
  const network = createNetwork(sim);
  const servers = { redis: createRedis(sim), postgres: createPostgres(sim) };
  const machine = { sim, network, disk: createDisk(sim), beforeChange: () => undefined };
  const actors = startProcess(machine, bundles.actors, {
    name: "actors",
    argv: [],
    onOutput: (line, from) => from === "stderr" && fail(line),
  });

  function fail(message: string): never {
    throw new Error(message);
  }

  /** Runs events until a condition holds. Fails after a long time, or without any more events. */
  async function until(isDone: () => boolean, what: string, ms = 600_000): Promise<void> {
    const deadline = sim.time() + ms;
    const isOver = (): boolean => sim.time() > deadline;
    await sim.runUntil(() => isDone() || isOver());
    if (!isDone()) fail(`${what}: not after ${isOver() ? `${ms} ms` : "everything has happened"}`);
  }

  /** Runs events for some simulated time. */
  async function idle(ms: number): Promise<void> {
    const end = sim.time() + ms;
    await until(() => sim.time() > end, "some time to pass", 2 * ms + 1_000);
  }

  /** Calls a function of the actors as one of their events. */
  async function callActors<T>(call: (exports: typeof Actors) => T | Promise<T>): Promise<T> {
    let result: Promise<T> | undefined;
    sim.immediate(actors.owner, "an actor is called", () => {
      const answer = Promise.resolve(call(actors.exports() as unknown as typeof Actors));
      const isThere = (): void => {
        result = answer;
      };
      answer.then(isThere, isThere);
    });
    await until(() => result !== undefined, "an actor's answer");
    return await result!;
  }

  return { sim, bundles, network, ...servers, fail, until, idle, callActors };
}

/** A machine with a gateway. */
export type Installation = ReturnType<typeof createInstallation>;

/** `number`: of the gateway in its phase, from 0. `provider`: the provider's address. */
export function createInstallation(
  environment: Environment,
  phase: Phase,
  number: number,
  provider: string,
) {
  const { sim, network, redis, postgres, fail, until } = environment;
  const disk = createDisk(sim, 1_000_000 * number + 1);
  /** A process that is to die at one of its next changes of the disk; `changes` are left. */
  let dying: { readonly owner: SimProcess; readonly at: RegExp; changes: number } | undefined;
  function beforeChange(owner: SimProcess, what: string): void {
    sim.note(what);
    if (dying?.owner !== owner || !dying.at.test(what)) return;
    dying.changes -= 1;
    if (dying.changes > 0) return;
    dying = undefined;
    sim.end(owner, `kill -9, at a change of the disk: ${what}`);
    throw new Error("the process was killed");
  }
  const machine: Machine = { sim, network, redis, postgres, disk, beforeChange };
  /** The prefix of the names of its processes. */
  const name = `gateway ${number + 1}.`;
  const gateways: Running[] = [];
  let commands = 0;

  /** The address of the public (0) or admin (1) listener. Undefined: it does not listen yet. */
  function address(which: 0 | 1 = 0): string | undefined {
    const pattern = [/listens on (\S+)/, /admin on ([^;)\s]+)/][which]!;
    return pattern.exec(gateway().stdout)?.[1];
  }

  /** The gateway that was started last. */
  const gateway = (): Running => gateways.at(-1)!;

  /** Writes the configuration with a price table. */
  function writeConfig(table: number): void {
    const config: Record<string, any> = configOf(phase, DATA_DIR, provider, table);
    config["server"].keep_alive_ms = KEEP_ALIVE_MS;
    config["usage"].sync_ms = SYNC_MS;
    config["accounts"].limited.rpm = LIMITED_RPM;
    writeText(JSON.stringify(config));
  }

  /** Writes any text to the configuration file. */
  function writeText(text: string): void {
    const inode = disk.create(CONFIG_FILE, "file");
    disk.append(inode, Buffer.from(text));
    disk.sync(inode);
  }

  function launch(processName: string, args: readonly string[]): Running {
    return startProcess(machine, environment.bundles.gateway, {
      name: processName,
      argv: [...args, "--config", CONFIG_FILE],
      onOutput(text, from) {
        if (args[0] === "serve" && from === "stdout") sim.note(text.trimEnd());
      },
    });
  }

  return {
    ...environment,
    number,
    name,
    workers: phase.workers,
    disk,
    gateway,
    gateways,
    address,
    writeConfig,
    writeText,
    /** Starts a gateway, and waits until it listens or was killed. */
    async start(): Promise<void> {
      gateways.push(launch(`${name}${gateways.length + 1}`, ["serve"]));
      const { owner } = gateway();
      await until(() => address() !== undefined || !owner.alive, "a gateway listens");
    },
    /** Sends SIGTERM, and waits for a clean end. */
    async stop(): Promise<void> {
      const running = gateway();
      running.signal("SIGTERM");
      await until(() => !running.owner.alive, "a gateway that was told to stop ends");
      if (running.exitCode !== 0) fail(`a stopped gateway ends with ${running.exitCode}`);
    },
    kill: (): void => sim.end(gateway().owner, "kill -9"),
    /** Runs a command, and returns what it printed. Fails if its exit code is not 0. */
    async run(...args: readonly string[]): Promise<string> {
      commands += 1;
      const command = launch(`${name}command ${commands}`, args);
      await until(() => command.exitCode !== undefined, args.join(" "));
      const { exitCode, stdout, stderr } = command;
      if (exitCode !== 0) fail(`${args.join(" ")} ended with ${exitCode}: ${stderr}${stdout}`);
      return stdout;
    },
    /** Lets a process die at the given number of its next changes whose descriptions match. */
    killAtDisk(owner: SimProcess, at: RegExp, changes: number): void {
      dying = { owner, at, changes };
    },
    /** Reads the disk for readFiles(). */
    reader: {
      namesIn: disk.namesIn,
      textOf: (path: string): string => disk.find(path)?.content.toString() ?? "",
    },
  };
}
