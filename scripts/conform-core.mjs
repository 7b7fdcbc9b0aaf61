// The level spec of the conformance suite against the reference edition, with a key that `keys create` has made; then its bill, which
// must have a line of each model that the suite asks: `node scripts/conform-core.mjs dist/chat-gateway-core.mjs dist/conformance.mjs
// dist/chat-gateway.mjs`. The edition has no demo model, so a whole gateway with one stands behind it as its provider. Exit 1 if a check
// fails.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { configure, folder, start } from "./built.mjs";

const [coreFile, suiteFile, gatewayFile] = process.argv.slice(2);
const KEY = "sk-conformance";
const LIMITED = { key: "sk-limited", rpm: 5 };
const supports = ["tools", "json_object", "json_schema", "logprobs"];

/** Runs a command of the edition with the configuration of its gateway: what it prints. */
const command = (...words) =>
  execFileSync(process.execPath, [coreFile, ...words, "--config", join(folder, "core.json")], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "inherit"],
  });

/** Asks every 50 ms, for 10 seconds, whether something is so. */
async function until(isSo) {
  for (let asked = 0; asked < 200; asked += 1) {
    if (await isSo()) return;
    await pause(50);
  }
  assert.fail("the gateway does not know the created key");
}

const run = (file, name, config) =>
  start([process.execPath, file, "--config", configure(name, config)]);

const behind = await run(gatewayFile, "behind", {
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
const model = { provider: "behind", supports, context_tokens: 32_768, max_output_tokens: 4_096 };
const core = await run(coreFile, "core", {
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
const key = command("keys", "create", "--account", "demo").trim();
await until(async () => {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const init = { method: "POST", headers, body: "{}" };
  return (await fetch(`${core.address}/v1/chat/completions`, init)).status !== 401;
});
const args = ["--base-url", core.address, "--key", key, "--model", "demo-chat"];
args.push("--limited-key", LIMITED.key, "--limited-rpm", String(LIMITED.rpm));
args.push("--level", "spec");
const suite = spawn(process.execPath, [suiteFile, ...args], { stdio: "inherit" });
const [code] = await once(suite, "close");
assert.equal(code, 0, "a check failed");
command("usage", "sync", "--once");
const month = new Date().toISOString().slice(0, 7);
const bill = command("billing", "statement", "--account", "demo", "--month", month, "--json");
const { lines } = JSON.parse(bill);
assert.ok(
  lines.some(
    ({ model, requests, cost }) => model === "demo-chat" && requests > 50 && Number(cost) > 0,
  ),
  bill,
);
for (const { end } of [behind, core]) end();
