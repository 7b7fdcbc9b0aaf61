// Kills the built gateway with SIGKILL at random moments under load, some hundred times on the same
// data_dir, and proves that the books are right afterwards: `npm run build && node --import tsx
// scripts/crash.ts [--kills 200] [--seed N] [--postgres]`. With --postgres the usage records are
// kept in a PostgreSQL server of its own, which is killed meanwhile as well, by gateways with two
// data_dirs (this needs PostgreSQL, and npm ci in test/clients). Loopback only. Exit 1 if anything
// is wrong.

import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { parseArgs } from "node:util";
import { noPostgres, PG_FOLDER, startPostgres } from "../test/support/postgres.ts";
import { crash, type CrashOptions } from "./crash/run.ts";
import { judge } from "./reconcile/judge.ts";
import { reportOf } from "./reconcile/report.ts";
import { ROWS } from "./reconcile/rows.ts";

const { values } = parseArgs({
  options: {
    kills: { type: "string", default: "200" },
    seed: { type: "string" },
    postgres: { type: "boolean", default: false },
  },
});
const kills = Math.min(5_000, Number(values.kills));
const seed = Number(values.seed ?? Date.now() % 1_000_000);
const built = resolve("dist/chat-gateway.mjs");
if (!existsSync(built)) throw new Error("there is no dist/chat-gateway.mjs: run npm run build");
const missing = values.postgres && noPostgres();
if (missing) throw new Error(missing);

const folder = mkdtempSync(join(tmpdir(), "crash-"));
const database = values.postgres ? await startPostgres() : undefined;
const url = await database?.database("usage");
let databaseKills = 0;

/** The database dies and comes back, as long as the gateways do. */
const withDatabase: Partial<CrashOptions> =
  database === undefined || url === undefined
    ? {}
    : {
        postgres: url,
        dataDirs: 2,
        readRows: () => database.query(url, ROWS),
        async meanwhile(stop, { between }) {
          while (!stop.aborted) {
            await pause(between(200, 1_500), undefined, { signal: stop }).catch(() => undefined);
            await database.kill();
            databaseKills += 1;
            await pause(between(0, 400));
            await database.start();
          }
        },
      };

const startedAt = performance.now();
const store = database ? ", PostgreSQL" : "";
console.log(`crash: ${kills} kills, seed ${seed}, Node ${process.version}${store}`);
try {
  const { house, killed } = await crash({
    program: { args: [built], cwd: database ? PG_FOLDER : folder },
    folder,
    kills,
    seed,
    clients: 12,
    lifeRequests: 150,
    progress: (done) => done % 20 === 0 && console.log(`  ${done} of ${kills}`),
    ...withDatabase,
  });
  const judgement = judge(house);
  const { violations, matches } = judgement;
  for (const line of reportOf([house], [judgement])) console.log(line);
  console.log(`killed: ${JSON.stringify(killed)}, the database ${databaseKills} times`);
  const caught = matches.filter(({ entry }) => entry.settle["status"] === "interrupted").length;
  const isRight = violations.length === 0 && caught >= killed.asking;
  if (caught < killed.asking) console.log(`FAILED: only ${caught} requests are interrupted`);
  for (const violation of violations.slice(0, 20)) console.log(`FAILED: ${violation}`);
  const seconds = ((performance.now() - startedAt) / 1_000).toFixed(0);
  const end = isRight ? "passed" : `failed; the books are in ${folder}`;
  console.log(`crash: ${end} after ${seconds} s`);
  if (isRight) rmSync(folder, { recursive: true });
  else process.exitCode = 1;
} finally {
  await database?.close();
}
