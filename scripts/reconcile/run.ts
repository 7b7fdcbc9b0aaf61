// Runs the phases one after the other, and judges what each left behind.

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Program } from "../../test/support/program.ts";
import type { Postgres } from "../../test/support/postgres.ts";
import type { Redis } from "../../test/support/redis.ts";
import { createRandom } from "../../test/support/random.ts";
import { createCrowds } from "./client.ts";
import type { House } from "./house.ts";
import { runPhase } from "./phase.ts";
import { phasesOf, referencePhase } from "./plan.ts";
import { startProvider } from "./provider.ts";

export interface RunOptions {
  readonly program: Program;
  /** An empty folder. */
  readonly folder: string;
  readonly requests: number;
  readonly seed: number;
  /** The program is the reference edition. Absent: it is the whole gateway. */
  readonly isReference?: boolean;
  /** Absent: no phase with two gateways. */
  readonly postgres?: Postgres | undefined;
  readonly redis?: Redis | undefined;
  readonly progress: (text: string) => void;
}

const COUNTS = [
  "prompt_tokens",
  "completion_tokens",
  "total_tokens",
  "prompt_cache_hit_tokens",
  "prompt_cache_miss_tokens",
  "reasoning_tokens",
];
const count = (name: string): string => `${name}::float8`;
const time = (name: string): string =>
  `to_char(${name} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS ${name}`;

/** The rows of usage_records as lines of the files have them, columns in the order of the members. */
const ROWS = `SELECT usage_id, gateway_request_id, account, key_id, model, provider, status,
  ${COUNTS.map(count).join(", ")}, cost::text, currency, ${time("started_at")},
  ${time("ended_at")}, ${count("cache_write_tokens")}, day::text, details,
  json_build_object('segment', log_segment, 'line', log_line, 'sha256', log_sha256) AS log
  FROM usage_records`;

/** How many receipts are asked for in all, if there are as many requests. */
const RECEIPTS = 1_500;

export async function runAll(options: RunOptions): Promise<House[]> {
  const { program, folder, requests, seed, postgres, redis, progress, isReference } = options;
  const random = createRandom(seed);
  const provider = await startProvider(random, isReference);
  const crowd = createCrowds(random, isReference);
  const url = await postgres?.database("reconcile");
  const servers = {
    ...(url !== undefined && { postgres: url }),
    ...(redis && { redis: redis.url }),
  };
  const phases = isReference ? [referencePhase(requests)] : phasesOf(requests, servers);
  const houses: House[] = [];
  try {
    for (const [index, phase] of phases.entries()) {
      const place = join(folder, `phase-${index + 1}`);
      mkdirSync(place);
      const startedAt = performance.now();
      const isShared = phase.postgres !== undefined;
      const house = await runPhase({
        phase,
        program,
        folder: place,
        provider,
        random,
        crowd,
        receipts: Math.ceil((RECEIPTS * phase.requests) / requests),
        async killDatabase() {
          await postgres?.kill();
          await postgres?.start();
        },
        readRows: isShared ? () => postgres!.query(url!, ROWS) : undefined,
      });
      houses.push(house);
      const seconds = ((performance.now() - startedAt) / 1_000).toFixed(0);
      progress(`${phase.name}: ${house.asked.length} requests, ${seconds} s`);
    }
  } finally {
    provider.close();
  }
  return houses;
}
