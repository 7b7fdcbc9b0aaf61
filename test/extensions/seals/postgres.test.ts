// Seals with usage records in PostgreSQL, a real one: rows that somebody changes, removes or adds
// are found. Skipped where PostgreSQL or the package `pg` (npm ci in test/clients) is not
// installed; REQUIRE_POSTGRES=1 forbids that.

import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { it } from "node:test";
import { ACCOUNTS, crashConfig, createCrowd, startCrashProvider } from "../../support/crash.ts";
import { folder } from "../../support/folder.ts";
import { noPostgres, PG_FOLDER, startPostgres } from "../../support/postgres.ts";
import { launch, quickest, runToEnd } from "../../support/program.ts";
import { createRandom } from "../../support/random.ts";
import { within } from "../../support/wait.ts";

it("seal verify compares the rows of the table with what was sealed", {
  skip: noPostgres(),
}, async (t) => {
  const db = await startPostgres();
  t.after(() => db.close());
  const url = await db.database("sealed");
  const place = folder();
  const dataDir = join(place, "data");
  mkdirSync(dataDir);
  const random = createRandom(22);
  const provider = await startCrashProvider(random);
  t.after(() => provider.close());
  const config = join(place, "gateway.json");
  const options = { dataDir, provider: provider.url, store: url, seals: true };
  writeFileSync(config, JSON.stringify(crashConfig(options)));
  const program = quickest(folder(), PG_FOLDER);
  const running = launch(program, ["serve", "--config", config]);
  t.after(() => running.child.kill("SIGKILL"));
  const crowd = createCrowd(4, random);
  crowd.turnTo(await within(running.address, "the line that says where it listens"));
  await crowd.more(40);
  await crowd.stop();
  running.child.kill("SIGTERM");
  await running.ended;
  await runToEnd(program, ["usage", "sync", "--once", "--config", config]);

  const verify = async () => {
    const args = ["seal", "verify", "--json", "--config", config];
    const { stdout, stderr } = await runToEnd(program, args);
    assert.ok(stdout !== "", stderr);
    return JSON.parse(stdout);
  };
  const rows = await db.query(url, "SELECT usage_id FROM usage_records ORDER BY usage_id");
  const good = await verify();
  assert.deepEqual(good.findings, []);
  const [last] = good.months.slice(-1);
  assert.deepEqual([last.records, last.by_log], [rows.length, rows.length]);
  assert.ok(rows.length >= 30, `${rows.length}`);

  const inFiles = await runToEnd(program, ["seal", "verify", dataDir]);
  assert.equal(inFiles.code, 0, inFiles.stdout);
  assert.match(
    inFiles.stdout,
    /\nusage records: there are none in files here, and nothing is said/,
  );

  const month = new Date().toISOString().slice(0, 7);
  const statement = join(place, "statement.json");
  const about = ["--account", ACCOUNTS[0]!, "--month", month, "--sealed", "--config", config];
  const sealed = await runToEnd(program, ["billing", "statement", ...about]);
  writeFileSync(statement, sealed.stdout);
  const checked = await runToEnd(program, ["seal", "verify", statement, "--json"]);
  assert.deepEqual(JSON.parse(checked.stdout).findings, [], sealed.stderr);

  const [{ usage_id: id }] = rows;
  const other = `${id.slice(0, -1)}${id.endsWith("0") ? "1" : "0"}`;
  const before = await db.query(url, "SELECT * FROM usage_records WHERE usage_id = $1", [id]);
  const { cost } = before[0];
  await db.query(url, "UPDATE usage_records SET cost = cost + 1 WHERE usage_id = $1", [id]);
  assert.match((await verify()).findings.join("\n"), new RegExp(`, ${id}: .* changed or inserted`));
  await db.query(url, "UPDATE usage_records SET cost = $2 WHERE usage_id = $1", [id, cost]);
  assert.deepEqual((await verify()).findings, []);
  await db.query(url, "UPDATE usage_records SET usage_id = $2 WHERE usage_id = $1", [id, other]);
  const moved = (await verify()).findings.join("\n");
  assert.match(moved, new RegExp(`, ${other}: .* changed or inserted`));
  assert.match(moved, new RegExp(`usage records: ${id} is missing: the spend log has it`));
});
