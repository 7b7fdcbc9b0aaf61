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
  createTown,
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

/** With the fault "redis" two gateways share it. */
const phaseOf = (faults: ReadonlySet<string>): Phase => ({
  name: "simulation",
  requests: PURSE_REQUESTS,
  gateways: faults.has("redis") ? 2 : 1,
  workers: faults.has("workers") ? 2 : 1,
  events: [],
  ...(faults.has("redis") && { redis: "redis://redis:6379" }),
  ...(faults.has("postgres") && { postgres: "postgres://postgres/usage" }),
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
  const phase = phaseOf(faults);
  const house = emptyHouse(phase);
  const violations: string[] = [];
  const town = createTown(world, bundles);
  const installations = house.estates.map((_, number) =>
    createInstallation(town, bundles, phase, number),
  );
  try {
    await live(installations, house, { requests, faults });
    const gateways = installations.flatMap((each) => each.gateways);
    house.complaints.push(...gateways.flatMap(({ stderr }) => complaintsIn(stderr)));
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
  installations: readonly Installation[],
  house: House,
  { requests, faults }: { readonly requests: number; readonly faults: ReadonlySet<string> },
): Promise<void> {
  const town = installations[0]!;
  const { world, act, until } = town;
  const { random, between, pick } = world.random;
  const provider = await act(({ startProvider }) => startProvider(world.random));
  house.changes.push({ table: 0, from: 0, until: 0 });
  breakConnections(town, house, faults);
  const [gateways, clients] = [installations.length, CLIENTS / installations.length];
  const crowd = await act(({ createCrowds }) =>
    createCrowds(world.random)(gateways, clients, requests),
  );
  const all: Scene[] = [];
  const workers = faults.has("workers") ? 2 : 1;
  const common = { house, crowd, provider: provider.url, workers, prices: { table: 0 }, all };
  for (const installation of installations) {
    installation.writeConfig(provider.url, 0);
    const gateway = await installation.start();
    all.push({ ...common, installation, gateway });
    await act(() => crowd.turnTo(installation.number, addressOf(gateway)));
  }
  const possible = [...FAULTS].filter(([name]) => faults.has(name));
  while (crowd.asked.length < requests) {
    const next = Math.min(requests, crowd.asked.length + between(3, 40));
    await until(() => crowd.asked.length >= next, "requests end");
    if (possible.length === 0 || random() < 0.2) continue;
    const [name, fault] = pick(possible);
    world.note(`fault: ${name}`);
    await fault(pick(all));
  }
  await act(() => crowd.stop());
  house.asked.push(...crowd.asked.map((each) => leftByNetwork(each, house.disturbances)));
  for (const { serial } of house.asked) {
    const calls = provider.ledger.get(serial) ?? [];
    const inOrder = calls.toSorted((a, b) => departureOf(a) - departureOf(b));
    if (inOrder.length > 0) house.calls.set(serial, inOrder);
  }
  if (random() < REST_SHARE) await rest(all);
  else for (const { installation, gateway } of all) await installation.stop(gateway);
  await collect(installations, house);
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
 * Some time after the last request nothing is held, each gateway knows what was spent, and nothing
 * is open that a gateway does not have that has served nobody.
 */
async function rest(all: readonly Scene[]): Promise<void> {
  const { world, network, until, idle, act, fail } = all[0]!.installation;
  const listed = (open: ReadonlyMap<string, number>): string =>
    [...open]
      .map(([kind, count]) => `${count} ${kind}s`)
      .sort()
      .join(", ");
  /** What is open most of the time: passes over the books open and close something. */
  async function usuallyOpen({ open }: SimProcess): Promise<string> {
    const times = new Map<string, number>();
    let [since, before] = [world.time(), listed(open)];
    const end = since + 3_000;
    function look(): boolean {
      times.set(before, (times.get(before) ?? 0) + world.time() - since);
      [since, before] = [world.time(), listed(open)];
      return since > end;
    }
    await until(look, "some time to pass");
    const [[state] = [""]] = [...times].sort(([, one], [, other]) => other - one);
    return state;
  }

  const { faults } = network;
  [faults.resets, faults.stalls] = [0, 0];
  await idle(REST_MS);
  const open: string[] = [];
  for (const { installation, gateway, house } of all) {
    open.push(await usuallyOpen(gateway.process.owner));
    const { text } = await act(({ get }) => get(`${adminOf(gateway)}/status`));
    house.estates[installation.number]!.live = JSON.parse(text).budgets;
  }
  for (const { installation, gateway } of all) await installation.stop(gateway);
  for (const [index, { installation, workers }] of all.entries()) {
    if (workers > 1) continue;
    const fresh = await installation.start();
    await idle(2_000);
    const usual = await usuallyOpen(fresh.process.owner);
    if (open[index] !== usual)
      fail(`open at rest: ${open[index]}; in a gateway that has just begun: ${usual}`);
    await installation.stop(fresh);
  }
}

/** Connections break by themselves, and it is known when. */
function breakConnections(
  { network }: Installation,
  house: House,
  faults: ReadonlySet<string>,
): void {
  const broken = network.faults;
  broken.resets = faults.has("resets") ? 0.1 : 0;
  broken.stalls = faults.has("stalls") ? 0.05 : 0;
  broken.broke = ({ name }, trouble) => {
    const [, number] = /^gateway (\d+)\./.exec(name) ?? [];
    if (number === undefined) return;
    house.disturbances.push({ kind: "provider", gateway: Number(number) - 1, ...trouble });
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
  const freezes = disturbances.filter(
    ({ kind, gateway }) => kind === "freeze" && gateway === asked.gateway,
  );
  let [waitedMs, at] = [0, startedAt];
  for (const { from, until } of [...troubles, ...freezes].sort((a, b) => a.from - b.from)) {
    waitedMs += Math.max(0, Math.min(from, endedAt) - at);
    at = Math.max(at, until);
  }
  waitedMs += Math.max(0, endedAt - at);
  const isLeft =
    verdict === "cut" ? troubles.length > 0 : verdict === "hung" && waitedMs < SILENCE_MS;
  return isLeft ? { ...asked, verdict: "left" } : asked;
}

async function collect(installations: readonly Installation[], house: House): Promise<void> {
  for (const { run } of installations) await run("usage", "sync", "--once");
  for (const { number, run, reader } of installations) {
    house.estates[number]!.audit = JSON.parse(await run("audit", "--json"));
    readFiles(house, number, DATA_DIR, reader);
  }
  // One gateway's tell as much as another's.
  const { random, wallClock } = installations[0]!.world;
  const { pick } = random;
  await collectStatements(house, pick(installations), wallClock());
  await collectBudgets(house, ["acme", "beta", "purse"], pick(installations));
  if (house.isShared) house.rows = installations[0]!.postgres.records();
}
