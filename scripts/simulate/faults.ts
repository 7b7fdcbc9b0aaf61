// What happens to an installation while its clients ask: each fault leaves a gateway that serves.
// A seed draws which of them may happen in its run, so that some runs are quiet and some are wild.

import type { Crowd } from "../reconcile/client.ts";
import type { Disturbance, House } from "../reconcile/house.ts";
import { addressOf, type Installation, type Running } from "./installation.ts";
import type { SimProcess } from "./world.ts";

/** One gateway of a run. */
export interface Scene {
  readonly installation: Installation;
  readonly house: House;
  readonly crowd: Crowd;
  readonly provider: string;
  readonly workers: number;
  gateway: Running;
  /** Which table of prices is in force, for all gateways. */
  readonly prices: { table: number };
  /** All gateways of the run. More than one share Redis. */
  readonly all: readonly Scene[];
}

type Fault = (scene: Scene) => Promise<void>;

/** After the end of a gateway: another one, and the clients turn to it. */
async function restart(scene: Scene): Promise<void> {
  const { installation, crowd } = scene;
  const { number, act } = installation;
  await act(() => crowd.turnTo(number, undefined));
  scene.gateway = await installation.start();
  await act(() => crowd.turnTo(number, addressOf(scene.gateway)));
}

function note({ installation, house }: Scene, kind: Disturbance["kind"], ms = 0): void {
  const from = installation.world.wallClock();
  house.disturbances.push({ kind, gateway: installation.number, from, until: from + ms });
}

async function kill(scene: Scene): Promise<void> {
  scene.installation.kill(scene.gateway);
  note(scene, "kill");
  await restart(scene);
}

/** The workers of the gateway that have not ended. */
const workersOf = ({ installation: { world }, gateway }: Scene): readonly SimProcess[] =>
  world.processes().filter(({ name }) => name.startsWith(`${gateway.process.owner.name}, `));

/** After the end of a worker: until another one serves in its place. */
async function replaced(scene: Scene): Promise<void> {
  const { installation, workers, gateway } = scene;
  note(scene, "kill worker");
  // Without any worker the port is given up, so the next one does not die before.
  const place = new URL(addressOf(gateway)!).host;
  const { listeners } = installation.machine.network;
  const isServed = () => listeners(place) === workers || !gateway.process.owner.alive;
  await installation.until(isServed, "another worker");
}

/** One of several workers dies, and is replaced. With one process: nothing. */
async function killWorker(scene: Scene): Promise<void> {
  const { installation, workers } = scene;
  if (workers === 1) return;
  installation.world.end(installation.world.random.pick(workersOf(scene)), "kill -9");
  await replaced(scene);
}

/** The files of days and the cursor. Segments of the log have a number behind the day. */
const PROJECTION = /cursor\.json|-\d\d\.jsonl$|cuts a file/;

/** The process that writes dies between two changes of the disk, or in the middle of one. */
async function killAtDisk(scene: Scene): Promise<void> {
  const { installation, gateway } = scene;
  const { pick, between } = installation.world.random;
  const victim = pick([gateway.process.owner, ...workersOf(scene)].slice(-2));
  if (scene.workers > 1 && victim === gateway.process.owner) return; // it writes nothing
  // Half of them where records are projected, which is a small part of what is written.
  const isProjection = installation.world.random.random() < 0.5;
  if (isProjection) installation.killAtDisk(victim, PROJECTION, between(1, 12));
  else installation.killAtDisk(victim, /./, between(1, 40));
  const patience = installation.world.time() + 3_000;
  await installation.until(
    () => !victim.alive || installation.world.time() > patience,
    "it dies at the disk",
  );
  // It may be another worker that projects.
  installation.world.end(victim, "kill -9");
  if (victim !== gateway.process.owner) return await replaced(scene);
  note(scene, "kill");
  await restart(scene);
}

/** The machine loses its power: what was not synced is lost, and everything starts again. */
async function losePower(scene: Scene): Promise<void> {
  const { installation } = scene;
  const { world, machine } = installation;
  // Long enough that most of the log should be on the disk.
  await installation.idle(world.random.between(0, 4_000));
  installation.kill(scene.gateway);
  note(scene, "kill");
  machine.disk.loseUnsynced();
  note(scene, "power");
  await restart(scene);
}

/** SIGTERM: requests in flight run on, and the next gateway takes over. */
async function stop(scene: Scene): Promise<void> {
  const { installation, crowd } = scene;
  note(scene, "stop");
  await installation.act(() => crowd.turnTo(installation.number, undefined));
  await installation.stop(scene.gateway);
  await restart(scene);
}

/** SIGSTOP and SIGCONT, of one process or of all that serve. */
async function freeze(scene: Scene): Promise<void> {
  const { installation, gateway } = scene;
  const { world } = installation;
  const all = [gateway.process.owner, ...workersOf(scene)];
  const ms = world.random.between(10, 20_000);
  const until = world.time() + ms;
  note(scene, "freeze", ms);
  const stopped = world.random.random() < 0.5 ? all : [world.random.pick(all)];
  for (const process of stopped) {
    world.note(`${process.name} is stopped until ${until.toFixed(3)}`);
    process.stoppedUntil = until;
  }
  await installation.idle(ms);
}

/** The other table of prices, by a reload of each gateway. */
async function changePrices({ installation, house, prices, all }: Scene): Promise<void> {
  const { world } = installation;
  prices.table = 1 - prices.table;
  const from = world.wallClock();
  for (const scene of all) await reloadPrices(scene);
  house.changes.push({ table: prices.table, from, until: world.wallClock() });
}

/** Puts the table of prices in force in one gateway. */
async function reloadPrices({ installation, gateway, provider, prices }: Scene): Promise<void> {
  const { world } = installation;
  const reloads = (): number => gateway.stderr.split('"event":"reloaded"').length;
  const before = reloads();
  installation.writeConfig(provider, prices.table);
  if (world.random.random() < 0.5) gateway.process.signal("SIGHUP");
  await installation.until(() => reloads() > before, "the prices to be in force", 60_000);
}

/** A configuration that cannot be read: the one before stays in force. */
async function breakConfig({ installation, gateway, provider, prices }: Scene): Promise<void> {
  const refusals = (): number => gateway.stderr.split('"event":"reload_failed"').length;
  const before = refusals();
  installation.writeText("/gateway.json", `{ "at": ${installation.world.time()}, `);
  await installation.until(() => refusals() > before, "the reload to be refused", 60_000);
  installation.writeConfig(provider, prices.table);
}

/** Nothing can be written for a while. */
async function fillDisk({ installation }: Scene): Promise<void> {
  const { world, machine } = installation;
  machine.disk.faults.isFull = true;
  await installation.idle(world.random.between(20, 900));
  machine.disk.faults.isFull = false;
}

/** fsync() fails now and then for a while. */
async function failSyncs({ installation }: Scene): Promise<void> {
  const { world, machine } = installation;
  machine.disk.faults.failingSyncs = 0.5;
  await installation.idle(world.random.between(500, 4_000));
  machine.disk.faults.failingSyncs = 0;
}

/** The operator makes a key and revokes it, and every process learns of both. */
async function changeKeys(scene: Scene): Promise<void> {
  const { installation, workers, gateway } = scene;
  const { idle, act, run } = installation;
  async function answers(key: string, status: number): Promise<void> {
    // Processes take turns, so all of them have answered.
    for (let [right, looks] = [0, 0]; right < 2 * workers; looks += 1) {
      if (looks === 200) installation.fail(`a key is still not answered with ${status}`);
      await idle(100);
      const url = `${addressOf(gateway)}/v1/models`;
      const answer = await act(({ get }) => get(url, key));
      right = answer.status === status ? right + 1 : 0;
    }
  }
  const { key, key_id } = JSON.parse(await run("keys", "create", "--account", "acme", "--json"));
  await answers(key, 200);
  await run("keys", "revoke", key_id);
  await answers(key, 401);
}

/** The operator looks at the books while the gateway writes them. */
async function look({ installation }: Scene): Promise<void> {
  const { pick } = installation.world.random;
  const commands = [
    ["usage", "sync", "--once"],
    ["seal", "head"],
    ["budget", "show", "acme"],
    ["billing", "statement", "--account", "beta", "--month", "2026-07"],
  ];
  await installation.run(...pick(commands));
}

/** With a freeze before it and after it still less than the 15 seconds after which holds expire. */
const OUTAGE_MS = 6_000;

/**
 * Redis fails the gateways that share it: it is not there for a while, for one of them or for all;
 * its answers come too late; or it starts again without what it kept, or with an older state of it.
 */
async function failStore({ installation, house, all }: Scene): Promise<void> {
  if (all.length === 1) return;
  const { world, redis, idle, name } = installation;
  const { pick, between, random } = world.random;
  const { faults } = redis;
  const kind = pick(["is down", "cuts a gateway off", "is slow", "forgets", "is restored"]);
  const older = redis.copy();
  if (kind === "is restored") await idle(between(0, 4_000));
  world.note(`redis ${kind}`);
  if (kind === "is slow") faults.slowMs = between(10, 200);
  else if (kind === "cuts a gateway off") faults.cutOff = name;
  else faults.isDown = true;
  redis.cut();
  const from = world.wallClock();
  await idle(random() < 0.5 ? between(20, 300) : between(300, OUTAGE_MS));
  if (kind === "forgets") redis.restart();
  if (kind === "is restored") redis.restart(older);
  Object.assign(faults, { isDown: false, cutOff: undefined, slowMs: 0 });
  const isLoss = kind === "forgets" || kind === "is restored";
  if (isLoss) house.disturbances.push({ kind: "store lost", from, until: world.wallClock() });
}

/** PostgreSQL is not there for a while, or its answers come late, and connections break. */
async function failDatabase({ installation: { world, postgres, idle } }: Scene): Promise<void> {
  const { between, random } = world.random;
  const { faults } = postgres;
  faults.slowMs = random() < 0.5 ? between(10, 3_000) : 0;
  await idle(between(0, 1_000));
  faults.connections += 1;
  faults.isDown = random() < 0.5;
  await idle(random() < 0.5 ? between(1, 300) : between(300, OUTAGE_MS));
  Object.assign(faults, { isDown: false, slowMs: 0 });
}

/** All faults by their names, for --only. */
export const FAULTS: ReadonlyMap<string, Fault> = new Map(
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
