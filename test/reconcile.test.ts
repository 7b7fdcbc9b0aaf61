// A short run of scripts/reconcile.ts: a gateway under load that is killed and told of other
// prices, its books against the ledger of the provider; and the judge finds whatever is spoilt.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { it } from "node:test";
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
