// Runs lines of a shell that a reader copies from the README or the manual.

import type { TestContext } from "node:test";
import { folder } from "../support/folder.ts";
import { startShell } from "../support/readme.ts";

/**
 * Runs lines of bash in a folder, with a new home and nothing else of these surroundings but PATH.
 * Returns how they ended, and what they printed.
 */
export async function runLines(t: TestContext, lines: string, cwd: string, env: object) {
  const { PATH } = process.env;
  const shell = startShell(lines, { cwd, env: { PATH, HOME: folder(), ...env } });
  t.after(() => shell.child.kill("SIGKILL"));
  const code = await shell.ended();
  return { code, output: shell.output().trim() };
}
