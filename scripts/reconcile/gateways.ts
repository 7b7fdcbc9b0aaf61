// The gateways of a phase as processes: started, killed and stopped.

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import type { Postgres } from "../../test/support/postgres.ts";
import { launch, type Program, type Running } from "../../test/support/program.ts";
import { runToEnd, tomorrow } from "../../test/support/program.ts";
import { until, within } from "../../test/support/wait.ts";
import type { Crowd } from "./client.ts";
import type { House } from "./house.ts";
import { configOf, type Phase, type PhaseEvent } from "./plan.ts";
import type { Random } from "./provider.ts";

const START_MS = 120_000;
/** A process that dies early does so within this time of its start, in milliseconds. */
const EARLY_MS = 600;

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

export type Gateways = ReturnType<typeof createGateways>;
export type Gateway = Gateways["list"][number];

export function createGateways(options: GatewaysOptions) {
  const { phase, folder, provider, house, random, postgres } = options;
  let { program } = options;
  const list = house.estates.map((_, number) => {
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
      /** `seal head`, taken after the first kill and at the end. */
      heads: [] as string[],
      async takeHead(): Promise<void> {
        this.heads.push(await this.run("seal", "head"));
      },
    };
  });

  /** Runs a command: what it prints. */
  async function run(args: readonly string[]): Promise<string> {
    const { code, stdout, stderr } = await runToEnd(program, args, 180_000);
    const complaint = `${args.join(" ")}: exit ${code}: ${stdout.slice(0, 500)} ${stderr}`;
    if (stdout === "" && code !== 0) throw new Error(complaint);
    if (code !== 0) house.complaints.push(complaint);
    return stdout;
  }

  async function start(gateway: Gateway): Promise<void> {
    gateway.running = launch(program, ["serve", ...gateway.config]);
    gateway.address = await within(gateway.running.address, "where it listens", START_MS);
  }

  /** Waits for the end of a gateway or a command. `codes`: how it may end; null: killed. */
  async function ended(running: Running, what: string, codes: readonly (number | null)[]) {
    const { code, stderr } = await within(running.ended, `the end of ${what}`, START_MS);
    house.complaints.push(...complaintsIn(stderr));
    if (!codes.includes(code)) house.complaints.push(`${what}: exit ${code}`);
  }

  function note(kind: "kill" | "kill worker", gateway: number): void {
    const now = Date.now();
    house.disturbances.push({ kind, gateway, from: now, until: now });
  }

  /** `takesHead`: before the next one starts. */
  async function kill(gateway: Gateway, crowd: Crowd, takesHead: boolean): Promise<void> {
    note("kill", gateway.number);
    gateway.running!.child.kill("SIGKILL");
    crowd.turnTo(gateway.number, undefined);
    await ended(gateway.running!, "a killed gateway", [null]);
    await killEarly(gateway);
    if (takesHead) await gateway.takeHead();
    await start(gateway);
    crowd.turnTo(gateway.number, gateway.address);
  }

  /** The next gateway, or a command, that takes over the books of a killed one is killed too. */
  async function killEarly({ config }: Gateway): Promise<void> {
    const args = random.pick([["serve"], ["usage", "sync", "--once"]]);
    const running = launch(program, [...args, ...config]);
    await Promise.race([pause(random.between(0, EARLY_MS)), running.ended]); // the moment is tried
    running.child.kill("SIGKILL");
    // The database may be down, and a command then fails.
    if (args[0] === "usage" && phase.postgres !== undefined) await running.ended;
    else await ended(running, args.join(" "), [0, null]);
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

  return {
    list,
    folder,
    async startAll(): Promise<void> {
      await Promise.all(list.map(start));
    },
    /** Something happens to one of the gateways. */
    async happen(event: PhaseEvent, crowd: Crowd): Promise<void> {
      const gateway = random.pick(list);
      if (event === "kill worker") return await killWorker(gateway);
      const database = event === "kill database" && postgres?.kill().then(postgres.start);
      const takesHead = event === "kill" && !phase.isReference && gateway.heads.length === 0;
      await Promise.all([database, kill(gateway, crowd, takesHead)]);
    },
    async stop(): Promise<void> {
      for (const { running } of list) {
        running!.child.kill("SIGTERM");
        await ended(running!, "a gateway that was told to stop", [0]);
      }
    },
    /** Copies what was settled into the usage records of each. */
    async sync(): Promise<void> {
      for (const { run } of list) await run("usage", "sync", "--once");
    },
    /** Gateways and commands that start from now on take this for the first moment of tomorrow. */
    turnToTomorrow(): void {
      program = tomorrow(program);
    },
    /** Ends what still runs, after an error. */
    end(): void {
      for (const { running } of list) running?.child.kill("SIGKILL");
    },
  };
}
