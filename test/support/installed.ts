// Programs and packages that are installed beside the project or not: where they are looked for, what
// is skipped without them, and the end of a server that was started.

import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { delimiter, join, resolve } from "node:path";

/** Where the packages of clients are installed: what uses them is run there. */
export const CLIENTS_FOLDER = resolve("test/clients");

/** What a package there exports. Undefined: it is not installed. */
export function installedClient(name: string): any {
  try {
    return createRequire(join(CLIENTS_FOLDER, "package.json"))(name);
  } catch {
    return undefined;
  }
}

/** The folders in which programs are looked for. */
export const pathFolders = (process.env["PATH"] ?? "").split(delimiter);
/** The first of these files that is there. */
export const firstOf = (paths: readonly string[]): string | undefined => paths.find(existsSync);

/** Why something cannot be tried here. False: nothing is missing. Where it is `demanded`: an error. */
export function skipWithout(missing: readonly string[], demanded: string): false | string {
  if (missing.length === 0) return false;
  if (process.env[demanded] === "1") throw new Error(missing.join("; "));
  return missing.join("; ");
}

/** Ends a process, unless it has ended. */
export async function endServer(child: ChildProcess | undefined, signal: NodeJS.Signals) {
  if (!child || child.exitCode !== null || child.signalCode !== null) return;
  child.kill(signal);
  await once(child, "exit");
}
