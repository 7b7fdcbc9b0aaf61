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
const file = join(folder, "gateway.json");
// The suite puts its own configuration in the place of this one, and the gateway takes it over.
const config = {
  apis: ["messages", "responses"], // is read at start
  server: { port: 0 },
  admin: { port: 0 },
  data_dir: join(folder, "data"),
  providers: {},
  models: {},
  aliases: {},
};
writeFileSync(file, JSON.stringify(config));

const gateway = spawn(process.execPath, [gatewayFile, "--config", file], {
  stdio: ["ignore", "pipe", "pipe"],
});
let diagnostics = ""; // of every fault of the provider: shown only if something is wrong
gateway.stderr.setEncoding("utf8").on("data", (text) => (diagnostics += text));
const exited = once(gateway, "exit");
const deadline = setTimeout(() => gateway.kill("SIGKILL"), 120_000);
try {
  const lines = createInterface(gateway.stdout);
  const [line] = await once(lines, "line");
  const address = /http:\S+/.exec(line)?.[0];
  assert.ok(address, `the first line names the address: ${line}`);
  const args = [
    "--base-url",
    address,
    "--key",
    "sk-demo",
    "--with-provider",
    "--provider-config",
    file,
  ];
  const suite = spawn(process.execPath, [suiteFile, ...args], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let scorecard = "";
  suite.stdout.setEncoding("utf8").on("data", (text) => (scorecard += text));
  const [code] = await once(suite, "close");
  console.log(scorecard);
  if (code !== 0) console.error(diagnostics);
  assert.equal(code, 0, "a check failed");
  assert.doesNotMatch(scorecard, /^skip/m);
} finally {
  clearTimeout(deadline);
  gateway.kill("SIGKILL");
  await exited;
  rmSync(folder, { recursive: true });
}
