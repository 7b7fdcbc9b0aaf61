// One run of the simulation: gateways under load, while processes die, the network and the disk
// fail, and the operator works. In the end the run judges what the clients, the provider and the
// books say.

import { createRandom } from "../../test/support/random.ts";
import type { ClientRequest } from "../reconcile/client.ts";
import { collectAudits, collectBudgets, collectStatements } from "../reconcile/collect.ts";
import { createEvidence, readFiles } from "../reconcile/evidence.ts";
import type { Disturbance, Evidence, Period } from "../reconcile/evidence.ts";
import { complaintsIn } from "../reconcile/gateways.ts";
import { CAPPED, type Phase } from "../reconcile/plan.ts";
import type { Call } from "../reconcile/provider.ts";
import { FAULTS, LASTING } from "./faults.ts";
import { createEnvironment, createInstallation, DATA_DIR } from "./installation.ts";
import type { Environment, Installation } from "./installation.ts";
import { judge } from "./judge.ts";
import type { Bundles } from "./process.ts";
import { createSimulator, type Random, type SimProcess } from "./simulator.ts";

/** What a run does. */
export interface RunOptions {
  readonly seed: number;
  /** The number of requests after which the run ends. */
  readonly requests: number;
  readonly bundles: Bundles;
  /** The names of the faults that may happen. Absent: the seed draws some. */
  readonly only?: readonly string[] | undefined;
  /** Called with each line of the trace. Absent: the trace is not printed. */
  readonly trace?: ((line: string) => void) | undefined;
}

const DAY_MS = 86_400_000;
/** The ends of a month, of a year, and of a day. Half of all runs start just before one. */
const MIDNIGHTS = [Date.UTC(2026, 3, 1), Date.UTC(2027, 0, 1), Date.UTC(2026, 6, 15)];
const CLIENTS = 16;
/** Sets the budget of the account CAPPED: two or three of the dearest requests fit at once. */
const BUDGETED_REQUESTS = 250;
/** The share of runs that look at the gateways long after the last request. */
const REST_SHARE = 0.15;
/** Longer than idle connections are kept, and longer than connections stall. */
const REST_MS = 200_000;

/** With the fault "redis" two gateways share a Redis. */
const phaseOf = (faults: ReadonlySet<string>): Phase => ({
  name: "simulation",
  requests: BUDGETED_REQUESTS,
  gateways: faults.has("redis") ? 2 : 1,
  workers: faults.has("workers") ? 2 : 1,
  events: [],
  ...(faults.has("redis") && { redis: "redis://redis:6379" }),
  ...(faults.has("postgres") && { postgres: "postgres://postgres/usage" }),
});

/** About half of all faults. */
const drawFaults = ({ random }: Random): readonly string[] =>
  [...FAULTS.keys(), ...LASTING].filter(() => random() < 0.5);

/** The result of a run. `lastLines`: the end of the trace, if there are violations. */
export type Outcome = Awaited<ReturnType<typeof simulate>>;

/** Runs a seed. Never rejects: an error in the run is a violation. */
export async function simulate({ seed, requests, bundles, only, trace }: RunOptions) {
  const random = createRandom(seed);
  const start = random.pick(MIDNIGHTS) - random.between(0, 2_000);
  const startsAt = random.random() < 0.5 ? start : start + DAY_MS / 3;
  const sim = createSimulator({ seed, startsAt, trace });
  const faults = new Set(only ?? drawFaults(random));
  const phase = phaseOf(faults);
  const evidence = createEvidence(phase, new Map());
  const violations: string[] = [];
  try {
    const environment = createEnvironment(sim, bundles);
    const installations = await runLoad({ environment, evidence, phase, requests, faults });
    await collect(installations, evidence);
    const gateways = installations.flatMap((each) => each.gateways);
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

interface LoadOptions {
  readonly environment: Environment;
  readonly evidence: Evidence;
  readonly phase: Phase;
  readonly requests: number;
  readonly faults: ReadonlySet<string>;
}

/** Runs the load while faults happen. Returns the installations, with their gateways stopped. */
async function runLoad({ environment, evidence, phase, requests, faults }: LoadOptions) {
  const { sim, callActors, until } = environment;
  const { random, between, pick } = sim.random;
  const provider = await callActors(({ startProvider }) => startProvider(sim.random));
  breakConnections(environment, evidence, faults);
  const clients = CLIENTS / phase.gateways;
  const load = await callActors(({ createClientLoad }) =>
    createClientLoad(sim.random, phase, clients, requests),
  );
  const all = evidence.gateways.map((_, number) =>
    createInstallation(environment, phase, number, provider.url),
  );
  for (const { number, writeConfig, start, address } of all) {
    writeConfig(0);
    await start();
    await callActors(() => load.connectTo(number, address()));
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
  await callActors(() => load.stop());
  const { disturbances } = evidence;
  evidence.requests.push(...load.requests.map((each) => withLeaving(each, disturbances)));
  for (const [serial, calls] of provider.ledger)
    evidence.calls.set(
      serial,
      calls.toSorted((a, b) => departureOf(a) - departureOf(b)),
    );
  if (random() < REST_SHARE) await checkAtRest(environment, all, evidence);
  else for (const { stop } of all) await stop();
  return all;
}

/** The bytes of a call arrive within this time, unless their connection stalls. */
const LATENCY_MS = 100;

/**
 * When the gateway made a call. A call over a stalled connection arrives after later calls, which
 * the gateway makes when it has given up waiting.
 */
function departureOf({ at, interruptions }: Call): number {
  const open = interruptions.filter(({ until }) => until > at - LATENCY_MS);
  return Math.min(at, ...open.map(({ from }) => from));
}

/** The open timers, sockets and files of a process, as text. */
const listed = ({ open }: SimProcess): string =>
  [...open]
    .map(([kind, count]) => `${count} ${kind}s`)
    .sort()
    .join(", ");

/**
 * Checks that long after the last request a gateway of one process has nothing open that a fresh
 * gateway has not, and collects its budgets. Stops the gateways.
 */
async function checkAtRest(
  { sim, network, until, idle, callActors, fail }: Environment,
  all: readonly Installation[],
  evidence: Evidence,
): Promise<void> {
  /** What is open most of the time, because passes over the books open and close something. */
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
    const { text } = await callActors(({ get }) => get(`${address(1)}/status`));
    evidence.gateways[number]!.live = JSON.parse(text).budgets;
  }
  for (const { stop } of all) await stop();
  for (const { number, workers, gateway, start, stop } of all) {
    if (workers > 1) continue;
    await start();
    await idle(2_000);
    const usual = await usuallyOpen(gateway().owner);
    if (open[number] !== usual) fail(`open at rest: ${open[number]}; in a fresh gateway: ${usual}`);
    await stop();
  }
}

/** Lets connections be reset and stall, and records when. */
function breakConnections(
  { network }: Environment,
  { disturbances }: Evidence,
  faults: ReadonlySet<string>,
): void {
  Object.assign(network.faults, {
    resets: faults.has("resets") ? 0.1 : 0,
    stalls: faults.has("stalls") ? 0.05 : 0,
    onInterruption({ name }: SimProcess, period: Period) {
      const [, number] = /^gateway (\d+)\./.exec(name) ?? [];
      if (number === undefined) return;
      disturbances.push({ kind: "provider", gateway: Number(number) - 1, ...period });
    },
  });
}

/** A gateway waits up to a minute for a silent provider, and then answers. */
const SILENCE_MS = 61_000;

/**
 * To a gateway, a client has left if its connection breaks, or if it gives up while the network or
 * the gateway stands still. Returns the request with that outcome, if it has it.
 */
function withLeaving(request: ClientRequest, disturbances: readonly Disturbance[]): ClientRequest {
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
  const hasLeft =
    outcome === "cut" ? interruptions.length > 0 : outcome === "hung" && waitedMs < SILENCE_MS;
  return hasLeft ? { ...request, outcome: "left" } : request;
}

/** Collects the evidence that commands and files give after the end of the gateways. */
async function collect(all: readonly Installation[], evidence: Evidence): Promise<void> {
  for (const { run } of all) await run("usage", "sync", "--once");
  await collectAudits(evidence, all);
  for (const { number, reader } of all) readFiles(evidence, number, DATA_DIR, reader);
  // If gateways share their records, any of them states the bills of all.
  const [{ sim, postgres }] = all as [Installation];
  const { pick } = sim.random;
  await collectStatements(evidence, pick(all), sim.wallClock());
  await collectBudgets(evidence, ["acme", "beta", CAPPED], pick(all));
  if (evidence.isShared) evidence.rows = postgres.records();
}
