// Runs a Python script with the Python that has the client libraries.

import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { within } from "../support/wait.ts";
import { PYTHON } from "./lab.ts";

/** How a script ended: its exit code, and what it printed on both streams. */
export interface PythonRun {
  readonly code: number | string | null | undefined;
  readonly output: string;
}

export const scriptAt = (name: string): string => fileURLToPath(new URL(name, import.meta.url));

/** Runs Python to its end, with these arguments; `what` names the run if it takes too long. */
export function runPython(what: string, args: readonly string[]): Promise<PythonRun> {
  const env = { ...process.env, PYTHONIOENCODING: "utf-8", PYTHONDONTWRITEBYTECODE: "1" };
  const running = new Promise<PythonRun>((resolve) => {
    execFile(PYTHON, args, { env, timeout: 60_000 }, (error, stdout, stderr) =>
      resolve({ code: error ? error.code : 0, output: stdout + stderr }),
    );
  });
  return within(running, what, 70_000);
}
