// Kills with SIGKILL while the spend log is sealed: every chain verifies afterwards.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { it } from "node:test";
import { crash } from "../../support/crash.ts";
import { LONG } from "../../support/long.ts";
import { bundled } from "../../support/program.ts";

const KILLS = LONG ? 25 : 4;

it(`two gateways on one sealed data_dir, ${KILLS} kills: no line without its place in a chain`, async (t) => {
  const seed = Number(process.env["CRASH_SEED"] ?? Date.now() % 1_000_000);
  const folder = mkdtempSync(join(tmpdir(), "crash-"));
  const program = bundled(folder);
  const { figures, violations } = await crash({ program, folder, kills: KILLS, seed, seals: true });
  t.diagnostic(`seed ${seed}: ${JSON.stringify(figures)}`);
  const where = `${violations.length} violations with CRASH_SEED=${seed}; the books are in ${folder}`;
  assert.deepEqual(violations.slice(0, 10), [], where);
  assert.ok(figures["killed while asking"]! > 0, JSON.stringify(figures));
  rmSync(folder, { recursive: true });
});
