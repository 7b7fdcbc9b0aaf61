// Reconciles the gateway's books, to the pico-unit, with a provider's ledger: `npm run build &&
// node --import tsx scripts/reconcile.ts [--requests 20000] [--seed N] [--postgres] [--redis]
// [--self-test]`. It exits with 1 if anything differs. With --core it runs the reference edition,
// which `npm run build:core` makes.
//
// It runs phases one after another. In each phase gateways are under load and are killed, until
// enough requests have ended. Then the evidence about the phase (scripts/reconcile/evidence.ts) is
// collected and judged.

import { existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { noPostgres, PG_FOLDER, startPostgres } from "../test/support/postgres.ts";
import { createRandom } from "../test/support/random.ts";
import { noRedis, startRedis } from "../test/support/redis.ts";
import { createClientLoad, type ClientLoad } from "./reconcile/client.ts";
import { collect } from "./reconcile/collect.ts";
import { createGateways, type Gateways } from "./reconcile/gateways.ts";
import { createEvidence, type Evidence, type JsonObject } from "./reconcile/evidence.ts";
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

/** The number of clients in a phase. */
const CLIENTS = 24;
/** The number of receipts to request, if there are as many requests. */
const RECEIPTS = 600;

const folder = mkdtempSync(join(tmpdir(), "reconcile-"));
const postgres = values.postgres ? await startPostgres() : undefined;
const redis = values.redis ? await startRedis() : undefined;
const program = { args: [built], cwd: postgres || redis ? PG_FOLDER : folder };
const random = createRandom(seed);
const print = (text: string): void => console.log(`  ${text}`);

const secondsSince = (time: number): string =>
  `${((performance.now() - time) / 1_000).toFixed(0)} s`;

/** Runs the load of a phase, with the events of the phase at random moments. */
async function runLoad(phase: Phase, gateways: Gateways, load: ClientLoad): Promise<void> {
  for (const { number, address } of gateways.list) load.connectTo(number, address);
  const drawn = phase.events.map((event) => ({ event, at: random.random() }));
  const events = drawn.sort((a, b) => a.at - b.at).map(({ event }) => event);
  const step = phase.requests / (events.length + 1);
  for (const [index, event] of events.entries()) {
    await load.completed(Math.round(step * (index + 1)));
    await gateways.trigger(event, load);
  }
  await load.completed(phase.requests);
  await load.stop();
}

/** A row of the table usage_records, in the form of a line of the files. */
function recordOf({ log_segment, log_line, log_sha256, ...row }: JsonObject): JsonObject {
  const members = Object.entries(row).map(([name, value]) => [
    name,
    name.endsWith("_tokens") ? Number(value) : value,
  ]);
  const log = { segment: log_segment, line: Number(log_line), sha256: log_sha256 };
  // Serializing turns Date objects into text.
  return JSON.parse(JSON.stringify({ ...Object.fromEntries(members), log }));
}

/** Runs a phase in a new folder, and collects the evidence about it. */
async function runPhase(phase: Phase, phaseFolder: string): Promise<Evidence> {
  const startedAt = performance.now();
  mkdirSync(phaseFolder);
  const provider = await startProvider(random, values.core);
  const evidence = createEvidence(phase, provider.ledger);
  const common = { phase, program, random, postgres, evidence };
  const gateways = createGateways({ ...common, folder: phaseFolder, provider: provider.url });
  try {
    await gateways.startAll();
    const load = createClientLoad(random, phase, Math.round(CLIENTS / phase.gateways));
    await runLoad(phase, gateways, load);
    evidence.requests.push(...load.requests);
    await collect(gateways, evidence, random, Math.ceil((RECEIPTS * phase.requests) / requests));
    const rows = "SELECT *, day::text AS day FROM usage_records";
    if (phase.postgres !== undefined)
      evidence.rows = (await postgres!.query(phase.postgres, rows)).map(recordOf);
    print(`${phase.name}: ${evidence.requests.length} requests, ${secondsSince(startedAt)}`);
    return evidence;
  } finally {
    gateways.end();
    provider.close();
  }
}

const startedAt = performance.now();
console.log(`reconcile: ${requests} requests, seed ${seed}, Node ${process.version}`);
try {
  const servers = { postgres: await postgres?.database("reconcile"), redis: redis?.url };
  const phases: Evidence[] = [];
  for (const phase of phasesOf(requests, values.core, servers))
    phases.push(await runPhase(phase, join(folder, `phase-${phases.length + 1}`)));
  const judgements = phases.map(judge);
  for (const line of reportOf(phases, judgements)) console.log(line);
  const violations = judgements.flatMap((judgement) => judgement.violations);
  for (const violation of violations) console.log(`FAILED: ${violation}`);
  const missed = values["self-test"] ? selfTest(phases, seed, print) : [];
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
