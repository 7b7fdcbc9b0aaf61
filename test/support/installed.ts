// Finds programs and packages that may be installed beside the project, skips tests without them,
// and stops servers.

import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { delimiter, join, resolve } from "node:path";

/** The folder with the packages of clients. Programs that need these packages run there. */
export const CLIENTS_FOLDER = resolve("test/clients");

/** The exports of a package in CLIENTS_FOLDER. Undefined: it is not installed. */
export function installedClient(name: string): any {
  try {
    return createRequire(join(CLIENTS_FOLDER, "package.json"))(name);
  } catch {
    return undefined;
  }
}

/** The folders in which programs are searched for. */
export const pathFolders = (process.env["PATH"] ?? "").split(delimiter);
/** The first of these files that exists. */
export const firstOf = (paths: readonly string[]): string | undefined => paths.find(existsSync);

/** Why a test is skipped. False: it is not. Throws instead if the variable `demanded` is 1. */
export function skipWithout(missing: readonly string[], demanded: string): false | string {
  if (missing.length === 0) return false;
  if (process.env[demanded] === "1") throw new Error(missing.join("; "));
  return missing.join("; ");
}

/** Sends a signal to a process unless it has ended, and waits for its end. */
export async function endServer(child: ChildProcess | undefined, signal: NodeJS.Signals) {
  if (!child || child.exitCode !== null || child.signalCode !== null) return;
  child.kill(signal);
  await once(child, "exit");
}
