// One call to the gateway, and a look at its console, alone in an empty folder. Exit 1 if it fails.
//
//   node scripts/smoke.mjs FILE.mjs   the built file, run by this Node
//   node scripts/smoke.mjs FILE.tgz   the package, run by npx, which is given no registry to ask
//   node scripts/smoke.mjs FILE       the single executable, which runs by itself

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { copyFileSync } from "node:fs";
import { basename, join } from "node:path";
import { folder, start } from "./built.mjs";

const NPX_ENVIRONMENT = {
  PATH: process.env.PATH,
  HOME: folder,
  npm_config_registry: "http://127.0.0.1:9",
};
const copy = join(folder, basename(process.argv[2]));
copyFileSync(process.argv[2], copy);
const isPackage = copy.endsWith(".tgz");

function commandFor(file) {
  if (isPackage) return ["npx", "--yes", `./${basename(file)}`]; // it takes an absolute path for a command
  return file.endsWith(".mjs") ? [process.execPath, file] : [file];
}

if (!isPackage) {
  const [file, ...args] = commandFor(copy);
  assert.match(execFileSync(file, [...args, "--version"], { encoding: "utf8" }), /^chat-gateway /);
}

const { child, line, address, end } = await start([...commandFor(copy), "--port", "0"], {
  cwd: folder,
  env: isPackage ? NPX_ENVIRONMENT : {},
});
const response = await fetch(`${address}/v1/chat/completions`, {
  method: "POST",
  headers: {
    authorization: "Bearer sk-demo",
    "content-type": "application/json",
    "x-request-id": "smoke",
  },
  body: JSON.stringify({
    model: "auto/chat",
    messages: [{ role: "user", content: "Say hello" }],
  }),
});
const reply = await response.json();
assert.equal(response.status, 200);
assert.equal(response.headers.get("x-request-id"), "smoke");
assert.equal(reply.model, "demo-chat");
assert.match(reply.choices[0].message.content, /Say hello/);
const admin = /admin on (http:[^)]+)\)/.exec(line)?.[1];
assert.ok(
  admin,
  `the first line names the admin listener, for which 127.0.0.1:8081 must be free: ${line}`,
);
const page = await (await fetch(admin)).text();
assert.ok(page.startsWith("<!doctype html>") && page.endsWith("</html>\n"), "the console is in it");
end("SIGTERM");
const [code] = await once(child, "exit");
// npx is ended by the same signal, so only the others report how the gateway ended.
if (!isPackage) assert.equal(code, 0, "SIGTERM ends it cleanly");
console.log(`smoke: ${process.argv[2]} answers`);
