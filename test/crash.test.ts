// Kills with SIGKILL: the real process dies at random moments under load, and the books are right nevertheless.

import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { it } from "node:test";
import { crash, crashConfig } from "./support/crash.ts";
import { fromSources, launch } from "./support/program.ts";
import { writeSpend } from "./support/spend.ts";
import { within } from "./support/wait.ts";

it("two gateways on one data_dir, 25 kills: nothing lost, nothing doubled, every sum equal", async (t) => {
  const seed = Number(process.env["CRASH_SEED"] ?? Date.now() % 1_000_000);
  const folder = mkdtempSync(join(tmpdir(), "crash-"));
  const { figures, violations } = await crash({ program: fromSources(folder), folder, kills: 25, seed });
  t.diagnostic(`seed ${seed}: ${JSON.stringify(figures)}`);
  assert.deepEqual(violations.slice(0, 10), [], `${violations.length} violations with CRASH_SEED=${seed}; the books are in ${folder}`);
  assert.ok(figures["received whole"]! > 100 && figures["interrupted"]! > 0, JSON.stringify(figures));
  rmSync(folder, { recursive: true });
});

function configIn(folder: string): string {
  const config = join(folder, "gateway.json");
  mkdirSync(join(folder, "data"));
  writeFileSync(config, JSON.stringify(crashConfig({ dataDir: join(folder, "data"), provider: "http://127.0.0.1:9", syncMs: 1 })));
  return config;
}

it("gateways that come and go without a request, while their books are synced all the time: not a word", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "crash-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const config = configIn(folder);
  writeSpend(join(folder, "data"), { requests: 300, perSegment: 1 }); // so that a sync is at work most of the time
  const lifeless = async () => {
    const { child, address, ended } = launch(fromSources(folder), ["serve", "--config", config]);
    t.after(() => child.kill("SIGKILL"));
    const url = await within(address, "the line that says where it listens", 10_000);
    assert.equal((await fetch(`${url}/healthz`)).status, 200);
    child.kill("SIGTERM");
    const { code, stderr } = await within(ended, "its end", 10_000);
    assert.deepEqual([code, stderr], [0, ""]);
  };
  for (let round = 0; round < 3; round += 1) await Promise.all([lifeless(), lifeless()]);
});

it("SIGTERM as soon as it says that it listens: a good end", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "crash-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const config = configIn(folder);
  for (let round = 0; round < 3; round += 1) {
    const { child, address, ended } = launch(fromSources(folder), ["serve", "--config", config]);
    t.after(() => child.kill("SIGKILL"));
    await within(address, "the line that says where it listens", 10_000);
    child.kill("SIGTERM");
    const { code, signal } = await within(ended, "its end", 10_000);
    assert.deepEqual([code, signal], [0, null]);
  }
});
