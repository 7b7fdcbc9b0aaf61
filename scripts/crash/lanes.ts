// A lane: one gateway after another on the same data_dir, each killed at its moment, and clients that
// ask whichever is there.

import { readdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { type Ended, launch, type Program, type Running } from "../../test/support/program.ts";
import { waitFor, within } from "../../test/support/wait.ts";
import type { Crowd } from "../reconcile/client.ts";
import { complaintsIn, type Gateway } from "../reconcile/gateways.ts";
import type { House } from "../reconcile/house.ts";
import type { Provider, Random } from "../reconcile/provider.ts";

/** When it is certain that what is waited for does not come, however busy the machine is. */
const LATE_MS = 120_000;

/**
 * When a process dies: "asking" while a request of its own waits for the provider, "serving" after
 * so many of its clients' requests, "rotating" after it has begun another segment and so many more,
 * "starting" and "syncing" so many milliseconds after its start.
 */
interface Death {
  readonly kind: "asking" | "starting" | "syncing" | "serving" | "rotating";
  readonly after: number;
}

/** What all lanes have in common. */
export interface Lanes {
  readonly program: Program;
  readonly random: Random;
  readonly provider: Provider;
  readonly crowd: Crowd;
  /** Hears of kills, and of what is wrong. */
  readonly house: House;
  /** After how many requests most of them die, at the most. */
  readonly lifeRequests: number;
  /** Something else dies beside the gateways, so that a command may fail. */
  readonly hasRival: boolean;
  readonly killed: Record<Death["kind"], number>;
  /** How many are to be killed yet. */
  left: number;
  /** About how long it takes to listen. */
  startMs: number;
  /** Told when one was killed. */
  readonly progress: () => void;
}

/** A lane by its number, and the data_dir of its gateways. */
export interface Lane extends Pick<Gateway, "configFile" | "dataDir"> {
  readonly number: number;
}

/** The first of each lane catches a request for certain; the others are left to chance. */
function death({ random, startMs, lifeRequests }: Lanes, isFirst: boolean): Death {
  if (isFirst) return { kind: "asking", after: 0 };
  const chance = random.random();
  if (chance < 0.2) return { kind: "starting", after: random.between(0, startMs * 1.3) };
  if (chance < 0.3) return { kind: "syncing", after: random.between(startMs * 0.3, startMs * 1.5) };
  const after = random.between(0, lifeRequests);
  return { kind: chance < 0.9 ? "serving" : "rotating", after };
}

/** Resolves when a gateway that listens has begun another segment in this data_dir. */
async function rotation(dataDir: string): Promise<void> {
  const spend = join(dataDir, "spend");
  const names = () => readdirSync(spend).filter((name) => name.endsWith(".jsonl"));
  const before = new Set(names());
  await waitFor(() => names().some((name) => !before.has(name)), "another segment", LATE_MS);
}

/** Resolves at the moment at which a process is to die. */
async function moment(
  lanes: Lanes,
  { kind, after }: Death,
  running: Running,
  { number, dataDir }: Lane,
): Promise<void> {
  if (kind === "starting" || kind === "syncing") {
    await Promise.race([pause(after), running.ended]); // the moment is what is tried
    return;
  }
  const { crowd, provider } = lanes;
  const began = performance.now();
  await within(running.address, "the line that says where it listens", LATE_MS);
  lanes.startMs = Math.round((lanes.startMs * 3 + performance.now() - began) / 4);
  if (kind === "asking") {
    const serial = crowd.askInVain(number);
    await waitFor(() => provider.ledger.has(serial), `request ${serial} at the provider`, LATE_MS);
    return;
  }
  if (kind === "rotating") await rotation(dataDir);
  await crowd.reached(crowd.asked.length + after);
}

function start({ program, crowd }: Lanes, { configFile, number }: Lane, args: readonly string[]) {
  const running = launch(program, [...args, "--config", configFile]);
  running.address.then(
    (url) => crowd.turnTo(number, url),
    () => undefined,
  );
  return running;
}

/** What is wrong with an end that was to be a kill, and whether it counts as one. */
function noteEnd(lanes: Lanes, kind: Death["kind"], { code, signal, stderr }: Ended): void {
  const { house, killed, hasRival } = lanes;
  const isCommand = kind === "syncing";
  const isExcused = isCommand && hasRival;
  if (signal === "SIGKILL") {
    killed[kind] += 1;
    if (!isExcused) house.complaints.push(...complaintsIn(stderr));
    lanes.progress();
    return;
  }
  // A command may be quicker than its murderer, and may find no database; a gateway may not end.
  lanes.left += 1;
  if (!isExcused && !(isCommand && code === 0))
    house.complaints.push(`${kind}: it ended with ${code ?? signal}: ${stderr}`);
}

/** Kills until enough are killed by all lanes. */
export async function runLane(lanes: Lanes, lane: Lane): Promise<void> {
  const { crowd, house } = lanes;
  const { number } = lane;
  for (let isFirst = true; lanes.left > 0 && house.complaints.length === 0; isFirst = false) {
    lanes.left -= 1;
    const { kind, after } = death(lanes, isFirst);
    const isCommand = kind === "syncing";
    const running = start(lanes, lane, isCommand ? ["usage", "sync", "--once"] : ["serve"]);
    await moment(lanes, { kind, after }, running, lane).catch((error: Error) =>
      house.complaints.push(error.message),
    );
    crowd.turnTo(number, undefined);
    if (!isCommand) house.kills.push({ gateway: number, worker: false, at: Date.now() });
    running.child.kill("SIGKILL");
    noteEnd(lanes, kind, await running.ended);
  }
}

/** Requests that end before a gateway ends in good order. */
const LAST_REQUESTS = 40;

/** The last one lives on, and ends in good order under load. */
export async function endLane(lanes: Lanes, lane: Lane): Promise<void> {
  const { crowd, house } = lanes;
  const running = start(lanes, lane, ["serve"]);
  await within(running.address, "the line that says where it listens", LATE_MS);
  await crowd.reached(crowd.asked.length + LAST_REQUESTS);
  crowd.turnTo(lane.number, undefined);
  // A request that was just being sent gets no answer.
  house.kills.push({ gateway: lane.number, worker: false, at: Date.now() });
  running.child.kill("SIGTERM");
  const { code, stderr } = await running.ended;
  if (code !== 0) house.complaints.push(`SIGTERM: it ended with ${code}: ${stderr}`);
}
