// Makes one call to the gateway and one to its console, in an empty folder. Exits with 1 on
// failure.
//
//   node --import tsx scripts/smoke.ts FILE.mjs   the built file, run by this Node
//   node --import tsx scripts/smoke.ts FILE.tgz   the package, run by npx, which is given no
//                                                 registry to ask
//   node --import tsx scripts/smoke.ts FILE       the single executable, which runs by itself

import assert from "node:assert/strict";
import { copyFileSync } from "node:fs";
import { basename, join } from "node:path";
import { folder } from "../test/support/folder.ts";
import { launch, runToEnd, type Program } from "../test/support/program.ts";
import { within } from "../test/support/wait.ts";

const [file = ""] = process.argv.slice(2);
const cwd = folder();
const copy = join(cwd, basename(file));
copyFileSync(file, copy);
const isPackage = copy.endsWith(".tgz");
const NPX_ENVIRONMENT = { HOME: cwd, npm_config_registry: "http://127.0.0.1:9" };

function programOf(path: string): Program {
  // The command must start with "./": npx takes an absolute path for the name of a command.
  if (isPackage) return { command: ["npx", "--yes"], args: [`./${basename(path)}`], cwd };
  return path.endsWith(".mjs") ? { args: [path], cwd } : { command: [path], args: [], cwd };
}

const program = programOf(copy);
if (!isPackage) assert.match((await runToEnd(program, ["--version"])).stdout, /^chat-gateway /);
// A process group of its own, so that end() also reaches the children that npx starts.
const { child, ...gateway } = launch(program, ["--port", "0"], {
  detached: true,
  env: isPackage ? NPX_ENVIRONMENT : {},
});
const end = (signal: NodeJS.Signals): boolean => process.kill(-child.pid!, signal);
const killAtExit = (): boolean => end("SIGKILL");
process.once("exit", killAtExit);
const address = await within(gateway.address, "the gateway to listen", 120_000);
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
const reply = (await response.json()) as Record<string, any>;
assert.equal(response.status, 200);
assert.equal(response.headers.get("x-request-id"), "smoke");
assert.equal(reply["model"], "demo-chat");
assert.match(reply["choices"][0].message.content, /Say hello/);
assert.ok(
  gateway.admin(),
  `the first line names the admin listener, for which 127.0.0.1:8081 must be free: ${gateway.stdout()}`,
);
const page = await (await fetch(gateway.admin())).text();
assert.ok(page.startsWith("<!doctype html>") && page.endsWith("</html>\n"), "the console is in it");
end("SIGTERM");
const { code } = await within(gateway.ended, "the end after SIGTERM");
process.off("exit", killAtExit);
// SIGTERM ends npx itself too, so only the others report how the gateway ended.
if (!isPackage) assert.equal(code, 0, "SIGTERM ends it cleanly");
console.log(`smoke: ${file} answers`);
