// One run of the simulation: a gateway under load in a world of one seed, while processes die, the
// network and the disk fail and the operator works; then everything is judged that the clients, the
// provider and the books say of it.

import { createRandom } from "../../test/support/random.ts";
import type { ClientRequest } from "../reconcile/client.ts";
import { collectAudits, collectBudgets, collectStatements } from "../reconcile/collect.ts";
import { complaintsIn } from "../reconcile/gateways.ts";
import {
  type Disturbance,
  createEvidence,
  type Evidence,
  readFiles,
} from "../reconcile/evidence.ts";
import type { Phase } from "../reconcile/plan.ts";
import type { Call } from "../reconcile/provider.ts";
import { FAULTS, LASTING } from "./faults.ts";
import { createInstallation, createEnvironment, DATA_DIR } from "./installation.ts";
import type { Installation, Environment } from "./installation.ts";
import { judge } from "./judge.ts";
import type { Bundles } from "./process.ts";
import { createSimulator, type Random, type SimProcess } from "./simulator.ts";

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
  const sim = createSimulator({ seed, startsAt, hear });
  const faults = new Set(only ?? drawn(before));
  const phase = phaseOf(faults);
  const evidence = createEvidence(phase, new Map());
  const violations: string[] = [];
  try {
    const environment = createEnvironment(sim, bundles);
    const all = await live(environment, evidence, { phase, requests, faults });
    await collect(all, evidence);
    const gateways = all.flatMap((each) => each.gateways);
    evidence.complaints.push(...gateways.flatMap(({ stderr }) => complaintsIn(stderr)));
    violations.push(...judge(evidence));
  } catch (error) {
    violations.push((error as Error).stack ?? String(error));
  }
  const outcome = {
    faults: [...faults],
    requests: evidence.requests.length,
    steps: sim.steps(),
    fingerprint: sim.fingerprint(),
    violations,
    lastLines: violations.length > 0 ? sim.lastLines() : [],
  };
  for (const process of sim.processes()) sim.end(process, "the run is over");
  return outcome;
}

interface Load {
  readonly phase: Phase;
  readonly requests: number;
  readonly faults: ReadonlySet<string>;
}

/** The load, with everything that happens meanwhile. Returns the installations, without gateways. */
async function live(
  environment: Environment,
  evidence: Evidence,
  { phase, requests, faults }: Load,
) {
  const { sim, act, until } = environment;
  const { random, between, pick } = sim.random;
  const provider = await act(({ startProvider }) => startProvider(sim.random));
  breakConnections(environment, evidence, faults);
  const clients = CLIENTS / phase.gateways;
  const load = await act((actors) => actors.createClientLoad(sim.random, phase, clients, requests));
  const all = evidence.gateways.map((_, number) =>
    createInstallation(environment, phase, number, provider.url),
  );
  for (const { number, writeConfig, start, address } of all) {
    writeConfig(0);
    await start();
    await act(() => load.connectTo(number, address()));
  }
  const possible = [...FAULTS].filter(([name]) => faults.has(name));
  while (load.requests.length < requests) {
    const next = Math.min(requests, load.requests.length + between(3, 40));
    await until(() => load.requests.length >= next, "requests end");
    if (possible.length === 0 || random() < 0.2) continue;
    const [name, fault] = pick(possible);
    sim.note(`fault: ${name}`);
    await fault(pick(all), { evidence, load, all });
  }
  await act(() => load.stop());
  evidence.requests.push(
    ...load.requests.map((each) => leftByNetwork(each, evidence.disturbances)),
  );
  for (const [serial, calls] of provider.ledger)
    evidence.calls.set(
      serial,
      calls.toSorted((a, b) => departureOf(a) - departureOf(b)),
    );
  if (random() < REST_SHARE) await rest(environment, all, evidence);
  else for (const { stop } of all) await stop();
  return all;
}

/** The bytes of one call arrive within this time, unless their connection stands still. */
const LATENCY_MS = 100;

/**
 * When the gateway made a call. Over a connection that stands still it comes after later ones, which
 * the gateway makes once it has given up waiting.
 */
const departureOf = ({ at, interruptions }: Call): number =>
  Math.min(
    at,
    ...interruptions.filter(({ until }) => until > at - LATENCY_MS).map(({ from }) => from),
  );

/**
 * Some time after the last request nothing is held, each gateway knows what was spent, and nothing
 * is open that a gateway does not have that has served nobody.
 */
async function rest(
  environment: Environment,
  all: readonly Installation[],
  evidence: Evidence,
): Promise<void> {
  const { sim, network, until, idle, act, fail } = environment;
  const listed = ({ open }: SimProcess): string =>
    [...open]
      .map(([kind, count]) => `${count} ${kind}s`)
      .sort()
      .join(", ");
  /** What is open most of the time: passes over the books open and close something. */
  async function usuallyOpen(owner: SimProcess): Promise<string> {
    const times = new Map<string, number>();
    let [since, before] = [sim.time(), listed(owner)];
    const end = since + 3_000;
    function look(): boolean {
      times.set(before, (times.get(before) ?? 0) + sim.time() - since);
      [since, before] = [sim.time(), listed(owner)];
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
    evidence.gateways[number]!.live = JSON.parse(text).budgets;
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
function breakConnections(
  { network }: Environment,
  evidence: Evidence,
  faults: ReadonlySet<string>,
): void {
  Object.assign(network.faults, {
    resets: faults.has("resets") ? 0.1 : 0,
    stalls: faults.has("stalls") ? 0.05 : 0,
    broke({ name }: SimProcess, trouble: Omit<Disturbance, "kind">) {
      const [, number] = /^gateway (\d+)\./.exec(name) ?? [];
      if (number === undefined) return;
      evidence.disturbances.push({ kind: "provider", gateway: Number(number) - 1, ...trouble });
    },
  });
}

/** A gateway waits a minute for a provider that says nothing, and then answers. */
const SILENCE_MS = 61_000;

/**
 * To a gateway, a client whose connection breaks has left, and so has one that gives up because the
 * network or the gateway stood still.
 */
function leftByNetwork(
  request: ClientRequest,
  disturbances: readonly Disturbance[],
): ClientRequest {
  const { outcome, interruptions = [], startedAt, endedAt } = request;
  const freezes = disturbances.filter(
    ({ kind, gateway }) => kind === "freeze" && gateway === request.gateway,
  );
  let [waitedMs, at] = [0, startedAt];
  for (const { from, until } of [...interruptions, ...freezes].sort((a, b) => a.from - b.from)) {
    waitedMs += Math.max(0, Math.min(from, endedAt) - at);
    at = Math.max(at, until);
  }
  waitedMs += Math.max(0, endedAt - at);
  const isLeft =
    outcome === "cut" ? interruptions.length > 0 : outcome === "hung" && waitedMs < SILENCE_MS;
  return isLeft ? { ...request, outcome: "left" } : request;
}

async function collect(all: readonly Installation[], evidence: Evidence): Promise<void> {
  for (const { run } of all) await run("usage", "sync", "--once");
  await collectAudits(evidence, all);
  for (const { number, reader } of all) readFiles(evidence, number, DATA_DIR, reader);
  // Those of any gateway will do.
  const [{ sim, postgres }] = all as [Installation];
  const { pick } = sim.random;
  await collectStatements(evidence, pick(all), sim.wallClock());
  await collectBudgets(evidence, ["acme", "beta", "purse"], pick(all));
  if (evidence.isShared) evidence.rows = postgres.records();
}
