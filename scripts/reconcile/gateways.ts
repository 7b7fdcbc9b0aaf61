// The processes of the gateways of a phase: starts, kills and stops them, and runs their commands.

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import type { Postgres } from "../../test/support/postgres.ts";
import { launch, type Program, type Running } from "../../test/support/program.ts";
import { runToEnd, tomorrow } from "../../test/support/program.ts";
import { until, within } from "../../test/support/wait.ts";
import type { ClientLoad } from "./client.ts";
import type { Evidence } from "./evidence.ts";
import { configOf, type Phase, type PhaseEvent } from "./plan.ts";
import type { Random } from "./provider.ts";

const START_MS = 120_000;
/** The longest time from the start of a process to its early kill, in milliseconds. */
const EARLY_MS = 600;

/** What the gateways of a phase need. */
export interface GatewaysOptions {
  readonly phase: Phase;
  /** The program at first. */
  readonly program: Program;
  /** An empty folder. */
  readonly folder: string;
  /** The provider's address. */
  readonly provider: string;
  readonly evidence: Evidence;
  readonly random: Random;
  /** The server that "kill database" kills. Undefined: there is none. */
  readonly postgres: Postgres | undefined;
}

/** Lines on stderr that are no diagnostics, or that report an internal error. */
export const complaintsIn = (stderr: string): string[] =>
  stderr
    .split("\n")
    .slice(0, -1)
    .filter((line) => !/^(chat-gateway: )?\{.*"event":"(?!internal_error)\w+".*\}$/.test(line))
    .map((line) => `on stderr: ${line}`);

/** The ids of the child processes of a process. */
const childrenOf = (pid: number): number[] =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ").map(Number);

/** The gateways of a phase. */
export type Gateways = ReturnType<typeof createGateways>;
/** One of them. */
export type Gateway = Gateways["list"][number];

/** Writes the configuration of each gateway, and starts none. */
export function createGateways(options: GatewaysOptions) {
  const { phase, folder, provider, evidence, random, postgres } = options;
  let { program } = options;
  const list = evidence.gateways.map((_, number) => {
    const dataDir = join(folder, `data-${number}`);
    mkdirSync(dataDir, { recursive: true });
    const configFile = join(folder, `gateway-${number}.json`);
    writeFileSync(configFile, JSON.stringify(configOf(phase, dataDir, provider, 0)));
    const config = ["--config", configFile];
    return {
      number,
      dataDir,
      config,
      running: undefined as Running | undefined,
      address: "",
      run: (...args: string[]) => run([...args, ...config]),
      /** The output of `seal head`, after the first kill and at the end. */
      heads: [] as string[],
      async takeHead(): Promise<void> {
        this.heads.push(await this.run("seal", "head"));
      },
    };
  });

  /** Runs a command and returns its output. */
  async function run(args: readonly string[]): Promise<string> {
    const { code, stdout, stderr } = await runToEnd(program, args, 180_000);
    const complaint = `${args.join(" ")}: exit ${code}: ${stdout.slice(0, 500)} ${stderr}`;
    if (stdout === "" && code !== 0) throw new Error(complaint);
    if (code !== 0) evidence.complaints.push(complaint);
    return stdout;
  }

  async function start(gateway: Gateway): Promise<void> {
    gateway.running = launch(program, ["serve", ...gateway.config]);
    gateway.address = await within(gateway.running.address, "where it listens", START_MS);
  }

  /** Waits for the end of a process. `codes`: the accepted exit codes; null: it was killed. */
  async function ended(running: Running, what: string, codes: readonly (number | null)[]) {
    const { code, stderr } = await within(running.ended, `the end of ${what}`, START_MS);
    evidence.complaints.push(...complaintsIn(stderr));
    if (!codes.includes(code)) evidence.complaints.push(`${what}: exit ${code}`);
  }

  function noteDisturbance(kind: "kill" | "kill worker", gateway: number): void {
    const now = Date.now();
    evidence.disturbances.push({ kind, gateway, from: now, until: now });
  }

  /** Kills a gateway and starts it again. `takesHead`: takes a `seal head` before the start. */
  async function kill(gateway: Gateway, load: ClientLoad, takesHead: boolean): Promise<void> {
    noteDisturbance("kill", gateway.number);
    gateway.running!.child.kill("SIGKILL");
    load.connectTo(gateway.number, undefined);
    await ended(gateway.running!, "a killed gateway", [null]);
    await killEarly(gateway);
    if (takesHead) await gateway.takeHead();
    await start(gateway);
    load.connectTo(gateway.number, gateway.address);
  }

  /** Starts a process that takes over the books of a killed gateway, and kills it early. */
  async function killEarly({ config }: Gateway): Promise<void> {
    const args = random.pick([["serve"], ["usage", "sync", "--once"]]);
    const running = launch(program, [...args, ...config]);
    await Promise.race([pause(random.between(0, EARLY_MS)), running.ended]); // the tested moment
    running.child.kill("SIGKILL");
    // If the database is down, the command fails, and its exit code says nothing.
    if (args[0] === "usage" && phase.postgres !== undefined) await running.ended;
    else await ended(running, args.join(" "), [0, null]);
  }

  /** Kills a worker, and waits until another one has replaced it. */
  async function killWorker({ number, running }: Gateway): Promise<void> {
    const pid = running!.child.pid!;
    const before = childrenOf(pid);
    const victim = random.pick(before);
    noteDisturbance("kill worker", number);
    process.kill(victim, "SIGKILL");
    // If the next kill came earlier, no worker might be left, and the gateway would close its port.
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

  return {
    list,
    folder,
    async startAll(): Promise<void> {
      await Promise.all(list.map(start));
    },
    /** Lets an event happen to one of the gateways. */
    async trigger(event: PhaseEvent, load: ClientLoad): Promise<void> {
      const gateway = random.pick(list);
      if (event === "kill worker") return await killWorker(gateway);
      const database = event === "kill database" && postgres?.kill().then(postgres.start);
      const takesHead = event === "kill" && !phase.isReference && gateway.heads.length === 0;
      await Promise.all([database, kill(gateway, load, takesHead)]);
    },
    async stop(): Promise<void> {
      for (const { running } of list) {
        running!.child.kill("SIGTERM");
        await ended(running!, "a gateway that was told to stop", [0]);
      }
    },
    /** Copies all settled requests of each gateway into its usage records. */
    async sync(): Promise<void> {
      for (const { run } of list) await run("usage", "sync", "--once");
    },
    /** Sets the clock of all processes that start from now on to the beginning of tomorrow. */
    turnToTomorrow(): void {
      program = tomorrow(program);
    },
    /** Kills all gateways that still run, after an error. */
    end(): void {
      for (const { running } of list) running?.child.kill("SIGKILL");
    },
  };
}
