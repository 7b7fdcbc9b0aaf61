// The level spec of the conformance suite against the reference edition, with a key that `keys create` has made: `node
// scripts/conform-core.mjs dist/chat-gateway-core.mjs dist/conformance.mjs dist/chat-gateway.mjs`. The edition has no demo model, so a whole
// gateway with the demo configuration stands behind it as its provider. Exit 1 if a check fails. Its bill is for scripts/reconcile.ts with
// --core.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { configure, folder, start } from "./built.mjs";

const [coreFile, suiteFile, gatewayFile] = process.argv.slice(2);
const LIMITED = { key: "sk-limited", rpm: 5 };
const limits = { rpm: null };
const demo = JSON.parse(readFileSync("src/extensions/providers/demo/demo.json", "utf8"));

const file = configure("behind", {
  ...demo,
  admin: { port: 0 },
  data_dir: join(folder, "data"),
  providers: { demo: { dialect: "demo", pace_ms: 0 } },
  limits,
});
const behind = await start([process.execPath, gatewayFile, "--config", file]);
const base_url = `${behind.address}/v1`;
const config = configure("core", {
  data_dir: join(folder, "core"),
  providers: { demo: { dialect: "openai", base_url, api_key: "sk-demo", thinking: "thinking" } },
  models: demo.models,
  aliases: demo.aliases,
  keys: [{ account: "limited", ...LIMITED }],
  limits,
});
const command = [coreFile, "keys", "create", "--account", "demo", "--config", config];
const key = execFileSync(process.execPath, command, { encoding: "utf8" }).trim();
const core = await start([process.execPath, coreFile, "--config", config]);
const args = ["--base-url", core.address, "--key", key, "--model", "demo-chat"];
args.push("--limited-key", LIMITED.key, "--limited-rpm", String(LIMITED.rpm));
args.push("--level", "spec");
const suite = spawn(process.execPath, [suiteFile, ...args], { stdio: "inherit" });
const [code] = await once(suite, "close");
assert.equal(code, 0, "a check failed");
for (const { end } of [behind, core]) end();
