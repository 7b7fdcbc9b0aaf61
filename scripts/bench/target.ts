// A target of the benchmark: a process that takes chat requests, on a core of its own. How it is
// started, found to listen, and stopped.

import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { lstatSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Callee } from "./body.ts";
import { answered } from "./replies.ts";

/** A running process that takes chat requests. */
export interface Target extends Callee {
  readonly name: string;
  readonly model: string;
  readonly pid: number;
  /** Milliseconds from its start to its first answer. */
  readonly startMs: number;
  /** Where its gateway.json and its data are, if it has any. */
  readonly folder?: string | undefined;
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

/** Runs a command on one core, away from the load. */
function run(command: readonly string[], env: NodeJS.ProcessEnv = {}): ChildProcess {
  const [file, ...args] = pinned ? ["taskset", "-c", "0", ...command] : command;
  return spawn(file!, args, { stdio: ["ignore", "pipe", "pipe"], env: { ...process.env, ...env } });
}

/** Kills a process and waits until it has ended. */
export async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const closed = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGKILL");
  await closed;
}

/**
 * Hears each line that a process writes; absent: its errors are passed on, and the rest is nobody's
 * business.
 */
export interface Ears {
  readonly out: (line: string) => void;
  readonly err: (line: string) => void;
}

/** The address that a process says it listens on. */
export function addressOf(child: ChildProcess, ears?: Ears): Promise<string> {
  if (ears) createInterface(child.stderr!).on("line", ears.err);
  else child.stderr!.pipe(process.stderr);
  return new Promise((resolve, reject) => {
    const lines = createInterface(child.stdout!).on("line", (line) => {
      const url = /listens on (http:[^\s;)]+)/.exec(line)?.[1];
      if (url) resolve(url);
      ears?.out(line);
      if (!url || ears) return;
      lines.close();
      child.stdout!.resume();
    });
    lines.once("close", () => reject(new Error("a process ended before it listened")));
  });
}

interface Start {
  readonly name: string;
  /** How a chat request is sent to it. */
  readonly call: Pick<Target, "path" | "model" | "headers">;
  /** The port that its process is told; absent: the process says which one it has. */
  readonly port?: number;
  readonly command: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
  /** Removed when the target is stopped. */
  readonly folder?: string;
  readonly ears?: Ears | undefined;
}

/** Reads what a process writes, and returns a function that gives its last line. */
function lastLineOf(child: ChildProcess): () => string {
  let last = "";
  for (const stream of [child.stdout!, child.stderr!])
    createInterface(stream).on("line", (line) => {
      if (line.trim() !== "") last = line.trim();
    });
  return () => last.slice(0, 300);
}

/** Starts a target and waits until it answers. */
export async function started(start: Start): Promise<Target> {
  const { name, call, port, command, env, folder, ears } = start;
  const began = performance.now();
  const child = run(command, env);
  const end = async () => {
    await stop(child);
    if (folder) rmSync(folder, { recursive: true, force: true });
  };
  try {
    const lastLine = port === undefined ? () => "" : lastLineOf(child);
    const url = port === undefined ? await addressOf(child, ears) : `http://127.0.0.1:${port}`;
    const isAlive = () => child.exitCode === null && child.signalCode === null;
    await answered({ name, url, ...call }, isAlive).catch((error: Error) => {
      throw new Error(`${error.message}; it last said: ${lastLine() || "nothing"}`);
    });
    const startMs = performance.now() - began;
    return { name, url, ...call, pid: child.pid!, startMs, folder, stop: end };
  } catch (error) {
    await end();
    throw error;
  }
}

export const JSON_TYPE = { "content-type": "application/json" };

/** A new folder for a target's configuration and data. */
export const scratch = () => mkdtempSync(join(tmpdir(), "bench-"));

/** Bytes of a file, or of all files of a folder. What a symbolic link leads to does not count. */
export function sizeOf(path: string): number {
  const found = lstatSync(path);
  if (found.isSymbolicLink()) return 0;
  if (!found.isDirectory()) return found.size;
  return readdirSync(path).reduce((sum, name) => sum + sizeOf(join(path, name)), 0);
}
