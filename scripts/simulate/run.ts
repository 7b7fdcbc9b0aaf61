// One run of the simulation: a gateway under load in a world of one seed, while processes die, the
// network and the disk fail and the operator works; then everything is judged that the clients, the
// provider and the books say of it.

import type { Asked } from "../reconcile/client.ts";
import { collectBudgets, collectStatements } from "../reconcile/collect.ts";
import { type Disturbance, emptyHouse, type House, readFiles } from "../reconcile/house.ts";
import { complaintsIn } from "../reconcile/gateways.ts";
import type { Phase } from "../reconcile/plan.ts";
import type { Call } from "../reconcile/provider.ts";
import { judge } from "./judge.ts";
import { FAULTS, LASTING, type Scene } from "./faults.ts";
import {
  addressOf,
  adminOf,
  type Bundles,
  createInstallation,
  DATA_DIR,
  type Installation,
} from "./installation.ts";
import { createRandom } from "../../test/support/random.ts";
import { createWorld, type Random, type SimProcess } from "./world.ts";

export interface RunOptions {
  readonly seed: number;
  readonly requests: number;
  readonly bundles: Bundles;
  /** Names of faults. Absent: the seed draws some. */
  readonly only?: readonly string[] | undefined;
  /** Hears each line of the trace. Absent: nobody does. */
  readonly hear?: ((line: string) => void) | undefined;
}

export interface Outcome {
  readonly seed: number;
  readonly faults: readonly string[];
  readonly requests: number;
  readonly steps: number;
  readonly fingerprint: string;
  readonly violations: readonly string[];
  /** The last events, for a run with violations. */
  readonly lastLines: readonly string[];
}

const DAY_MS = 86_400_000;
/** Midnights at the end of a month, of a year, and of a day. Half of all runs begin just before. */
const MIDNIGHTS = [Date.UTC(2026, 3, 1), Date.UTC(2027, 0, 1), Date.UTC(2026, 6, 15)];
const CLIENTS = 16;
/** The purse is that of so many requests: two or three of its dearest fit in at once. */
const PURSE_REQUESTS = 250;
/** The share of runs whose gateway is looked at long after its last request. */
const REST_SHARE = 0.15;
/** Longer than idle connections are kept, and stalled ones stand still. */
const REST_MS = 200_000;

const phaseOf = (requests: number, workers: number): Phase => ({
  name: "simulation",
  requests,
  gateways: 1,
  workers,
  events: [],
});

/** About half of all faults. */
const drawn = ({ random }: Random): readonly string[] =>
  [...FAULTS.keys(), ...LASTING].filter(() => random() < 0.5);

export async function simulate(options: RunOptions): Promise<Outcome> {
  const { seed, requests, bundles, only, hear } = options;
  const before = createRandom(seed);
  const start = before.pick(MIDNIGHTS) - before.between(0, 2_000);
  const startsAt = before.random() < 0.5 ? start : start + DAY_MS / 3;
  const world = createWorld({ seed, startsAt, hear });
  const faults = new Set(only ?? drawn(before));
  const phase = phaseOf(PURSE_REQUESTS, faults.has("workers") ? 2 : 1);
  const house = emptyHouse(phase);
  const violations: string[] = [];
  const installation = createInstallation(world, bundles, phase);
  try {
    await live(installation, house, { requests, faults });
    house.complaints.push(...installation.gateways.flatMap(({ stderr }) => complaintsIn(stderr)));
    violations.push(...judge(house));
  } catch (error) {
    violations.push((error as Error).stack ?? String(error));
  }
  const { steps, fingerprint, lastLines } = world;
  const outcome = {
    seed,
    faults: [...faults],
    requests: house.asked.length,
    steps: steps(),
    fingerprint: fingerprint(),
    violations,
    lastLines: violations.length > 0 ? lastLines() : [],
  };
  for (const process of world.processes()) world.end(process, "the run is over");
  return outcome;
}

/** The load, with everything that happens meanwhile, and what is collected after it. */
async function live(
  installation: Installation,
  house: House,
  { requests, faults }: { readonly requests: number; readonly faults: ReadonlySet<string> },
): Promise<void> {
  const { world, act, until, start, stop, run } = installation;
  const { random, between, pick } = world.random;
  const provider = await act(({ startProvider }) => startProvider(world.random));
  installation.writeConfig(provider.url, 0);
  house.changes.push({ table: 0, from: 0, until: 0 });
  breakConnections(installation, house, faults);
  const gateway = await start();
  const crowd = await act(({ createCrowds }) => createCrowds(world.random)(1, CLIENTS, requests));
  const workers = faults.has("workers") ? 2 : 1;
  const place = { installation, house, crowd, provider: provider.url, workers };
  const scene: Scene = { ...place, gateway, table: 0 };
  await act(() => crowd.turnTo(0, addressOf(gateway)));
  const possible = [...FAULTS].filter(([name]) => faults.has(name));
  while (crowd.asked.length < requests) {
    const next = Math.min(requests, crowd.asked.length + between(3, 40));
    await until(() => crowd.asked.length >= next, "requests end");
    if (possible.length === 0 || random() < 0.2) continue;
    const [name, fault] = pick(possible);
    world.note(`fault: ${name}`);
    await fault(scene);
  }
  await act(() => crowd.stop());
  house.asked.push(...crowd.asked.map((each) => leftByNetwork(each, house.disturbances)));
  for (const { serial } of house.asked) {
    const calls = provider.ledger.get(serial);
    if (calls)
      house.calls.set(
        serial,
        calls.toSorted((a, b) => departureOf(a) - departureOf(b)),
      );
  }
  if (random() < REST_SHARE) await rest(scene);
  else await stop(scene.gateway);
  await run("usage", "sync", "--once");
  await collect(installation, house);
}

/** The bytes of one call arrive within this time, unless their connection stands still. */
const LATENCY_MS = 100;

/**
 * When the gateway made a call. Over a connection that stands still it comes after later ones, which
 * the gateway makes once it has given up waiting.
 */
const departureOf = ({ at, troubles }: Call): number =>
  Math.min(at, ...troubles.filter(({ until }) => until > at - LATENCY_MS).map(({ from }) => from));

/**
 * Some time after the last request nothing is held, and nothing is open that a gateway does not
 * have that has served nobody.
 */
async function rest({ installation, gateway, workers }: Scene): Promise<void> {
  const { act, idle, start, stop, fail } = installation;
  /** What is open at all of several moments: passes over the books open and close something. */
  async function alwaysOpen({ open }: SimProcess): Promise<string> {
    const least = new Map(open);
    for (let look = 0; look < 20; look += 1) {
      await idle(57);
      for (const [kind, count] of open) least.set(kind, Math.min(count, least.get(kind) ?? 0));
    }
    return [...least]
      .map(([kind, count]) => `${count} ${kind}s`)
      .sort()
      .join(", ");
  }

  const { faults } = installation.machine.network;
  [faults.resets, faults.stalls] = [0, 0];
  await idle(REST_MS);
  const open = await alwaysOpen(gateway.process.owner);
  const { text } = await act(({ get }) => get(`${adminOf(gateway)}/status`));
  const { budgets } = JSON.parse(text);
  for (const { account, key_id, held } of budgets)
    if (held !== "0") fail(`${held} is held at rest for ${account ?? key_id}`);
  if (workers > 1) {
    await stop(gateway);
    return;
  }
  await stop(gateway);
  const fresh = await start();
  await idle(2_000);
  const usual = await alwaysOpen(fresh.process.owner);
  if (open !== usual) fail(`open at rest: ${open}; in a gateway that has just begun: ${usual}`);
  await stop(fresh);
}

/** Connections break by themselves, and it is known when. */
function breakConnections(
  { machine }: Installation,
  house: House,
  faults: ReadonlySet<string>,
): void {
  const broken = machine.network.faults;
  broken.resets = faults.has("resets") ? 0.1 : 0;
  broken.stalls = faults.has("stalls") ? 0.05 : 0;
  broken.broke = ({ name }, trouble) => {
    if (name !== "actors") house.disturbances.push({ kind: "provider", ...trouble });
  };
}

/** A gateway waits a minute for a provider that says nothing, and then answers. */
const SILENCE_MS = 61_000;

/**
 * To a gateway, a client whose connection breaks has left, and so has one that gives up because the
 * network or the gateway stood still.
 */
function leftByNetwork(asked: Asked, disturbances: readonly Disturbance[]): Asked {
  const { verdict, troubles = [], startedAt, endedAt } = asked;
  const freezes = disturbances.filter(({ kind }) => kind === "freeze");
  const still = [...troubles, ...freezes].map(({ from, until }) =>
    Math.max(0, Math.min(until, endedAt) - Math.max(from, startedAt)),
  );
  const waitedMs = still.reduce((left, ms) => left - ms, endedAt - startedAt);
  const isLeft =
    verdict === "cut" ? troubles.length > 0 : verdict === "hung" && waitedMs < SILENCE_MS;
  return isLeft ? { ...asked, verdict: "left" } : asked;
}

async function collect({ run, reader }: Installation, house: House): Promise<void> {
  house.estates[0]!.audit = JSON.parse(await run("audit", "--json"));
  await collectStatements(house, run);
  await collectBudgets(house, ["acme", "beta", "purse"], run);
  readFiles(house, 0, DATA_DIR, reader);
}
