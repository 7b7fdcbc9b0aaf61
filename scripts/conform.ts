// Runs the conformance suite against a gateway that it starts itself. `GATEWAY` and `SUITE` are
// dist/chat-gateway.mjs and dist/conformance.mjs, `CORE` is dist/chat-gateway-core.mjs:
//
//   node --import tsx scripts/conform.ts GATEWAY SUITE        all of it, nothing skipped
//   node --import tsx scripts/conform.ts GATEWAY SUITE CORE   the level spec, of the reference edition
//
// The reference edition uses a key made by `keys create`. It has no demo model, so its provider is
// the gateway with the demo configuration. scripts/reconcile.ts --core judges its bill. Exits with
// 1 if a check fails or is skipped.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import demo from "../src/extensions/providers/demo/demo.json" with { type: "json" };
import { folder } from "../test/support/folder.ts";
import { launch, runToEnd, type Program, type Running } from "../test/support/program.ts";
import { within } from "../test/support/wait.ts";

const [gateway = "", suite = "", core] = process.argv.slice(2);
const place = folder();
const limits = { rpm: null };
const LIMITED = { key: "sk-limited", rpm: 5 };
const SUITE_MS = 600_000;

const program = (file: string): Program => ({ args: [file], cwd: process.cwd() });

/** Writes a configuration with free ports. Returns its path. */
function configure(name: string, config: object): string {
  const file = join(place, `${name}.json`);
  const data_dir = join(place, name);
  writeFileSync(file, JSON.stringify({ server: { port: 0 }, data_dir, ...config }));
  return file;
}

const running: Running[] = [];
/** Starts a gateway. Resolves with its address. */
function start(file: string, config: string): Promise<string> {
  running.push(launch(program(file), ["--config", config]));
  return within(running.at(-1)!.address, "the gateway to listen");
}

async function conform(address: string, key: string, ...more: readonly string[]): Promise<void> {
  const args = ["--base-url", address, "--key", key, ...more];
  const { code, stdout, stderr } = await runToEnd(program(suite), args, SUITE_MS);
  console.error(stderr.trimEnd());
  console.log(stdout);
  assert.equal(code, 0, "a check failed");
  assert.doesNotMatch(stdout, /^skip/m);
}

async function conformWhole(): Promise<void> {
  // The suite overwrites this file with its own configuration, and the gateway reloads it.
  const file = configure("gateway", {
    apis: ["messages", "responses"], // read at start only
    admin: { port: 0 },
    providers: {},
    models: {},
    aliases: {},
  });
  const address = await start(gateway, file);
  const options = ["--with-provider", "--provider-config", file];
  await conform(address, "sk-demo", ...options).catch((error: Error) => {
    console.error(running[0]!.stderr()); // it also logs every provider error
    throw error;
  });
}

async function conformCore(file: string): Promise<void> {
  const providers = { demo: { dialect: "demo", pace_ms: 0 } };
  const behind = configure("behind", { ...demo, admin: { port: 0 }, providers, limits });
  const base_url = `${await start(gateway, behind)}/v1`;
  const provider = { dialect: "openai", base_url, api_key: "sk-demo" };
  const config = configure("core", {
    providers: { demo: { ...provider, thinking: "thinking" } },
    models: demo.models,
    aliases: demo.aliases,
    keys: [{ account: "limited", ...LIMITED }],
    limits,
  });
  const create = ["keys", "create", "--account", "demo", "--config", config];
  const { stdout } = await runToEnd(program(file), create);
  const address = await start(file, config);
  const limited = ["--limited-key", LIMITED.key, "--limited-rpm", String(LIMITED.rpm)];
  await conform(address, stdout.trim(), "--model", "demo-chat", ...limited, "--level", "spec");
}

try {
  await (core === undefined ? conformWhole() : conformCore(core));
} finally {
  for (const { child, ended } of running) {
    child.kill("SIGKILL");
    await ended;
  }
}
