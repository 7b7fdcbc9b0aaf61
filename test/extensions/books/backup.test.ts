// The manual's page "Backup and restore": its blocks are run word for word, and what it says of
// each loss is tried.

import assert from "node:assert/strict";
import { copyFileSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { it, type TestContext } from "node:test";
import { settledSoFar, usageCount, usageRecords } from "../../support/books.ts";
import { folder } from "../../support/folder.ts";
import { demo } from "../../support/gateway.ts";
import { assertEach, copyDir, runScript } from "../../support/ledger.ts";
import { bundled, launch } from "../../support/program.ts";
import { blocksOf } from "../../support/readme.ts";
import { settled, waitFor, within } from "../../support/wait.ts";

const [copy = "", restore = ""] = blocksOf("bash", "backup");
const BUILT = bundled(folder()).args[0]!;

/** A folder as the manual has it: the program in dist, the books in data. */
function place() {
  const cwd = folder();
  mkdirSync(join(cwd, "dist"));
  writeFileSync(join(cwd, "dist", "chat-gateway.mjs"), `import ${JSON.stringify(BUILT)};\n`);
  const over = { data_dir: "./data", usage: { sync_ms: 20 }, providers: { demo: { pace_ms: 5 } } };
  writeFileSync(join(cwd, "gateway.json"), JSON.stringify(demo(over)));
  return { cwd, dir: join(cwd, "data"), script: (text: string) => runScript(text, cwd) };
}

/** A gateway in that folder, asked all the time; `kill` and `stop` end it. */
async function busy(t: TestContext, cwd: string) {
  const gateway = launch({ args: [join(cwd, "dist", "chat-gateway.mjs")], cwd }, []);
  t.after(() => gateway.child.kill("SIGKILL"));
  const url = await within(gateway.address, "the gateway to listen");
  const ending = new AbortController();
  t.after(() => ending.abort()); // or the clients of a test that failed would ask for ever
  const client = async () => {
    while (!ending.signal.aborted) {
      await fetch(`${url}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: "Bearer sk-demo", "content-type": "application/json" },
        body: '{"model":"demo-chat","max_tokens":5,"messages":[{"role":"user","content":"hi"}]}',
      })
        .then((answer) => answer.text())
        .catch(() => undefined);
    }
  };
  const clients = Promise.all([client(), client(), client(), client()]);
  const end = async (signal: "SIGKILL" | "SIGTERM") => {
    if (signal === "SIGTERM") ending.abort();
    if (signal === "SIGTERM") await clients;
    gateway.child.kill(signal);
    await within(gateway.ended, "its end");
    ending.abort();
    await clients;
  };
  return { kill: () => end("SIGKILL"), stop: () => end("SIGTERM") };
}

it("a copy that was made while the gateway ran is restored: the books are right, and go on", async (t) => {
  const { cwd, dir, script } = place();
  const first = await busy(t, cwd);
  await waitFor(() => settledSoFar(dir) > 40, "some requests");
  await script(copy);
  await settled(() => 0, "more requests", 200);
  await first.kill();
  const output = await script(restore);
  assert.match(output, /usage records: \d+ added, 0 changed, 0 removed, \d+ as the spend log has/);
  assert.match(output, /\nproved: \d+ requests settled from [^\n]*\nthe books are right\n$/);
  const restored = usageRecords(dir).length;
  assert.ok(restored > 40);
  const second = await busy(t, cwd);
  await waitFor(() => settledSoFar(dir) > restored + 40, "more requests");
  await second.stop();
  assert.match(await script("node dist/chat-gateway.mjs audit"), /\nthe books are right\n$/);
  assertEach(dir);
});

it("a lost cursor, a lost usage folder, and usage records that are older than the spend log", async (t) => {
  const { cwd, dir, script } = place();
  const first = await busy(t, cwd);
  await waitFor(() => usageCount(dir) > 40, "some records");
  // The gateway goes on meanwhile: first what says how much of the records counts, then the
  // records, which only grow.
  const older = join(cwd, "older");
  mkdirSync(older);
  const months = readdirSync(join(dir, "usage")).filter((name) => name.endsWith(".jsonl"));
  for (const name of ["cursor.json", ...months])
    copyFileSync(join(dir, "usage", name), join(older, name));
  await waitFor(() => settledSoFar(dir) > 80, "some requests");
  await first.stop();
  const audit = "node dist/chat-gateway.mjs audit";
  rmSync(join(dir, "usage", "cursor.json"));
  await assert.rejects(
    script(audit),
    /cursor\.json is not there, although there are usage records/,
  );
  await script("node dist/chat-gateway.mjs books rebuild");
  assert.match(await script(audit), /the books are right/);
  rmSync(join(dir, "usage"), { recursive: true });
  assert.match(await script(audit), /the books are right/);
  assertEach(dir);
  rmSync(join(dir, "usage"), { recursive: true });
  copyDir(older, join(dir, "usage"));
  assert.match(await script(audit), /the books are right/);
  assertEach(dir);
});
