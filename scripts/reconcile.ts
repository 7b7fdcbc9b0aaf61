// Proves the gateway's bill to the pico-unit against the ledger of a provider of our own: `npm run
// build && node --import tsx scripts/reconcile.ts [--requests 20000] [--seed N] [--postgres]
// [--redis] [--self-test]`. Exit 1 if anything differs. With --core it proves the bill of the
// reference edition, which `npm run build:core` makes. It runs the phases one after the other:
// gateways under load that are killed, until enough requests have ended; then everything that there
// is to know of them is collected and judged. See scripts/reconcile.

import { existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { noPostgres, PG_FOLDER, startPostgres } from "../test/support/postgres.ts";
import { createRandom } from "../test/support/random.ts";
import { noRedis, startRedis } from "../test/support/redis.ts";
import { createCrowd, type Crowd } from "./reconcile/client.ts";
import { collect } from "./reconcile/collect.ts";
import { createGateways, type Gateways } from "./reconcile/gateways.ts";
import { emptyHouse, type House, type Line } from "./reconcile/house.ts";
import { judge, reportOf } from "./reconcile/judge.ts";
import { type Phase, phasesOf } from "./reconcile/plan.ts";
import { startProvider } from "./reconcile/provider.ts";
import { selfTest } from "./reconcile/self-test.ts";

const { values } = parseArgs({
  options: {
    requests: { type: "string", default: "20000" },
    seed: { type: "string" },
    postgres: { type: "boolean", default: false },
    redis: { type: "boolean", default: false },
    core: { type: "boolean", default: false },
    "self-test": { type: "boolean", default: false },
  },
});
const requests = Math.min(200_000, Number(values.requests));
const seed = Number(values.seed ?? Date.now() % 1_000_000);
const built = resolve(`dist/${values.core ? "chat-gateway-core" : "chat-gateway"}.mjs`);
if (!existsSync(built)) throw new Error(`there is no ${built}: run npm run build or build:core`);
const missing = (values.postgres && noPostgres()) || (values.redis && noRedis());
if (missing) throw new Error(missing);

/** How many clients a phase has. */
const CLIENTS = 24;
/** How many receipts are asked for in all, if there are as many requests. */
const RECEIPTS = 600;

const folder = mkdtempSync(join(tmpdir(), "reconcile-"));
const postgres = values.postgres ? await startPostgres() : undefined;
const redis = values.redis ? await startRedis() : undefined;
const program = { args: [built], cwd: postgres || redis ? PG_FOLDER : folder };
const random = createRandom(seed);
const print = (text: string): void => console.log(`  ${text}`);

function secondsSince(time: number): string {
  return `${((performance.now() - time) / 1_000).toFixed(0)} s`;
}

/** Load, and what happens meanwhile in a random order. */
async function live(phase: Phase, gateways: Gateways, crowd: Crowd): Promise<void> {
  for (const { number, address } of gateways.list) crowd.turnTo(number, address);
  const drawn = phase.events.map((event) => ({ event, at: random.random() }));
  const events = drawn.sort((a, b) => a.at - b.at).map(({ event }) => event);
  const step = phase.requests / (events.length + 1);
  for (const [index, event] of events.entries()) {
    await crowd.reached(Math.round(step * (index + 1)));
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

async function runPhase(phase: Phase, place: string): Promise<House> {
  const startedAt = performance.now();
  mkdirSync(place);
  const provider = await startProvider(random, values.core);
  const house = emptyHouse(phase, provider.ledger);
  const about = { phase, program, folder: place, provider: provider.url, house };
  const gateways = createGateways({ ...about, random, postgres });
  try {
    await gateways.startAll();
    const crowd = createCrowd(random, phase, Math.round(CLIENTS / phase.gateways));
    await live(phase, gateways, crowd);
    house.asked.push(...crowd.asked);
    await collect(gateways, house, random, Math.ceil((RECEIPTS * phase.requests) / requests));
    const rows = "SELECT *, day::text AS day FROM usage_records";
    if (phase.postgres !== undefined)
      house.rows = (await postgres!.query(phase.postgres, rows)).map(lineOf);
    print(`${phase.name}: ${house.asked.length} requests, ${secondsSince(startedAt)}`);
    return house;
  } finally {
    gateways.end();
    provider.close();
  }
}

const startedAt = performance.now();
console.log(`reconcile: ${requests} requests, seed ${seed}, Node ${process.version}`);
try {
  const url = await postgres?.database("reconcile");
  const servers = {
    ...(url !== undefined && { postgres: url }),
    ...(redis && { redis: redis.url }),
  };
  const houses: House[] = [];
  for (const phase of phasesOf(requests, values.core, servers))
    houses.push(await runPhase(phase, join(folder, `phase-${houses.length + 1}`)));
  const judgements = houses.map(judge);
  for (const line of reportOf(houses, judgements)) console.log(line);
  const violations = judgements.flatMap((judgement) => judgement.violations);
  for (const violation of violations) console.log(`FAILED: ${violation}`);
  const missed = values["self-test"] ? selfTest(houses, seed, print) : [];
  for (const name of missed) console.log(`FAILED: not found: ${name}`);
  const isRight = violations.length === 0 && missed.length === 0;
  const end = isRight ? "passed" : `failed (${violations.length}); the books are in ${folder}`;
  console.log(`reconcile: ${end} after ${secondsSince(startedAt)}`);
  if (isRight) rmSync(folder, { recursive: true });
  else process.exitCode = 1;
} finally {
  await postgres?.close();
  await redis?.close();
}
