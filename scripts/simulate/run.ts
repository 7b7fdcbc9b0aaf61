// One run of the simulation: a gateway under load in a world of one seed, while processes die, the
// network and the disk fail and the operator works; then everything is judged that the clients, the
// provider and the books say of it.

import { createRandom } from "../../test/support/random.ts";
import type { Asked } from "../reconcile/client.ts";
import { collectAudits, collectBudgets, collectStatements } from "../reconcile/collect.ts";
import { complaintsIn } from "../reconcile/gateways.ts";
import { type Disturbance, emptyHouse, type House, readFiles } from "../reconcile/house.ts";
import type { Phase } from "../reconcile/plan.ts";
import type { Call } from "../reconcile/provider.ts";
import { FAULTS, LASTING } from "./faults.ts";
import { createInstallation, createTown, DATA_DIR } from "./installation.ts";
import type { Installation, Town } from "./installation.ts";
import { judge } from "./judge.ts";
import type { Bundles } from "./process.ts";
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

const DAY_MS = 86_400_000;
/** Midnights at the end of a month, of a year, and of a day. Half of all runs begin just before. */
const MIDNIGHTS = [Date.UTC(2026, 3, 1), Date.UTC(2027, 0, 1), Date.UTC(2026, 6, 15)];
const CLIENTS = 16;
/** The budget of the purse is for so many requests: two or three of the dearest fit at once. */
const PURSE_REQUESTS = 250;
/** The share of runs whose gateway is looked at long after its last request. */
const REST_SHARE = 0.15;
/** Longer than idle connections are kept, and than connections stall. */
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

export type Outcome = Awaited<ReturnType<typeof simulate>>;

/** `lastLines`: the last events, for a run with violations. */
export async function simulate({ seed, requests, bundles, only, hear }: RunOptions) {
  const before = createRandom(seed);
  const start = before.pick(MIDNIGHTS) - before.between(0, 2_000);
  const startsAt = before.random() < 0.5 ? start : start + DAY_MS / 3;
  const world = createWorld({ seed, startsAt, hear });
  const faults = new Set(only ?? drawn(before));
  const phase = phaseOf(faults);
  const house = emptyHouse(phase, new Map());
  const violations: string[] = [];
  try {
    const town = createTown(world, bundles);
    const all = await live(town, house, { phase, requests, faults });
    await collect(all, house);
    const gateways = all.flatMap((each) => each.gateways);
    house.complaints.push(...gateways.flatMap(({ stderr }) => complaintsIn(stderr)));
    violations.push(...judge(house));
  } catch (error) {
    violations.push((error as Error).stack ?? String(error));
  }
  const outcome = {
    faults: [...faults],
    requests: house.asked.length,
    steps: world.steps(),
    fingerprint: world.fingerprint(),
    violations,
    lastLines: violations.length > 0 ? world.lastLines() : [],
  };
  for (const process of world.processes()) world.end(process, "the run is over");
  return outcome;
}

interface Load {
  readonly phase: Phase;
  readonly requests: number;
  readonly faults: ReadonlySet<string>;
}

/** The load, with everything that happens meanwhile. Returns the installations, without gateways. */
async function live(town: Town, house: House, { phase, requests, faults }: Load) {
  const { world, act, until } = town;
  const { random, between, pick } = world.random;
  const provider = await act(({ startProvider }) => startProvider(world.random));
  breakConnections(town, house, faults);
  const clients = CLIENTS / phase.gateways;
  const crowd = await act((actors) => actors.createCrowd(world.random, phase, clients, requests));
  const all = house.estates.map((_, number) =>
    createInstallation(town, phase, number, provider.url),
  );
  for (const { number, writeConfig, start, address } of all) {
    writeConfig(0);
    await start();
    await act(() => crowd.turnTo(number, address()));
  }
  const possible = [...FAULTS].filter(([name]) => faults.has(name));
  while (crowd.asked.length < requests) {
    const next = Math.min(requests, crowd.asked.length + between(3, 40));
    await until(() => crowd.asked.length >= next, "requests end");
    if (possible.length === 0 || random() < 0.2) continue;
    const [name, fault] = pick(possible);
    world.note(`fault: ${name}`);
    await fault(pick(all), { house, crowd, all });
  }
  await act(() => crowd.stop());
  house.asked.push(...crowd.asked.map((each) => leftByNetwork(each, house.disturbances)));
  for (const [serial, calls] of provider.ledger)
    house.calls.set(
      serial,
      calls.toSorted((a, b) => departureOf(a) - departureOf(b)),
    );
  if (random() < REST_SHARE) await rest(town, all, house);
  else for (const { stop } of all) await stop();
  return all;
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
async function rest(town: Town, all: readonly Installation[], house: House): Promise<void> {
  const { world, network, until, idle, act, fail } = town;
  const listed = ({ open }: SimProcess): string =>
    [...open]
      .map(([kind, count]) => `${count} ${kind}s`)
      .sort()
      .join(", ");
  /** What is open most of the time: passes over the books open and close something. */
  async function usuallyOpen(owner: SimProcess): Promise<string> {
    const times = new Map<string, number>();
    let [since, before] = [world.time(), listed(owner)];
    const end = since + 3_000;
    function look(): boolean {
      times.set(before, (times.get(before) ?? 0) + world.time() - since);
      [since, before] = [world.time(), listed(owner)];
      return since > end;
    }
    await until(look, "some time to pass");
    const [[state] = [""]] = [...times].sort(([, one], [, other]) => other - one);
    return state;
  }

  Object.assign(network.faults, { resets: 0, stalls: 0 });
  await idle(REST_MS);
  const open: string[] = [];
  for (const { number, gateway, address } of all) {
    open.push(await usuallyOpen(gateway().owner));
    const { text } = await act(({ get }) => get(`${address(1)}/status`));
    house.estates[number]!.live = JSON.parse(text).budgets;
  }
  for (const { stop } of all) await stop();
  for (const { number, workers, gateway, start, stop } of all) {
    if (workers > 1) continue;
    await start();
    await idle(2_000);
    const usual = await usuallyOpen(gateway().owner);
    if (open[number] !== usual)
      fail(`open at rest: ${open[number]}; in a gateway that has just begun: ${usual}`);
    await stop();
  }
}

/** Connections break by themselves, and it is known when. */
function breakConnections({ network }: Town, house: House, faults: ReadonlySet<string>): void {
  Object.assign(network.faults, {
    resets: faults.has("resets") ? 0.1 : 0,
    stalls: faults.has("stalls") ? 0.05 : 0,
    broke({ name }: SimProcess, trouble: Omit<Disturbance, "kind">) {
      const [, number] = /^gateway (\d+)\./.exec(name) ?? [];
      if (number === undefined) return;
      house.disturbances.push({ kind: "provider", gateway: Number(number) - 1, ...trouble });
    },
  });
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

async function collect(all: readonly Installation[], house: House): Promise<void> {
  for (const { run } of all) await run("usage", "sync", "--once");
  await collectAudits(house, all);
  for (const { number, reader } of all) readFiles(house, number, DATA_DIR, reader);
  // Those of any gateway will do.
  const [{ world, postgres }] = all as [Installation];
  const { pick } = world.random;
  await collectStatements(house, pick(all), world.wallClock());
  await collectBudgets(house, ["acme", "beta", "purse"], pick(all));
  if (house.isShared) house.rows = postgres.records();
}
