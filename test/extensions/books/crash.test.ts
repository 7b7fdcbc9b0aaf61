// Kills with SIGKILL: the real process dies at random moments under load, and the books are right
// nevertheless.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  appendFileSync,
  cpSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { it, type TestContext } from "node:test";
import { crash, crashConfig, readSpend } from "../../support/crash.ts";
import { LONG } from "../../support/long.ts";
import { bundled, launch, runToEnd, type Program } from "../../support/program.ts";
import { writeSpend } from "../../support/spend.ts";
import { waitFor, within } from "../../support/wait.ts";

const KILLS = LONG ? 25 : 6;

it(`two gateways on one data_dir, ${KILLS} kills: nothing lost, nothing doubled, every sum equal`, async (t) => {
  const seed = Number(process.env["CRASH_SEED"] ?? Date.now() % 1_000_000);
  const folder = mkdtempSync(join(tmpdir(), "crash-"));
  const { figures, violations } = await crash({
    program: bundled(folder),
    folder,
    kills: KILLS,
    seed,
  });
  t.diagnostic(`seed ${seed}: ${JSON.stringify(figures)}`);
  assert.deepEqual(
    violations.slice(0, 10),
    [],
    `${violations.length} violations with CRASH_SEED=${seed}; the books are in ${folder}`,
  );
  assert.ok(figures["killed while asking"]! > 0, JSON.stringify(figures));
  rmSync(folder, { recursive: true });
});

function emptyFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "crash-"));
  t.after(() => rmSync(folder, { recursive: true }));
  return folder;
}

/** A configuration, and an empty data_dir, in a folder of their own. */
function place(
  folder: string,
  provider = "http://127.0.0.1:9",
): { config: string; dataDir: string } {
  const [config, dataDir] = [join(folder, "gateway.json"), join(folder, "data")];
  mkdirSync(dataDir);
  writeFileSync(config, JSON.stringify(crashConfig({ dataDir, provider, syncMs: 1 })));
  return { config, dataDir };
}

function start(t: TestContext, program: Program, config: string) {
  const running = launch(program, ["serve", "--config", config]);
  t.after(async () => {
    running.child.kill("SIGKILL");
    await running.ended;
  });
  return {
    ...running,
    address: within(running.address, "the line that says where it listens"),
  };
}

/**
 * A provider that never answers; `asked` resolves when it has been asked, and so when that is in
 * the spend log.
 */
async function silentProvider(t: TestContext): Promise<{ url: string; asked: Promise<unknown> }> {
  const server = http.createServer(() => undefined);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked: within(once(server, "request"), "the provider to be asked"),
  };
}

/** A request that is not waited for. */
const ask = (url: string): void => {
  fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: "Bearer sk-crash-beta", "content-type": "application/json" },
    body: JSON.stringify({ model: "plain", messages: [{ role: "user", content: "Hello." }] }),
  }).catch(() => undefined);
};

/** The one request that died with its gateway is settled, and the books are right. */
async function assertInterrupted(program: Program, config: string, dataDir: string): Promise<void> {
  assert.equal((await runToEnd(program, ["usage", "sync", "--once", "--config", config])).code, 0);
  const { entries, violations } = readSpend([dataDir]);
  assert.deepEqual(
    [violations, entries.map(({ settle }) => settle["status"])],
    [[], ["interrupted"]],
  );
  const audit = await runToEnd(program, ["audit", "--config", config]);
  assert.equal(audit.code, 0, audit.stdout);
}

/** What a gateway leaves behind that is killed while a request waits for its provider. */
async function killedInARequest(t: TestContext, folder: string) {
  const provider = await silentProvider(t);
  const made = place(folder, provider.url);
  const { child, address, ended } = start(t, bundled(folder), made.config);
  ask(await address);
  await provider.asked;
  child.kill("SIGKILL");
  await ended;
  return made;
}

it("a dead gateway's data_dir, copied to another place: plain files tell all that is needed", async (t) => {
  const folder = emptyFolder(t);
  const { dataDir } = await killedInARequest(t, folder);
  const other = emptyFolder(t);
  const moved = place(other);
  // What cp, tar and rsync do with what is neither a file nor a folder.
  cpSync(dataDir, moved.dataDir, {
    recursive: true,
    filter: (path) => lstatSync(path).isFile() || lstatSync(path).isDirectory(),
  });
  await assertInterrupted(bundled(other), moved.config, moved.dataDir);
});

it("a last line that was cut short with its process", async (t) => {
  const folder = emptyFolder(t);
  const { config, dataDir } = await killedInARequest(t, folder);
  const [segment = ""] = readdirSync(join(dataDir, "spend")).filter((name) =>
    name.endsWith(".jsonl"),
  );
  appendFileSync(join(dataDir, "spend", segment), '{"type":"settle","spend_id":"sp_');
  await assertInterrupted(bundled(folder), config, dataDir);
});

const canInject =
  spawnSync("strace", [
    "-D",
    "-o",
    "/dev/null",
    "-e",
    "inject=listen:delay_enter=1",
    process.execPath,
    "-e",
    "0",
  ]).status === 0;

it("a gateway that the system holds up between two calls, while another process syncs: it is not taken for dead", {
  skip: !canInject && "strace is not there, or not allowed",
}, async (t) => {
  const folder = emptyFolder(t);
  const provider = await silentProvider(t);
  const { config, dataDir } = place(folder, provider.url);
  const program = bundled(folder);
  // Each listen() of the gateway begins half a second late, so that its sockets are there before
  // they answer.
  const slow = {
    ...program,
    command: [
      "strace",
      "-D",
      "-f",
      "-o",
      "/dev/null",
      "-e",
      "trace=listen",
      "-e",
      "inject=listen:delay_enter=700000",
      process.execPath,
    ],
  };
  const { child, address, ended } = start(t, slow, config);
  const spend = join(dataDir, "spend");
  await waitFor(
    () => readdirSync(dataDir).includes("spend") && readdirSync(spend).length > 0,
    "the gateway to begin a segment",
  );
  assert.equal((await runToEnd(program, ["usage", "sync", "--once", "--config", config])).code, 0);
  ask(await address);
  await provider.asked;
  const audit = await runToEnd(program, ["audit", "--json", "--config", config]);
  assert.deepEqual([audit.code, JSON.parse(audit.stdout).in_flight], [0, 1], audit.stdout);
  child.kill("SIGKILL");
  await ended;
  await assertInterrupted(program, config, dataDir);
});

it("gateways that come and go without a request, while their books are synced all the time: not a word", async (t) => {
  const folder = emptyFolder(t);
  const { config, dataDir } = place(folder);
  // So that a sync is at work most of the time.
  writeSpend(dataDir, { requests: 300, perSegment: 1 });
  const lifeless = async () => {
    const { child, address, ended } = start(t, bundled(folder), config);
    assert.equal((await fetch(`${await address}/healthz`)).status, 200);
    child.kill("SIGTERM");
    const { code, stderr } = await within(ended, "its end");
    assert.deepEqual([code, stderr], [0, ""]);
  };
  for (let round = 0; round < (LONG ? 3 : 1); round += 1)
    await Promise.all([lifeless(), lifeless()]);
});

it("SIGTERM as soon as it says that it listens: a good end", async (t) => {
  const folder = emptyFolder(t);
  const { config } = place(folder);
  for (let round = 0; round < (LONG ? 3 : 1); round += 1) {
    const { child, address, ended } = start(t, bundled(folder), config);
    await address;
    child.kill("SIGTERM");
    const { code, signal } = await within(ended, "its end");
    assert.deepEqual([code, signal], [0, null]);
  }
});
