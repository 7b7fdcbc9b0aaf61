// A target of the benchmark: a process that takes chat requests, on a core of its own. How it is
// started, found to listen, and stopped.

import { spawnSync } from "node:child_process";
import { lstatSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { launch, type Running } from "../../test/support/program.ts";
import type { Callee } from "./body.ts";
import { answered } from "./replies.ts";

/** A running process that takes chat requests. */
export interface Target extends Callee {
  readonly name: string;
  readonly model: string;
  readonly pid: number;
  /** Milliseconds from its start to its first answer. */
  readonly startMs: number;
  /** Ends the process, if it has not ended yet. */
  readonly stop: () => Promise<void>;
}

/** Something that can be started as a target. */
export interface Kind {
  readonly name: string;
  /** What it does for each request here, in words, for the list below the table. */
  readonly switchedOn: string;
  /** What has to be on the disk beside the runtime it is written for; absent: it is no gateway. */
  readonly diskBytes: number | undefined;
  /** Whether the benchmark goes on without it if it fails. */
  readonly isPeer: boolean;
  readonly start: (upstream: string) => Promise<Target>;
}

/** Whether targets can be kept on a core of their own. */
export const pinned = spawnSync("taskset", ["-V"]).status === 0;
/** What Node needs to run this folder's sources. */
export const TYPESCRIPT = ["--import", "tsx"];

/** How a chat request is sent. */
export const CALL: Pick<Target, "path" | "model" | "headers"> = {
  path: "/v1/chat/completions",
  model: "m",
  headers: { "content-type": "application/json" },
};

interface Start {
  readonly name: string;
  /** What a chat request to it has that is not as in CALL. */
  readonly call?: Partial<typeof CALL>;
  /** The port that its process is told; absent: the process says which one it has. */
  readonly port?: number;
  readonly command: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
}

/** Kills a process and waits until it has ended. */
export async function stop({ child, ended }: Running): Promise<void> {
  child.kill("SIGKILL");
  await ended;
}

/** Starts a target on one core, away from the load, and waits until it answers. */
export async function started(start: Start): Promise<Target> {
  const { name, port, env } = start;
  const call = { ...CALL, ...start.call };
  const began = performance.now();
  const command = pinned ? ["taskset", "-c", "0", ...start.command] : start.command;
  const program = { command, args: [], cwd: process.cwd() };
  const running = launch(program, [], { env: { ...process.env, ...env }, heard: "nobody" });
  const { child, stdout, stderr } = running;
  const end = () => stop(running);
  try {
    const url = port === undefined ? await running.address : `http://127.0.0.1:${port}`;
    const isAlive = () => child.exitCode === null && child.signalCode === null;
    await answered({ name, url, ...call }, isAlive).catch((error: Error) => {
      throw new Error(`${error.message}; it last said: ${(stdout() + stderr()).slice(-300)}`);
    });
    const startMs = performance.now() - began;
    return { name, url, ...call, pid: child.pid!, startMs, stop: end };
  } catch (error) {
    await end();
    throw error;
  }
}

/** Bytes of a file, or of all files of a folder. What a symbolic link leads to does not count. */
export function sizeOf(path: string): number {
  const found = lstatSync(path);
  if (found.isSymbolicLink()) return 0;
  if (!found.isDirectory()) return found.size;
  return readdirSync(path).reduce((sum, name) => sum + sizeOf(join(path, name)), 0);
}
