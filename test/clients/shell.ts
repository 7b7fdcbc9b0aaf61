// Runs lines of a shell that a reader copies from the README or the manual.

import { spawn } from "node:child_process";
import type { TestContext } from "node:test";
import { folder } from "../support/folder.ts";
import { within } from "../support/wait.ts";

/**
 * Runs lines of bash in a folder, with a new home and nothing else of these surroundings but PATH.
 * Returns how they ended, and what they printed.
 */
export async function runLines(t: TestContext, lines: string, cwd: string, env: object) {
  const { PATH } = process.env;
  const child = spawn("bash", ["-euo", "pipefail", "-c", lines], {
    cwd,
    stdio: ["ignore", "pipe", "pipe"],
    env: { PATH, HOME: folder(), ...env },
  });
  t.after(() => child.kill("SIGKILL"));
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (data: Buffer) => (output += data.toString()));
  const closed = new Promise((resolve) => child.once("close", resolve));
  const code = await within(closed, `the end of: ${lines}`, 120_000);
  return { code, output: output.trim() };
}
