// A built gateway as a process of its own, for the scripts that plain Node of any line runs.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

/** For what the gateways write; removed when this process ends. */
export const folder = mkdtempSync(join(tmpdir(), "chat-gateway-"));
process.once("exit", () => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));

/** Writes a configuration with free ports, and names its file. */
export function configure(name, config) {
  const file = join(folder, `${name}.json`);
  writeFileSync(file, JSON.stringify({ server: { port: 0 }, ...config }));
  return file;
}

/**
 * Starts a gateway: its process, its first line, and the addresses in it. It is killed when this
 * process ends, at the latest after two minutes; with its children, as npx has some.
 */
export async function start([program, ...args], options = {}) {
  const stdio = ["ignore", "pipe", "inherit"];
  const child = spawn(program, args, { detached: true, stdio, ...options });
  const end = (signal = "SIGKILL") => {
    try {
      process.kill(-child.pid, signal);
    } catch (error) {
      if (error.code !== "ESRCH") throw error; // it has ended
    }
  };
  process.once("exit", () => end());
  setTimeout(end, 120_000).unref();
  const [line] = await once(createInterface(child.stdout), "line");
  const address = /http:[^\s)]+/.exec(line)?.[0];
  assert.ok(address, `the first line names the address: ${line}`);
  return { child, line, address, end };
}
