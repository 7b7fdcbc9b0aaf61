// Runs the phases one after the other: gateways under load that are killed and told of other prices,
// until enough requests have ended; then everything that there is to know of them is collected.

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Program } from "../../test/support/program.ts";
import type { Postgres } from "../../test/support/postgres.ts";
import type { Redis } from "../../test/support/redis.ts";
import { createRandom } from "../../test/support/random.ts";
import { collectAtRest, collectRunning, collectTomorrow, takeHeads } from "./collect.ts";
import { type Crowd, createCrowds } from "./client.ts";
import { createGateways, type Gateways } from "./gateways.ts";
import { emptyHouse, type House, type Line } from "./house.ts";
import { type Phase, phasesOf } from "./plan.ts";
import { type Random, startProvider } from "./provider.ts";

export interface RunOptions {
  readonly program: Program;
  /** An empty folder. */
  readonly folder: string;
  readonly requests: number;
  readonly seed: number;
  /** The program is the reference edition. */
  readonly isReference: boolean;
  /** Absent: no phase with two gateways. */
  readonly postgres?: Postgres | undefined;
  readonly redis?: Redis | undefined;
  readonly progress: (text: string) => void;
}

/** How many clients a phase has. */
const CLIENTS = 24;
/** How many receipts are asked for in all, if there are as many requests. */
const RECEIPTS = 600;

/** Load, and what happens meanwhile in a random order, with heads that are made in the middle. */
async function live(phase: Phase, gateways: Gateways, crowd: Crowd, random: Random) {
  for (const { number, address } of gateways.list) crowd.turnTo(number, address);
  const drawn = phase.events.map((event) => ({ event, at: random.random() }));
  const events = drawn.sort((a, b) => a.at - b.at).map(({ event }) => event);
  const step = phase.requests / (events.length + 1);
  for (const [index, event] of events.entries()) {
    await crowd.reached(Math.round(step * (index + 1)));
    if (index === events.length >> 1 && !phase.isReference) await takeHeads(gateways);
    await gateways.happen(event, crowd);
  }
  await crowd.reached(phase.requests);
  await crowd.stop();
}

/** A row of usage_records as a line of the files has it. */
function lineOf({ log_segment, log_line, log_sha256, ...row }: Line): Line {
  const members = Object.entries(row).map(([name, value]) => [
    name,
    name.endsWith("_tokens") ? Number(value) : value,
  ]);
  const log = { segment: log_segment, line: Number(log_line), sha256: log_sha256 };
  // Times are dates.
  return JSON.parse(JSON.stringify({ ...Object.fromEntries(members), log }));
}

export async function runAll(options: RunOptions): Promise<House[]> {
  const { program, folder, requests, seed, postgres, redis, progress, isReference } = options;
  const random = createRandom(seed);
  const provider = await startProvider(random, isReference);
  const crowds = createCrowds(random, isReference);
  const url = await postgres?.database("reconcile");
  const servers = {
    ...(url !== undefined && { postgres: url }),
    ...(redis && { redis: redis.url }),
  };

  async function runPhase(phase: Phase, place: string): Promise<House> {
    mkdirSync(place);
    const house = emptyHouse(phase);
    const into = { phase, program, folder: place, provider: provider.url, house };
    const gateways = createGateways({ ...into, random, postgres });
    try {
      await gateways.startAll();
      const crowd = crowds(phase.gateways, Math.round(CLIENTS / phase.gateways));
      await live(phase, gateways, crowd, random);
      house.asked.push(...crowd.asked);
      for (const { serial } of house.asked) {
        const calls = provider.ledger.get(serial);
        if (calls) house.calls.set(serial, [...calls]);
      }
      const receipts = Math.ceil((RECEIPTS * phase.requests) / requests);
      await collectRunning(gateways, house, random, receipts);
      await gateways.stop();
      await collectAtRest(gateways, house);
      await collectTomorrow(gateways, house, place, random);
      if (phase.postgres !== undefined) {
        const rows = "SELECT *, day::text AS day FROM usage_records";
        house.rows = (await postgres!.query(phase.postgres, rows)).map(lineOf);
      }
      return house;
    } finally {
      gateways.end();
    }
  }

  const houses: House[] = [];
  try {
    for (const [index, phase] of phasesOf(requests, isReference, servers).entries()) {
      const startedAt = performance.now();
      const house = await runPhase(phase, join(folder, `phase-${index + 1}`));
      houses.push(house);
      const seconds = ((performance.now() - startedAt) / 1_000).toFixed(0);
      progress(`${phase.name}: ${house.asked.length} requests, ${seconds} s`);
    }
  } finally {
    provider.close();
  }
  return houses;
}
