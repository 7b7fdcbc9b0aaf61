// Kills the built gateway with SIGKILL at random moments under load, some hundred times on the same
// data_dir, and proves that the books are right afterwards: `npm run build && node --import tsx
// scripts/crash.ts [--kills 200] [--seed N] [--postgres] [--seals]`. With --seals the spend log
// is sealed, and each chain must verify afterwards. With --postgres the usage records are
// kept in a PostgreSQL server of its own, which is killed meanwhile as well, by gateways with two
// data_dirs (this needs PostgreSQL, and npm ci in test/clients). Loopback only. Exit 1 if anything
// is wrong.

import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { parseArgs } from "node:util";
import { crash, USAGE_QUERY, type CrashOptions } from "../test/support/crash.ts";
import { noPostgres, PG_FOLDER, startPostgres } from "../test/support/postgres.ts";

const { values } = parseArgs({
  options: {
    kills: { type: "string", default: "200" },
    seed: { type: "string" },
    postgres: { type: "boolean", default: false },
    seals: { type: "boolean", default: false },
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
        store: url,
        dataDirs: 2,
        readUsage: () => database.query(url, USAGE_QUERY),
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
console.log(
  `crash: ${kills} kills, seed ${seed}, Node ${process.version}${database ? ", PostgreSQL" : ""}${values.seals ? ", sealed" : ""}`,
);
try {
  const progress = (done: number) => done % 20 === 0 && console.log(`  ${done} of ${kills}`);
  const { figures, violations } = await crash({
    program: { args: [built], cwd: database ? PG_FOLDER : folder },
    folder,
    kills,
    seed,
    clients: 12,
    lifeRequests: 150,
    seals: values.seals,
    progress,
    ...withDatabase,
  });
  for (const [what, times] of Object.entries({
    ...figures,
    ...(database && { "database killed": databaseKills }),
  }))
    console.log(`  ${String(times).padStart(8)}  ${what}`);
  for (const violation of violations.slice(0, 20)) console.log(`FAILED: ${violation}`);
  console.log(
    `crash: ${violations.length === 0 ? "passed" : `failed; the books are in ${folder}`} after ${((performance.now() - startedAt) / 1000).toFixed(0)} s`,
  );
  if (violations.length === 0) rmSync(folder, { recursive: true });
  else process.exitCode = 1;
} finally {
  await database?.close();
}
