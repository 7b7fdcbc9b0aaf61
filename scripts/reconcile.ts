// Proves the gateway's bill to the pico-unit against the ledger of a provider of our own: `npm run
// build && node --import tsx scripts/reconcile.ts [--requests 20000] [--seed N] [--postgres]
// [--redis] [--self-test]`. Exit 1 if anything differs. With --core it proves the bill of the
// reference edition, which `npm run build:core` makes. See scripts/reconcile.

import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { noPostgres, PG_FOLDER, startPostgres } from "../test/support/postgres.ts";
import { noRedis, startRedis } from "../test/support/redis.ts";
import { judge } from "./reconcile/judge.ts";
import { runAll } from "./reconcile/phase.ts";
import { reportOf } from "./reconcile/report.ts";
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
const name = values.core ? "chat-gateway-core" : "chat-gateway";
const built = resolve(`dist/${name}.mjs`);
if (!existsSync(built)) throw new Error(`there is no ${built}: run npm run build or build:core`);
const missing = (values.postgres && noPostgres()) || (values.redis && noRedis());
if (missing) throw new Error(missing);

const folder = mkdtempSync(join(tmpdir(), "reconcile-"));
const postgres = values.postgres ? await startPostgres() : undefined;
const redis = values.redis ? await startRedis() : undefined;
const startedAt = performance.now();
console.log(`reconcile: ${requests} requests, seed ${seed}, Node ${process.version}`);
try {
  const houses = await runAll({
    program: { args: [built], cwd: postgres || redis ? PG_FOLDER : folder },
    folder,
    requests,
    seed,
    isReference: values.core,
    postgres,
    redis,
    progress: (text) => console.log(`  ${text}`),
  });
  const judgements = houses.map(judge);
  for (const line of reportOf(houses, judgements)) console.log(line);
  const violations = judgements.flatMap((judgement) => judgement.violations);
  for (const violation of violations) console.log(`FAILED: ${violation}`);
  const missed = values["self-test"]
    ? selfTest(houses, seed, (text) => console.log(`  ${text}`))
    : [];
  for (const name of missed) console.log(`FAILED: not found: ${name}`);
  const seconds = ((performance.now() - startedAt) / 1_000).toFixed(0);
  const isRight = violations.length === 0 && missed.length === 0;
  const end = isRight ? "passed" : `failed (${violations.length}); the books are in ${folder}`;
  console.log(`reconcile: ${end} after ${seconds} s`);
  if (isRight) rmSync(folder, { recursive: true });
  else process.exitCode = 1;
} finally {
  await postgres?.close();
  await redis?.close();
}
