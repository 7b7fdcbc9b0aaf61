// The conformance suite against a gateway of its own, both as built files, nothing skipped: `node scripts/conform.mjs
// dist/chat-gateway.mjs dist/conformance.mjs`. Exit 1 if a check fails or was not made.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { configure, folder, start } from "./built.mjs";

const [gatewayFile, suiteFile] = process.argv.slice(2);
// The suite puts its own configuration in the place of this one, and the gateway takes it over.
const file = configure("gateway", {
  apis: ["messages", "responses"], // is read at start
  admin: { port: 0 },
  data_dir: join(folder, "data"),
  providers: {},
  models: {},
  aliases: {},
});
const command = [process.execPath, gatewayFile, "--config", file];
const { child, address, end } = await start(command, { stdio: ["ignore", "pipe", "pipe"] });
let diagnostics = ""; // of every fault of the provider: shown only if something is wrong
child.stderr.setEncoding("utf8").on("data", (text) => (diagnostics += text));
const exited = once(child, "exit");
const args = ["--base-url", address, "--key", "sk-demo", "--with-provider"];
const suite = spawn(process.execPath, [suiteFile, ...args, "--provider-config", file], {
  stdio: ["ignore", "pipe", "inherit"],
});
let scorecard = "";
suite.stdout.setEncoding("utf8").on("data", (text) => (scorecard += text));
const [code] = await once(suite, "close");
console.log(scorecard);
if (code !== 0) console.error(diagnostics);
assert.equal(code, 0, "a check failed");
assert.doesNotMatch(scorecard, /^skip/m);
end();
await exited;
