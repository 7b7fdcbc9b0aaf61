// One call to the built file, and a look at its console, alone in an empty folder: `node scripts/smoke.mjs dist/chat-gateway.mjs`, or to a single executable
// (scripts/build-sea.ts), which is run by itself: `node scripts/smoke.mjs dist/chat-gateway`. Exit 1 if it fails.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { createInterface } from "node:readline";

const folder = mkdtempSync(join(tmpdir(), "chat-gateway-"));
const copy = join(folder, basename(process.argv[2]));
copyFileSync(process.argv[2], copy);
const [program, ...args] = copy.endsWith(".mjs") ? [process.execPath, copy] : [copy];
const gateway = spawn(program, [...args, "--port", "0"], {
  cwd: folder,
  env: {},
  stdio: ["ignore", "pipe", "inherit"],
});
const deadline = setTimeout(() => gateway.kill("SIGKILL"), 20_000);
try {
  const [line] = await once(createInterface(gateway.stdout), "line");
  const address = /http:\S+/.exec(line)?.[0];
  assert.ok(address, `the first line names the address: ${line}`);
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
  assert.ok(
    page.startsWith("<!doctype html>") && page.endsWith("</html>\n"),
    "the console is in it",
  );
  gateway.kill("SIGTERM");
  const [code] = await once(gateway, "exit");
  assert.equal(code, 0, "SIGTERM ends it cleanly");
  console.log(`smoke: ${process.argv[2]} answers`);
} finally {
  clearTimeout(deadline);
  gateway.kill("SIGKILL");
  rmSync(folder, { recursive: true });
}
