// Kills the real gateway at random moments under load, again and again on the same data_dir, and
// collects what scripts/reconcile judges then: what the clients and the provider saw against the
// spend log, the spend log against everything that is made of it.

import { createRandom } from "../../test/support/random.ts";
import type { Program } from "../../test/support/program.ts";
import { createCrowds } from "../reconcile/client.ts";
import { collectAtRest, collectTomorrow } from "../reconcile/collect.ts";
import { emptyEstate } from "../reconcile/estate.ts";
import { createGateways } from "../reconcile/gateways.ts";
import type { House, Line } from "../reconcile/house.ts";
import { emptyHouse } from "../reconcile/phase.ts";
import type { Phase } from "../reconcile/plan.ts";
import { type Random, startProvider } from "../reconcile/provider.ts";
import { endLane, type Lane, type Lanes, runLane } from "./lanes.ts";

export interface CrashOptions {
  readonly program: Program;
  /** An empty folder, for the data_dirs and the configurations. */
  readonly folder: string;
  readonly kills: number;
  readonly seed: number;
  /** Gateways at a time: two of them on one data_dir are each other's rescuers. */
  readonly lanes?: number;
  /** Data_dirs over which they are spread. */
  readonly dataDirs?: number;
  /** Clients of each. */
  readonly clients?: number;
  /** As Lanes.lifeRequests. */
  readonly lifeRequests?: number;
  /** Absent: the records are in files. */
  readonly postgres?: string | undefined;
  /** Absent: the files are read. */
  readonly readRows?: (() => Promise<Line[]>) | undefined;
  /** Runs beside the gateways until it is told to stop; its own kills are counted by itself. */
  readonly meanwhile?: ((stop: AbortSignal, random: Random) => Promise<void>) | undefined;
  /** Told now and then. */
  readonly progress?: (kills: number) => void;
}

/** What is left, and how often a process was killed in which way. */
export interface Crashed {
  readonly house: House;
  readonly killed: Lanes["killed"];
}

const phaseOf = ({ dataDirs = 1, postgres }: CrashOptions): Phase => ({
  name: "kills",
  gateways: dataDirs,
  workers: 1,
  // So many that no purse would be empty.
  requests: 1_000_000_000,
  kills: 0,
  workerKills: 0,
  databaseKills: 0,
  changes: 0,
  isCrash: true,
  ...(postgres !== undefined && { postgres }),
});

export async function crash(options: CrashOptions): Promise<Crashed> {
  const { program, folder, kills, seed, lanes: count = 2, meanwhile } = options;
  const random = createRandom(seed);
  const provider = await startProvider(random);
  const phase = phaseOf(options);
  const house = emptyHouse(phase);
  house.changes.push({ table: 0, from: 0, until: 0 });
  const gateways = createGateways({
    phase,
    program,
    folder,
    provider: provider.url,
    house,
    random,
  });
  gateways.writeConfigs(0);
  const crowd = createCrowds(random)(count, options.clients ?? 8);
  const lanes: Lanes = {
    program,
    random,
    provider,
    crowd,
    house,
    lifeRequests: options.lifeRequests ?? 40,
    hasRival: meanwhile !== undefined,
    killed: { asking: 0, starting: 0, syncing: 0, serving: 0, rotating: 0 },
    left: kills,
    startMs: 300,
    progress: () => options.progress?.(kills - lanes.left),
  };
  const stop = new AbortController();
  const beside = meanwhile?.(stop.signal, random);
  const all = Array.from({ length: count }, (_, number): Lane => {
    const { configFile, dataDir } = gateways.list[number % gateways.list.length]!;
    return { number, configFile, dataDir };
  });
  await Promise.all(all.map((lane) => runLane(lanes, lane)));
  stop.abort();
  await beside;
  await Promise.all(all.slice(0, gateways.list.length).map((lane) => endLane(lanes, lane)));
  await crowd.stop();
  provider.close();
  house.asked.push(...crowd.asked);
  for (const [serial, calls] of provider.ledger) house.calls.set(serial, [...calls]);
  house.estates.push(...gateways.list.map(emptyEstate));
  await collectAtRest(gateways, house, []);
  await collectTomorrow(gateways, house, folder, random);
  if (options.readRows) house.rows = await options.readRows();
  return { house, killed: lanes.killed };
}
