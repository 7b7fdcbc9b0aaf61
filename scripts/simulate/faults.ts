// The faults of the simulation. Each of them ends with a gateway that serves. The seed draws which
// faults may happen in a run, so that runs differ in how much fails.

import type { ClientLoad } from "../reconcile/client.ts";
import type { Disturbance, Evidence } from "../reconcile/evidence.ts";
import type { Installation } from "./installation.ts";
import type { SimProcess } from "./simulator.ts";

/** What a fault may use besides the installation that it hits. */
export interface RunContext {
  readonly evidence: Evidence;
  readonly load: ClientLoad;
  /** All installations. If there are several, they share Redis. */
  readonly all: readonly Installation[];
}

/** Lets a fault happen to an installation. */
type Fault = (target: Installation, run: RunContext) => Promise<void>;

/** Starts another gateway after the end of one, and connects the clients to it. */
async function restart({ number, callActors, start, address }: Installation, { load }: RunContext) {
  await callActors(() => load.connectTo(number, undefined));
  await start();
  await callActors(() => load.connectTo(number, address()));
}

function note(target: Installation, { evidence }: RunContext, kind: Disturbance["kind"], ms = 0) {
  const from = target.sim.wallClock();
  evidence.disturbances.push({ kind, gateway: target.number, from, until: from + ms });
}

async function kill(target: Installation, run: RunContext): Promise<void> {
  target.kill();
  note(target, run, "kill");
  await restart(target, run);
}

/** The process of the gateway, and its live workers. */
function processesOf({ sim, gateway }: Installation): readonly SimProcess[] {
  const { owner } = gateway();
  return [owner, ...sim.processes().filter(({ name }) => name.startsWith(`${owner.name}, `))];
}

/** Waits until another worker has replaced one that ended. */
async function awaitReplacement(target: Installation, run: RunContext): Promise<void> {
  note(target, run, "kill worker");
  // If another fault came earlier, no worker might be left, and the gateway would close its port.
  const place = new URL(target.address()!).host;
  const { owner } = target.gateway();
  const isServed = () => target.network.listeners(place) === target.workers || !owner.alive;
  await target.until(isServed, "another worker");
}

/** Kills one of several workers. Does nothing if the gateway has a single process. */
async function killWorker(target: Installation, run: RunContext): Promise<void> {
  const { sim, workers } = target;
  if (workers === 1) return;
  sim.end(sim.random.pick(processesOf(target).slice(1)), "kill -9");
  await awaitReplacement(target, run);
}

/** Changes of the usage records of a day, or of their cursor. Segments have other names. */
const RECORD_FILES = /cursor\.json|-\d\d\.jsonl$|cuts a file/;

/** Kills a process between two changes of its disk, or in the middle of one. */
async function killAtDisk(target: Installation, run: RunContext): Promise<void> {
  const { sim } = target;
  const { pick, between, random } = sim.random;
  const { owner } = target.gateway();
  const victim = pick(processesOf(target).slice(-2));
  if (target.workers > 1 && victim === owner) return; // the primary writes nothing
  // Half of these kills hit the copying of records, which is a small part of all writes.
  const isCopying = random() < 0.5;
  if (isCopying) target.killAtDisk(victim, RECORD_FILES, between(1, 12));
  else target.killAtDisk(victim, /./, between(1, 40));
  const patience = sim.time() + 3_000;
  await target.until(() => !victim.alive || sim.time() > patience, "it dies at the disk");
  // If another worker copies the records, this one has not been killed yet.
  sim.end(victim, "kill -9");
  if (victim !== owner) return await awaitReplacement(target, run);
  note(target, run, "kill");
  await restart(target, run);
}

/** Kills the gateway and loses what was not synced, as when the machine loses power. */
async function losePower(target: Installation, run: RunContext): Promise<void> {
  // The gateway syncs once a second, so this decides how much of the log is lost.
  await target.idle(target.sim.random.between(0, 4_000));
  target.kill();
  note(target, run, "kill");
  target.disk.loseUnsynced();
  note(target, run, "power");
  await restart(target, run);
}

/** Sends SIGTERM, and starts another gateway when the first one has ended. */
async function stop(target: Installation, run: RunContext): Promise<void> {
  note(target, run, "stop");
  await target.callActors(() => run.load.connectTo(target.number, undefined));
  await target.stop();
  await restart(target, run);
}

/** Suspends one process of the gateway or all of them, as SIGSTOP and SIGCONT do. */
async function freeze(target: Installation, run: RunContext): Promise<void> {
  const { sim } = target;
  const { random, between, pick } = sim.random;
  const all = processesOf(target);
  const ms = between(10, 20_000);
  const until = sim.time() + ms;
  note(target, run, "freeze", ms);
  for (const process of random() < 0.5 ? all : [pick(all)]) {
    sim.note(`${process.name} is stopped until ${until.toFixed(3)}`);
    process.stoppedUntil = until;
  }
  await target.idle(ms);
}

/** Switches to the other price table by a reload of each gateway, with or without SIGHUP. */
async function changePrices({ sim }: Installation, { evidence, all }: RunContext): Promise<void> {
  const table = 1 - evidence.changes.at(-1)!.table;
  const from = sim.wallClock();
  for (const { gateway, writeConfig, until } of all) {
    const { signal, stderr } = gateway();
    const reloads = (text: string): number => text.split('"event":"reloaded"').length;
    writeConfig(table);
    if (sim.random.random() < 0.5) signal("SIGHUP");
    const isInForce = () => reloads(gateway().stderr) > reloads(stderr);
    await until(isInForce, "the prices to be in force", 60_000);
  }
  evidence.changes.push({ table, from, until: sim.wallClock() });
}

/** Writes a configuration that cannot be read, and waits until the gateway has refused it. */
async function breakConfig(target: Installation, { evidence }: RunContext): Promise<void> {
  const refusals = (): number => target.gateway().stderr.split('"event":"reload_failed"').length;
  const before = refusals();
  target.writeText(`{ "at": ${target.sim.time()}, `);
  await target.until(() => refusals() > before, "the reload to be refused", 60_000);
  target.writeConfig(evidence.changes.at(-1)!.table);
}

/** Lets all writes fail for a while. */
async function fillDisk({ sim, disk: { faults }, idle }: Installation): Promise<void> {
  faults.isFull = true;
  await idle(sim.random.between(20, 900));
  faults.isFull = false;
}

/** Lets half of all syncs fail for a while. */
async function failSyncs({ sim, disk: { faults }, idle }: Installation): Promise<void> {
  faults.failingSyncs = 0.5;
  await idle(sim.random.between(500, 4_000));
  faults.failingSyncs = 0;
}

/** Creates a key and revokes it, and waits until every process has noticed both. */
async function changeKeys(target: Installation): Promise<void> {
  const { workers, address, idle, callActors, run } = target;
  async function answers(key: string, status: number): Promise<void> {
    // Processes take turns in accepting connections, so each of them has answered after this.
    for (let [right, looks] = [0, 0]; right < 2 * workers; looks += 1) {
      if (looks === 200) target.fail(`a key is still not answered with ${status}`);
      await idle(100);
      const answer = await callActors(({ get }) => get(`${address()}/v1/models`, key));
      right = answer.status === status ? right + 1 : 0;
    }
  }
  const { key, key_id } = JSON.parse(await run("keys", "create", "--account", "acme", "--json"));
  await answers(key, 200);
  await run("keys", "revoke", key_id);
  await answers(key, 401);
}

/** Runs a command on the books while the gateway writes them. */
async function runCommand({ sim, run }: Installation): Promise<void> {
  const commands = [
    "usage sync --once",
    "seal head",
    "budget show acme",
    "billing statement --account beta --month 2026-07",
  ];
  await run(...sim.random.pick(commands).split(" "));
}

/** Together with a freeze before it and one after it, this is less than the 15 s of a hold. */
const OUTAGE_MS = 6_000;

/**
 * Lets Redis fail for the gateways that share it: it is down or out of reach of one gateway for a
 * while, slow, empty after a restart, or restored from an older state.
 */
async function failStore(target: Installation, { evidence, all }: RunContext): Promise<void> {
  if (all.length === 1) return;
  const { sim, redis, idle, name } = target;
  const { pick, between, random } = sim.random;
  const { faults } = redis;
  const kind = pick(["is down", "cuts a gateway off", "is slow", "forgets", "is restored"]);
  const older = redis.copy();
  if (kind === "is restored") await idle(between(0, 4_000));
  sim.note(`redis ${kind}`);
  if (kind === "is slow") faults.slowMs = between(10, 200);
  else if (kind === "cuts a gateway off") faults.cutOff = name;
  else faults.isDown = true;
  redis.cut();
  const from = sim.wallClock();
  await idle(random() < 0.5 ? between(20, 300) : between(300, OUTAGE_MS));
  if (kind === "forgets") redis.restart();
  if (kind === "is restored") redis.restart(older);
  Object.assign(faults, { isDown: false, cutOff: undefined, slowMs: 0 });
  const isLoss = kind === "forgets" || kind === "is restored";
  if (isLoss) evidence.disturbances.push({ kind: "store lost", from, until: sim.wallClock() });
}

/** Lets PostgreSQL be down or slow for a while, and breaks its connections. */
async function failDatabase({ sim, postgres, idle }: Installation): Promise<void> {
  const { between, random } = sim.random;
  const { faults } = postgres;
  faults.slowMs = random() < 0.5 ? between(10, 3_000) : 0;
  await idle(between(0, 1_000));
  faults.connections += 1;
  faults.isDown = random() < 0.5;
  await idle(random() < 0.5 ? between(1, 300) : between(300, OUTAGE_MS));
  Object.assign(faults, { isDown: false, slowMs: 0 });
}

/** All faults by their names, for --only. */
export const FAULTS = new Map<string, Fault>(
  Object.entries({
    kill,
    "kill-worker": killWorker,
    "kill-at-disk": killAtDisk,
    power: losePower,
    stop,
    freeze,
    prices: changePrices,
    "bad-config": breakConfig,
    "full-disk": fillDisk,
    "failing-syncs": failSyncs,
    keys: changeKeys,
    look: runCommand,
    store: failStore,
    database: failDatabase,
  }),
);

/** The names of faults that last for the whole run. */
export const LASTING = ["resets", "stalls", "workers", "redis", "postgres"] as const;
