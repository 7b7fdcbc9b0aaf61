// Kills the real gateway at random moments under load, again and again on the same data_dir, and
// then goes through the books line by line: what the clients and the provider saw against the spend
// log, the spend log against the usage records, each sum against one of its own. Nothing of src is
// used, neither its readers nor its arithmetic: only what an operator sees, which is the command
// line, HTTP, and the files under data_dir (or the table).

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Line } from "../../../scripts/reconcile/house.ts";
import { type Program, runToEnd } from "../program.ts";
import { createRandom } from "../random.ts";
import {
  type Books,
  checkAudit,
  checkDays,
  checkRecords,
  checkStatements,
  readSpend,
} from "./books.ts";
import type { Told } from "./clients.ts";
import { endLane, type Lanes, type Place, runLane } from "./lanes.ts";
import { startCrashProvider } from "./provider.ts";
import { crashConfig, type Random } from "./setup.ts";
import { checkEntries, checkWitnesses } from "./witnesses.ts";

export interface CrashOptions {
  readonly program: Program;
  /** An empty folder, for the data_dirs and the configurations. */
  readonly folder: string;
  readonly kills: number;
  readonly seed: number;
  /** Gateways at a time: two of them on one data_dir are each other's rescuers. */
  readonly gateways?: number;
  /** Data_dirs over which they are spread. */
  readonly dataDirs?: number;
  /** Clients of each. */
  readonly clients?: number;
  /** After how many requests of their clients most of them die, at the most. */
  readonly lifeRequests?: number;
  /** Absent: the file store. */
  readonly store?: string;
  /** The lines of days are signed, and `seal verify` is asked. */
  readonly seals?: boolean;
  /** Absent: the files are read. */
  readonly readUsage?: () => Promise<Line[]>;
  /** Runs beside the gateways until it is told to stop; its own kills are counted by itself. */
  readonly meanwhile?: (stop: AbortSignal, random: Random) => Promise<void>;
  /** Told now and then. */
  readonly progress?: (kills: number) => void;
}

export interface CrashFigures {
  readonly figures: Readonly<Record<string, number>>;
  readonly violations: readonly string[];
}

/**
 * Kills until there were `kills`, then ends one gateway of each data_dir in good order, and goes
 * through the books.
 */
export async function crash(options: CrashOptions): Promise<CrashFigures> {
  const { program, folder, kills, seed, gateways = 2, dataDirs = 1, store, meanwhile } = options;
  const random = createRandom(seed);
  const provider = await startCrashProvider(random);
  const places = Array.from({ length: dataDirs }, (_, index): Place => {
    const dataDir = join(folder, `data-${index}`);
    mkdirSync(dataDir);
    const config = join(folder, `gateway-${index}.json`);
    const settings = { dataDir, provider: provider.url, store, seals: options.seals ?? false };
    writeFileSync(config, JSON.stringify(crashConfig(settings)));
    return { config, dataDir };
  });
  const lanes: Lanes = {
    program,
    random,
    provider,
    clients: options.clients ?? 8,
    lifeRequests: options.lifeRequests ?? 40,
    hasRival: meanwhile !== undefined,
    violations: [],
    killed: { asking: 0, starting: 0, syncing: 0, serving: 0, rotating: 0 },
    left: kills,
    startMs: 300,
    progress: () => options.progress?.(kills - lanes.left),
  };
  const stop = new AbortController();
  const beside = meanwhile?.(stop.signal, random);
  const placeOf = (lane: number): Place => places[lane % places.length]!;
  const crowds = await Promise.all(
    Array.from({ length: gateways }, (_, lane) => runLane(lanes, placeOf(lane))),
  );
  stop.abort();
  await beside;
  await Promise.all(places.map((place, lane) => endLane(lanes, place, crowds[lane]!)));
  await Promise.all(crowds.map((crowd) => crowd.stop()));
  provider.close();
  const told = crowds.flatMap((crowd) => crowd.told);
  const books = await judgeBooks(options, { lanes, places, told });
  return { figures: figuresOf(lanes, books, told), violations: lanes.violations };
}

/** Adds what is wrong with the books to the violations. */
async function judgeBooks(
  { seals = false, readUsage }: CrashOptions,
  {
    lanes: { program, violations, killed, provider },
    places,
    told,
  }: {
    readonly lanes: Lanes;
    readonly places: readonly Place[];
    readonly told: readonly Told[];
  },
): Promise<Books> {
  const [configs, dataDirs] = [
    places.map(({ config }) => config),
    places.map(({ dataDir }) => dataDir),
  ];
  for (const config of configs) {
    const sync = ["usage", "sync", "--once", "--config", config];
    const { code, stderr } = await runToEnd(program, sync);
    if (code !== 0) violations.push(`usage sync --once: exit ${code}: ${stderr}`);
  }
  const books = readSpend(dataDirs);
  const records = await readUsage?.();
  violations.push(
    ...books.violations,
    ...checkEntries(books),
    ...checkWitnesses(books, told, provider.seen),
    ...checkRecords(books, records),
  );
  const audits = places.map(({ config, dataDir }) => checkAudit(program, config, dataDir));
  violations.push(
    ...(await Promise.all([...audits, checkStatements(program, configs[0]!, books)])).flat(),
    ...(await checkDays({ program, configs, dataDirs, seals, records })),
  );
  const interrupted = withStatus(books, "interrupted");
  if (interrupted < killed.asking)
    violations.push(
      `lost: ${killed.asking} requests were caught at the provider, ${interrupted} are interrupted`,
    );
  return books;
}

const withStatus = ({ entries }: Books, status: string): number =>
  entries.filter(({ settle }) => settle["status"] === status).length;

function figuresOf(
  { killed, violations }: Lanes,
  books: Books,
  told: readonly Told[],
): CrashFigures["figures"] {
  const verdicts = (verdict: string) => told.filter((each) => each.verdict === verdict).length;
  const such = (words: RegExp) => violations.filter((violation) => words.test(violation)).length;
  const statuses = ["completed", "failed", "cancelled", "interrupted"];
  return {
    kills: Object.values(killed).reduce((sum, each) => sum + each),
    ...Object.fromEntries(
      Object.entries(killed).map(([kind, times]) => [`killed while ${kind}`, times]),
    ),
    requests: told.length,
    "received whole": verdicts("whole"),
    "told an error": verdicts("error"),
    "cut or left": verdicts("cut"),
    segments: books.segments,
    settled: books.entries.length,
    ...Object.fromEntries(statuses.map((status) => [status, withStatus(books, status)])),
    lost: such(/lost|never settled|no usage record/),
    doubled: such(/doubled|twice/),
    violations: violations.length,
  };
}
