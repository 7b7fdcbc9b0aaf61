// The installations in the world, each a machine with a gateway, its configuration and its commands,
// and what they share. The driver calls these from outside, and the world runs until they are done.

import { configOf, type Phase } from "../reconcile/plan.ts";
import { createDisk } from "./disk.ts";
import { createNetwork } from "./network.ts";
import type { Machine } from "./modules.ts";
import { createPostgres } from "./postgres.ts";
import { createRedis } from "./redis.ts";
import { type Bundle, startProcess, type StartedProcess } from "./process.ts";
import type { SimProcess, World } from "./world.ts";
import type * as Actors from "./actors.ts";

export interface Bundles {
  readonly gateway: Bundle;
  readonly actors: Bundle;
}

/** What the account "limited" may ask in a minute. */
export const LIMITED_RPM = 3;
/** A stream that waits for its first token begins with a comment after this time. */
const KEEP_ALIVE_MS = 250;
/** Each pass of the projection takes some twenty events. */
const SYNC_MS = 400;

const CONFIG_FILE = "/gateway.json";
export const DATA_DIR = "/data";

/** A gateway or a command. */
export interface Running {
  readonly process: StartedProcess;
  /** All that it has written so far. */
  stdout: string;
  stderr: string;
  /** Undefined: it runs, or was killed. */
  exitCode: number | undefined;
}

/** Where a gateway listens. Undefined: it does not yet. */
export const addressOf = ({ stdout }: Running): string | undefined =>
  /listens on (\S+)/.exec(stdout)?.[1];
export const adminOf = ({ stdout }: Running): string | undefined =>
  /admin on ([^;)\s]+)/.exec(stdout)?.[1];

/** What all installations of a world share: its network, the servers and the actors. */
export type Town = ReturnType<typeof createTown>;

export function createTown(world: World, bundles: Bundles) {
  const network = createNetwork(world);
  const servers = { redis: createRedis(world), postgres: createPostgres(world) };
  const place = { world, network, disk: createDisk(world), beforeChange: () => undefined };
  const actors = startProcess(place, bundles.actors, {
    name: "actors",
    argv: [],
    said: () => undefined,
    warned: (line) => fail(line),
  });

  function fail(message: string): never {
    throw new Error(message);
  }

  /** Runs the world until something is so. Fails if nothing happens any more, or it takes long. */
  async function until(isDone: () => boolean, what: string, ms = 600_000): Promise<void> {
    const deadline = world.time() + ms;
    const isOver = (): boolean => world.time() > deadline;
    await world.runUntil(() => isDone() || isOver());
    if (!isDone()) fail(`${what}: not after ${isOver() ? `${ms} ms` : "everything has happened"}`);
  }

  async function idle(ms: number): Promise<void> {
    const end = world.time() + ms;
    await until(() => world.time() > end, "some time to pass", 2 * ms + 1_000);
  }

  /** Calls a function of the actors as one of their events. */
  async function act<T>(call: (exports: typeof Actors) => T | Promise<T>): Promise<T> {
    let result: Promise<T> | undefined;
    world.immediate(actors.owner, "an actor is called", () => {
      const answer = Promise.resolve(call(actors.exports() as unknown as typeof Actors));
      const isThere = (): void => {
        result = answer;
      };
      answer.then(isThere, isThere);
    });
    await until(() => result !== undefined, "an actor's answer");
    return await result!;
  }

  return { world, network, ...servers, fail, until, idle, act };
}

export type Installation = ReturnType<typeof createInstallation>;

/** `number`: its place among the gateways of the phase. */
export function createInstallation(town: Town, bundles: Bundles, phase: Phase, number: number) {
  const { world, network, redis, postgres, fail, until } = town;
  const disk = createDisk(world, 1_000_000 * number + 1);
  /** The process that dies at a change of the disk, and after how many changes. */
  let dying: { readonly owner: SimProcess; readonly at: RegExp; changes: number } | undefined;
  const machine: Machine = {
    world,
    network,
    redis,
    postgres,
    disk,
    beforeChange(owner, what) {
      world.note(what);
      if (dying?.owner !== owner || !dying.at.test(what)) return;
      dying.changes -= 1;
      if (dying.changes > 0) return;
      dying = undefined;
      world.end(owner, `kill -9, at a change of the disk: ${what}`);
      throw new Error("the process was killed");
    },
  };
  /** All of its processes have names that begin so. */
  const name = `gateway ${number + 1}.`;
  const gateways: Running[] = [];
  let commands = 0;

  function writeConfig(provider: string, table: number): void {
    const config: Record<string, any> = configOf({ phase, dataDir: DATA_DIR, provider, table });
    config["server"].keep_alive_ms = KEEP_ALIVE_MS;
    config["usage"].sync_ms = SYNC_MS;
    config["accounts"].limited.rpm = LIMITED_RPM;
    writeText(CONFIG_FILE, JSON.stringify(config));
  }

  function writeText(path: string, text: string): void {
    const inode = disk.create(path, "file");
    disk.append(inode, Buffer.from(text));
    disk.sync(inode);
  }

  function launch(name: string, argv: readonly string[]): Running {
    const running: Running = {
      process: startProcess(machine, bundles.gateway, {
        name,
        argv: [...argv, "--config", CONFIG_FILE],
        said(text) {
          if (argv[0] === "serve") world.note(text.trimEnd());
          running.stdout += text;
        },
        warned(text) {
          running.stderr += text;
        },
        ended(code) {
          running.exitCode = code;
        },
      }),
      stdout: "",
      stderr: "",
      exitCode: undefined,
    };
    return running;
  }

  /** Starts a gateway. Fails if it does not listen, unless it was killed meanwhile. */
  async function start(): Promise<Running> {
    const running = launch(`${name}${gateways.length + 1}`, ["serve"]);
    gateways.push(running);
    const { owner } = running.process;
    await until(() => addressOf(running) !== undefined || !owner.alive, "a gateway listens");
    return running;
  }

  async function stop(running: Running): Promise<void> {
    running.process.signal("SIGTERM");
    await until(() => !running.process.owner.alive, "a gateway that was told to stop ends");
    if (running.exitCode !== 0) fail(`a stopped gateway ends with ${running.exitCode}`);
  }

  /** Runs a command to its end: what it printed. Fails if it ends with another code than 0. */
  async function run(...argv: readonly string[]): Promise<string> {
    commands += 1;
    const command = launch(`${name}command ${commands}`, argv);
    await until(() => command.exitCode !== undefined, argv.join(" "));
    const { exitCode, stdout, stderr } = command;
    if (exitCode !== 0) fail(`${argv.join(" ")} ended with ${exitCode}: ${stderr}${stdout}`);
    return stdout;
  }

  return {
    ...town,
    number,
    name,
    machine,
    writeConfig,
    writeText,
    start,
    stop,
    run,
    /** The process dies before one of its next changes of the disk that are described so. */
    killAtDisk(owner: SimProcess, at: RegExp, changes: number): void {
      dying = { owner, at, changes };
    },
    kill: (running: Running): void => world.end(running.process.owner, "kill -9"),
    reader: {
      namesIn: disk.namesIn,
      textOf: (path: string): string => disk.find(path)?.content.toString() ?? "",
    },
    gateways,
  };
}
