// The level spec of the conformance suite against the reference edition, with a key that `keys create` has made: `node
// scripts/conform-core.mjs dist/chat-gateway-core.mjs dist/conformance.mjs dist/chat-gateway.mjs`. The edition has no demo model, so a whole
// gateway with one stands behind it as its provider. Exit 1 if a check fails. Its bill is for scripts/reconcile.ts with --core.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { configure, folder, start } from "./built.mjs";

const [coreFile, suiteFile, gatewayFile] = process.argv.slice(2);
const KEY = "sk-conformance";
const LIMITED = { key: "sk-limited", rpm: 5 };
const supports = ["tools", "json_object", "json_schema", "logprobs"];

const file = configure("behind", {
  admin: { port: 0 },
  data_dir: join(folder, "data"),
  providers: { demo: { dialect: "demo", pace_ms: 0 } },
  models: {
    plain: { provider: "demo", supports },
    thinking: { provider: "demo", supports, reasoning: true },
  },
  keys: [{ account: "core", key: KEY }],
  limits: { rpm: null },
});
const behind = await start([process.execPath, gatewayFile, "--config", file]);
const model = { provider: "behind", supports, context_tokens: 32_768, max_output_tokens: 4_096 };
const config = configure("core", {
  data_dir: join(folder, "core"),
  providers: {
    behind: {
      dialect: "openai",
      base_url: `${behind.address}/v1`,
      api_key: KEY,
      thinking: "thinking",
    },
  },
  models: {
    "demo-chat": {
      ...model,
      upstream_model: "plain",
      quality_score: 50,
      price: { input_cache_miss: 0.1, output: 0.2 },
    },
    "demo-reasoner": {
      ...model,
      upstream_model: "thinking",
      reasoning: true,
      reasoning_score: 50,
      quality_score: 40,
      price: { input_cache_miss: 0.5, output: 1 },
    },
  },
  aliases: { "auto/reasoning": { policy: "reasoning" }, "auto/chat": { policy: "value" } },
  keys: [{ account: "limited", ...LIMITED }],
  limits: { rpm: null },
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
