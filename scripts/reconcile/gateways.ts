// The gateways of a phase as processes: started, killed, told of other prices, and stopped.

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import {
  launch,
  type Program,
  type Running,
  runToEnd,
  tomorrow,
} from "../../test/support/program.ts";
import type { Postgres } from "../../test/support/postgres.ts";
import { until, waitFor, within } from "../../test/support/wait.ts";
import type { Crowd } from "./client.ts";
import type { House } from "./house.ts";
import { configOf, type Phase, type PhaseEvent } from "./plan.ts";
import type { Random } from "./provider.ts";

/** After this a change of prices has reached every worker, in milliseconds. */
const RELOAD_MS = 3_000;
const START_MS = 120_000;
/** A process that dies early does so within this time of its start, in milliseconds. */
const EARLY_MS = 600;

/** Runs a command: what it prints. */
export type Run = (...args: readonly string[]) => Promise<string>;

export interface Gateway {
  readonly number: number;
  readonly dataDir: string;
  readonly configFile: string;
  running: Running | undefined;
  address: string;
  /** `seal head`, taken in the middle and at the end. */
  readonly heads: string[];
  /** Runs a command with its configuration: what it prints. */
  readonly run: Run;
}

export interface GatewaysOptions {
  readonly phase: Phase;
  readonly program: Program;
  /** An empty folder. */
  readonly folder: string;
  readonly provider: string;
  readonly house: House;
  readonly random: Random;
  /** Absent: there is none that could be killed. */
  readonly postgres: Postgres | undefined;
}

/** Lines on stderr that no operator expects: anything but diagnostics, and bugs. */
export const complaintsIn = (stderr: string): string[] =>
  stderr
    .split("\n")
    .slice(0, -1)
    .filter((line) => !/^(chat-gateway: )?\{.*"event":"(?!internal_error)\w+".*\}$/.test(line))
    .map((line) => `on stderr: ${line}`);

/** The processes that a process has started. */
const childrenOf = (pid: number): number[] =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ").map(Number);

export function createGateways(options: GatewaysOptions) {
  const { phase, folder, provider, house, random, postgres } = options;
  let { program } = options;
  const gateways = Array.from({ length: phase.gateways }, (_, number): Gateway => {
    const dataDir = join(folder, `data-${number}`);
    mkdirSync(dataDir, { recursive: true });
    const configFile = join(folder, `gateway-${number}.json`);
    const run: Run = (...args) => runCommand([...args, "--config", configFile]);
    return { number, dataDir, configFile, running: undefined, address: "", heads: [], run };
  });

  async function runCommand(args: readonly string[]): Promise<string> {
    const { code, stdout, stderr } = await runToEnd(program, args, 180_000);
    const complaint = `${args.join(" ")}: exit ${code}: ${stdout.slice(0, 500)} ${stderr}`;
    if (stdout === "" && code !== 0) throw new Error(complaint);
    if (code !== 0) house.complaints.push(complaint);
    return stdout;
  }

  function writeConfigs(table: number): void {
    for (const { dataDir, configFile } of gateways) {
      const text = JSON.stringify(configOf({ phase, dataDir, provider, table }));
      writeFileSync(configFile, text);
    }
  }

  async function start(gateway: Gateway): Promise<void> {
    const running = launch(program, ["serve", "--config", gateway.configFile]);
    gateway.running = running;
    gateway.address = await within(running.address, "the line where it listens", START_MS);
  }

  function note(kind: "kill" | "kill worker", gateway: number): void {
    const now = Date.now();
    house.disturbances.push({ kind, gateway, from: now, until: now });
  }

  async function kill(gateway: Gateway, crowd: Crowd): Promise<void> {
    const running = gateway.running!;
    note("kill", gateway.number);
    running.child.kill("SIGKILL");
    crowd.turnTo(gateway.number, undefined);
    const { stderr } = await within(running.ended, "the end of a killed gateway", START_MS);
    house.complaints.push(...complaintsIn(stderr));
    await killEarly(gateway);
    await start(gateway);
    crowd.turnTo(gateway.number, gateway.address);
  }

  /** What first looks after the books of a killed gateway dies too: the next one, or a command. */
  async function killEarly({ configFile }: Gateway): Promise<void> {
    const args = random.pick([["serve"], ["usage", "sync", "--once"]]);
    const { child, ended } = launch(program, [...args, "--config", configFile]);
    await Promise.race([pause(random.between(0, EARLY_MS)), ended]); // the moment is what is tried
    child.kill("SIGKILL");
    const { code, stderr } = await ended;
    // The database may be dead, of which a command complains.
    if (args[0] === "usage" && phase.postgres !== undefined) return;
    house.complaints.push(...complaintsIn(stderr));
    if (code !== null && code !== 0) house.complaints.push(`${args.join(" ")}: exit ${code}`);
  }

  async function killWorker({ number, running }: Gateway): Promise<void> {
    const pid = running!.child.pid!;
    const before = childrenOf(pid);
    const victim = random.pick(before);
    note("kill worker", number);
    process.kill(victim, "SIGKILL");
    // Before the next one is killed: without any worker the port is given up.
    await until(
      async () => {
        const response = await fetch(`${running!.admin()}/status`);
        const { workers } = (await response.json()) as { workers: number };
        return workers === before.length && !childrenOf(pid).includes(victim);
      },
      "another worker to serve in the place of the killed one",
      START_MS,
    );
  }

  /** The other table of prices for all gateways, while they serve. */
  async function change(): Promise<void> {
    const from = Date.now();
    const table = 1 - house.changes.at(-1)!.table;
    const reloadsOf = ({ running }: Gateway) =>
      running!.stderr().split('"event":"reloaded"').length;
    const before = gateways.map(reloadsOf);
    writeConfigs(table);
    // The first reload may be one that had begun before, and has read the other table.
    for (const round of [1, 2]) {
      for (const { running } of gateways) running!.child.kill("SIGHUP");
      await waitFor(
        () =>
          gateways.every(
            (gateway, at) => reloadsOf(gateway) >= before[at]! + round * phase.workers,
          ),
        "the new prices in force",
        START_MS,
      );
    }
    const until = Date.now() + (phase.workers > 1 ? RELOAD_MS : 0);
    house.changes.push({ table, from, until });
  }

  async function stop(): Promise<void> {
    for (const { running } of gateways) {
      running!.child.kill("SIGTERM");
      const { code, stderr } = await within(running!.ended, "the end after SIGTERM", START_MS);
      house.complaints.push(...complaintsIn(stderr));
      if (code !== 0) house.complaints.push(`SIGTERM: exit ${code}`);
    }
  }

  /** Something happens to one of the gateways, or to all of them. */
  async function happen(event: PhaseEvent, crowd: Crowd): Promise<void> {
    const gateway = random.pick(gateways);
    if (event === "change") return await change();
    if (event === "kill worker") return await killWorker(gateway);
    const database = event === "kill database" && postgres?.kill().then(postgres.start);
    await Promise.all([database, kill(gateway, crowd)]);
  }

  writeConfigs(0);
  house.changes.push({ table: 0, from: 0, until: 0 });
  return {
    list: gateways,
    async startAll(): Promise<void> {
      await Promise.all(gateways.map(start));
    },
    happen,
    stop,
    /** Copies what was settled into the usage records of each. */
    async sync(): Promise<void> {
      for (const { run } of gateways) await run("usage", "sync", "--once");
    },
    /** Gateways and commands that start from now on take this for the first moment of tomorrow. */
    turnToTomorrow(): void {
      program = tomorrow(program);
    },
    /** Ends what still runs, after an error. */
    end(): void {
      for (const { running } of gateways) running?.child.kill("SIGKILL");
    },
  };
}
export type Gateways = ReturnType<typeof createGateways>;
