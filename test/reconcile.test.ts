// A short run of scripts/reconcile.ts: a gateway under load that is killed and told of other
// prices, its books against the ledger of the provider; and the judge finds whatever is spoilt. Then
// one of scripts/crash.ts.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { it } from "node:test";
import { crash } from "../scripts/crash/run.ts";
import { judge } from "../scripts/reconcile/judge.ts";
import { runAll } from "../scripts/reconcile/run.ts";
import { selfTest } from "../scripts/reconcile/self-test.ts";
import { LONG } from "./support/long.ts";
import { bundled } from "./support/program.ts";

it("the bill is the provider's ledger to the pico-unit; its judge misses nothing", async (t) => {
  const seed = Number(process.env["RECONCILE_SEED"] ?? Date.now() % 1_000_000);
  const folder = mkdtempSync(join(tmpdir(), "reconcile-"));
  const houses = await runAll({
    program: bundled(folder),
    folder,
    requests: LONG ? 900 : 400,
    seed,
    firstOnly: !LONG,
    progress: (text) => t.diagnostic(text),
  });
  const violations = houses.flatMap((house) => judge(house).violations);
  const where = `RECONCILE_SEED=${seed}, ${violations.length} violations, the books: ${folder}`;
  assert.deepEqual(violations.slice(0, 10), [], where);
  const { found, missed } = selfTest(houses, () => undefined);
  assert.deepEqual(missed, [], `RECONCILE_SEED=${seed}`);
  assert.ok(found >= 30, `${found} spoils were tried`);
  rmSync(folder, { recursive: true });
});

const KILLS = LONG ? 25 : 6;

it(`two gateways on one data_dir, ${KILLS} kills: nothing lost, nothing doubled, every sum equal`, async (t) => {
  const seed = Number(process.env["CRASH_SEED"] ?? Date.now() % 1_000_000);
  const folder = mkdtempSync(join(tmpdir(), "crash-"));
  const { house, killed } = await crash({ program: bundled(folder), folder, kills: KILLS, seed });
  t.diagnostic(`seed ${seed}: ${house.asked.length} requests, ${JSON.stringify(killed)}`);
  const { violations } = judge(house);
  const where = `CRASH_SEED=${seed}, ${violations.length} violations, the books: ${folder}`;
  assert.deepEqual(violations.slice(0, 10), [], where);
  assert.ok(killed.asking > 0, JSON.stringify(killed));
  rmSync(folder, { recursive: true });
});
