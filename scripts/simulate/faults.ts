// What happens to an installation while its clients ask: each fault leaves a gateway that serves.
// A seed draws which of them may happen in its run, so that some runs are quiet and some are wild.

import type { ClientLoad } from "../reconcile/client.ts";
import type { Disturbance, Evidence } from "../reconcile/evidence.ts";
import type { Installation } from "./installation.ts";
import type { SimProcess } from "./simulator.ts";

/** What all gateways of a run have in common. More than one share Redis. */
export interface Run {
  readonly evidence: Evidence;
  readonly load: ClientLoad;
  readonly all: readonly Installation[];
}

/** A fault of one installation. */
type Fault = (at: Installation, run: Run) => Promise<void>;

/** After the end of a gateway: another one, and the clients turn to it. */
async function restart({ number, act, start, address }: Installation, { load }: Run) {
  await act(() => load.connectTo(number, undefined));
  await start();
  await act(() => load.connectTo(number, address()));
}

function note(at: Installation, { evidence }: Run, kind: Disturbance["kind"], ms = 0): void {
  const from = at.sim.wallClock();
  evidence.disturbances.push({ kind, gateway: at.number, from, until: from + ms });
}

async function kill(at: Installation, run: Run): Promise<void> {
  at.kill();
  note(at, run, "kill");
  await restart(at, run);
}

/** The process of the gateway, and its workers that have not ended. */
function processesOf({ sim, gateway }: Installation): readonly SimProcess[] {
  const { owner } = gateway();
  return [owner, ...sim.processes().filter(({ name }) => name.startsWith(`${owner.name}, `))];
}

/** After the end of a worker: until another one serves in its place. */
async function replaced(at: Installation, run: Run): Promise<void> {
  note(at, run, "kill worker");
  // Without any worker the port is given up, so the next one does not die before.
  const place = new URL(at.address()!).host;
  const { owner } = at.gateway();
  const isServed = () => at.network.listeners(place) === at.workers || !owner.alive;
  await at.until(isServed, "another worker");
}

/** One of several workers dies, and is replaced. With one process: nothing. */
async function killWorker(at: Installation, run: Run): Promise<void> {
  const { sim, workers } = at;
  if (workers === 1) return;
  sim.end(sim.random.pick(processesOf(at).slice(1)), "kill -9");
  await replaced(at, run);
}

/** The files of days and the cursor. Segments of the log have a number behind the day. */
const RECORD_FILES = /cursor\.json|-\d\d\.jsonl$|cuts a file/;

/** The process that writes dies between two changes of the disk, or in the middle of one. */
async function killAtDisk(at: Installation, run: Run): Promise<void> {
  const { sim } = at;
  const { pick, between, random } = sim.random;
  const { owner } = at.gateway();
  const victim = pick(processesOf(at).slice(-2));
  if (at.workers > 1 && victim === owner) return; // it writes nothing
  // Half of them where records are copied, which is a small part of what is written.
  const isCopying = random() < 0.5;
  if (isCopying) at.killAtDisk(victim, RECORD_FILES, between(1, 12));
  else at.killAtDisk(victim, /./, between(1, 40));
  const patience = sim.time() + 3_000;
  await at.until(() => !victim.alive || sim.time() > patience, "it dies at the disk");
  // It may be another worker that copies.
  sim.end(victim, "kill -9");
  if (victim !== owner) return await replaced(at, run);
  note(at, run, "kill");
  await restart(at, run);
}

/** The machine loses its power: what was not synced is lost, and everything starts again. */
async function losePower(at: Installation, run: Run): Promise<void> {
  // Long enough that most of the log should be on the disk.
  await at.idle(at.sim.random.between(0, 4_000));
  at.kill();
  note(at, run, "kill");
  at.disk.loseUnsynced();
  note(at, run, "power");
  await restart(at, run);
}

/** SIGTERM: requests in flight run on, and the next gateway takes over. */
async function stop(at: Installation, run: Run): Promise<void> {
  note(at, run, "stop");
  await at.act(() => run.load.connectTo(at.number, undefined));
  await at.stop();
  await restart(at, run);
}

/** SIGSTOP and SIGCONT, of one process or of all that serve. */
async function freeze(at: Installation, run: Run): Promise<void> {
  const { sim } = at;
  const { random, between, pick } = sim.random;
  const all = processesOf(at);
  const ms = between(10, 20_000);
  const until = sim.time() + ms;
  note(at, run, "freeze", ms);
  for (const process of random() < 0.5 ? all : [pick(all)]) {
    sim.note(`${process.name} is stopped until ${until.toFixed(3)}`);
    process.stoppedUntil = until;
  }
  await at.idle(ms);
}

/** The other table of prices, by a reload of each gateway, with or without SIGHUP. */
async function changePrices({ sim }: Installation, { evidence, all }: Run): Promise<void> {
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

/** A configuration that cannot be read: the one before stays in force. */
async function breakConfig(at: Installation, { evidence }: Run): Promise<void> {
  const refusals = (): number => at.gateway().stderr.split('"event":"reload_failed"').length;
  const before = refusals();
  at.writeText(`{ "at": ${at.sim.time()}, `);
  await at.until(() => refusals() > before, "the reload to be refused", 60_000);
  at.writeConfig(evidence.changes.at(-1)!.table);
}

/** Nothing can be written for a while. */
async function fillDisk({ sim, disk: { faults }, idle }: Installation): Promise<void> {
  faults.isFull = true;
  await idle(sim.random.between(20, 900));
  faults.isFull = false;
}

/** fsync() fails now and then for a while. */
async function failSyncs({ sim, disk: { faults }, idle }: Installation): Promise<void> {
  faults.failingSyncs = 0.5;
  await idle(sim.random.between(500, 4_000));
  faults.failingSyncs = 0;
}

/** The operator makes a key and revokes it, and every process learns of both. */
async function changeKeys(at: Installation): Promise<void> {
  const { workers, address, idle, act, run } = at;
  async function answers(key: string, status: number): Promise<void> {
    // Processes take turns, so all of them have answered.
    for (let [right, looks] = [0, 0]; right < 2 * workers; looks += 1) {
      if (looks === 200) at.fail(`a key is still not answered with ${status}`);
      await idle(100);
      const answer = await act(({ get }) => get(`${address()}/v1/models`, key));
      right = answer.status === status ? right + 1 : 0;
    }
  }
  const { key, key_id } = JSON.parse(await run("keys", "create", "--account", "acme", "--json"));
  await answers(key, 200);
  await run("keys", "revoke", key_id);
  await answers(key, 401);
}

/** The operator looks at the books while the gateway writes them. */
async function look({ sim, run }: Installation): Promise<void> {
  const commands = [
    "usage sync --once",
    "seal head",
    "budget show acme",
    "billing statement --account beta --month 2026-07",
  ];
  await run(...sim.random.pick(commands).split(" "));
}

/** With a freeze before it and after it still less than the 15 seconds after which holds expire. */
const OUTAGE_MS = 6_000;

/**
 * Redis fails the gateways that share it: it is not there for a while, for one of them or for all;
 * its answers come too late; or it starts again without what it kept, or with an older state of it.
 */
async function failStore(at: Installation, { evidence, all }: Run): Promise<void> {
  if (all.length === 1) return;
  const { sim, redis, idle, name } = at;
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

/** PostgreSQL is not there for a while, or its answers come late, and connections break. */
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
    look,
    store: failStore,
    database: failDatabase,
  }),
);

/** Faults that last through a whole run. */
export const LASTING = ["resets", "stalls", "workers", "redis", "postgres"] as const;
