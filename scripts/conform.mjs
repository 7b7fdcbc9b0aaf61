// The conformance suite against a gateway of its own, both as built files, nothing skipped: `node scripts/conform.mjs
// dist/chat-gateway.mjs dist/conformance.mjs`. Exit 1 if a check fails or was not made.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

const [gatewayFile, suiteFile] = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), "chat-gateway-"));
const supports = ["tools", "json_object", "json_schema", "logprobs"];
const model = { provider: "demo", supports, context_tokens: 32768, max_output_tokens: 4096, quality_score: 50, price: { input_cache_miss: 0.1, output: 0.2 } };
const config = {
  server: { port: 0 }, admin: { port: 0 }, data_dir: join(folder, "data"), limits: { rpm: null },
  providers: { demo: { dialect: "demo", pace_ms: 0 } },
  models: { "demo-chat": model, "demo-reasoner": { ...model, quality_score: 40, reasoning: true, reasoning_score: 50 } },
  aliases: { "auto/reasoning": { policy: "reasoning" }, "auto/chat": { policy: "value" } },
  keys: [{ account: "demo", key: "sk-demo" }, { account: "limited", key: "sk-limited", rpm: 3 }],
};
writeFileSync(join(folder, "gateway.json"), JSON.stringify(config));

const gateway = spawn(process.execPath, [gatewayFile, "--config", join(folder, "gateway.json")], { stdio: ["ignore", "pipe", "inherit"] });
const exited = once(gateway, "exit");
const deadline = setTimeout(() => gateway.kill("SIGKILL"), 120_000);
try {
  const lines = createInterface(gateway.stdout);
  const [line] = await once(lines, "line");
  const address = /http:\S+/.exec(line)?.[0];
  assert.ok(address, `the first line names the address: ${line}`);
  const args = ["--base-url", address, "--key", "sk-demo", "--model", "demo-chat", "--limited-key", "sk-limited", "--limited-rpm", "3"];
  const suite = spawn(process.execPath, [suiteFile, ...args], { stdio: ["ignore", "pipe", "inherit"] });
  let scorecard = "";
  suite.stdout.setEncoding("utf8").on("data", (text) => (scorecard += text));
  const [code] = await once(suite, "close");
  console.log(scorecard);
  assert.equal(code, 0, "a check failed");
  assert.doesNotMatch(scorecard, /^skip/m);
} finally {
  clearTimeout(deadline);
  gateway.kill("SIGKILL");
  await exited;
  rmSync(folder, { recursive: true });
}
