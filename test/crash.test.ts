// Kills with SIGKILL: the real process dies at random moments under load, and the books are right nevertheless.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { it } from "node:test";
import { crash } from "./support/crash.ts";
import { fromSources } from "./support/program.ts";

it("two gateways on one data_dir, 25 kills: nothing lost, nothing doubled, every sum equal", async (t) => {
  const seed = Number(process.env["CRASH_SEED"] ?? Date.now() % 1_000_000);
  const folder = mkdtempSync(join(tmpdir(), "crash-"));
  const { figures, violations } = await crash({ program: fromSources(folder), folder, kills: 25, seed });
  t.diagnostic(`seed ${seed}: ${JSON.stringify(figures)}`);
  assert.deepEqual(violations.slice(0, 10), [], `${violations.length} violations with CRASH_SEED=${seed}; the books are in ${folder}`);
  assert.ok(figures["received whole"]! > 100 && figures["interrupted"]! > 0, JSON.stringify(figures));
  rmSync(folder, { recursive: true });
});
