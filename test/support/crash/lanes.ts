// A lane: one gateway after another on the same data_dir, each killed at its moment, and clients that
// ask whichever is there.

import { readdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { type Ended, launch, type Program, type Running } from "../program.ts";
import { waitFor, within } from "../wait.ts";
import { createCrowd, type Crowd } from "./clients.ts";
import type { CrashProvider } from "./provider.ts";
import { LATE_MS, type Random } from "./setup.ts";

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
  readonly provider: CrashProvider;
  /** Clients of each lane. */
  readonly clients: number;
  /** As CrashOptions.lifeRequests. */
  readonly lifeRequests: number;
  /** Something else dies beside the gateways, so that a command may fail. */
  readonly hasRival: boolean;
  readonly violations: string[];
  readonly killed: Record<Death["kind"], number>;
  /** How many are to be killed yet. */
  left: number;
  /** About how long it takes to listen. */
  startMs: number;
  /** Told when one was killed. */
  readonly progress: () => void;
}

/** Where a lane's gateways live. */
export interface Place {
  readonly config: string;
  readonly dataDir: string;
}

/** What is on stderr, but for what the provider does. */
export const notable = (stderr: string): string =>
  stderr
    .split("\n")
    .filter((line) => !/"event":"(attempt_failed|reply_cut)"/.test(line))
    .join("\n");

/** Nothing but diagnostics may be on stderr; a last line may have died half-way. */
const complaints = (stderr: string): string[] =>
  stderr
    .split("\n")
    .slice(0, -1)
    .filter((line) => !/^(chat-gateway: )?\{.*"event":"(?!internal_error)\w+".*\}$/.test(line))
    .map((line) => `on stderr: ${line}`);

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
  { crowd, dataDir }: { readonly crowd: Crowd; readonly dataDir: string },
): Promise<void> {
  if (kind === "starting" || kind === "syncing") {
    await Promise.race([pause(after), running.ended]); // the moment is what is tried
    return;
  }
  const began = performance.now();
  await within(running.address, "the line that says where it listens", LATE_MS);
  lanes.startMs = Math.round((lanes.startMs * 3 + performance.now() - began) / 4);
  if (kind === "asking") await lanes.provider.reached(crowd.askInVain());
  else {
    if (kind === "rotating") await rotation(dataDir);
    await crowd.ended(after);
  }
}

function start({ program }: Lanes, config: string, isCommand: boolean): Running {
  const args = isCommand ? ["usage", "sync", "--once"] : ["serve"];
  return launch(program, [...args, "--config", config]);
}

/** What is wrong with an end that was to be a kill, and whether it counts as one. */
function noteEnd(lanes: Lanes, kind: Death["kind"], { code, signal, stderr }: Ended): void {
  const { violations, killed, hasRival } = lanes;
  const isCommand = kind === "syncing";
  const isExcused = isCommand && hasRival;
  if (signal === "SIGKILL") {
    killed[kind] += 1;
    if (!isExcused) violations.push(...complaints(stderr));
    lanes.progress();
    return;
  }
  // A command may be quicker than its murderer, and may find no database; a gateway may not end.
  lanes.left += 1;
  if (!isExcused && !(isCommand && code === 0))
    violations.push(`${kind}: it ended with ${code ?? signal}: ${notable(stderr)}`);
}

/** Kills until enough are killed by all lanes. Resolves with the clients. */
export async function runLane(lanes: Lanes, { config, dataDir }: Place): Promise<Crowd> {
  const crowd = createCrowd(lanes.clients, lanes.random);
  for (let isFirst = true; lanes.left > 0 && lanes.violations.length === 0; isFirst = false) {
    lanes.left -= 1;
    const { kind, after } = death(lanes, isFirst);
    const isCommand = kind === "syncing";
    const running = start(lanes, config, isCommand);
    if (!isCommand) running.address.then(crowd.turnTo, () => undefined);
    await moment(lanes, { kind, after }, running, { crowd, dataDir }).catch((error: Error) =>
      lanes.violations.push(error.message),
    );
    crowd.turnTo(undefined);
    running.child.kill("SIGKILL");
    noteEnd(lanes, kind, await running.ended);
  }
  return crowd;
}

/** Whole replies that are waited for from a gateway that ends in good order. */
const LAST_REPLIES = 30;

/** The last one lives on, and ends in good order under load. */
export async function endLane(
  { program, violations }: Lanes,
  { config }: Place,
  crowd: Crowd,
): Promise<void> {
  const running = launch(program, ["serve", "--config", config]);
  crowd.turnTo(await within(running.address, "the line that says where it listens", LATE_MS));
  await crowd.more(LAST_REPLIES);
  running.child.kill("SIGTERM");
  await Promise.all([running.ended, crowd.stop()]);
  const { code, stderr } = await running.ended;
  if (code !== 0) violations.push(`SIGTERM: it ended with ${code}: ${notable(stderr)}`);
}
