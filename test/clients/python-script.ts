// Runs a Python script with the Python that has the client libraries.

import { fileURLToPath } from "node:url";
import { launch } from "../support/program.ts";
import { within } from "../support/wait.ts";
import { PYTHON } from "./lab.ts";

export const scriptAt = (name: string): string => fileURLToPath(new URL(name, import.meta.url));

/**
 * Runs Python to its end, with these arguments: its exit code, and what it printed on both streams.
 * `what` names the run if it takes too long.
 */
export async function runPython(what: string, args: readonly string[]) {
  const env = { PYTHONIOENCODING: "utf-8", PYTHONDONTWRITEBYTECODE: "1" };
  const { child, ended } = launch({ args: [], cwd: ".", command: [PYTHON] }, args, { env });
  const { code, stdout, stderr } = await within(ended, what).finally(() => child.kill("SIGKILL"));
  return { code, output: stdout + stderr };
}
