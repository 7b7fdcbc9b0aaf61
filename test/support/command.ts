// The real command line: the process, its arguments, its output, its exit code.

import assert from "node:assert/strict";
import { spawn, type ChildProcessByStdio } from "node:child_process";
import { once } from "node:events";
import { resolve } from "node:path";
import type { Readable } from "node:stream";
import type { TestContext } from "node:test";
import { folder } from "./folder.ts";
import { quickest, type Ended, type Program } from "./program.ts";
import { waitFor, within } from "./wait.ts";

const PROGRAM = quickest(folder());

/**
 * Several gateways run here at once: all but one find the admin listener's default port taken, and
 * say so.
 */
const withoutPortNotice = (stderr: string) =>
  stderr.replace(/^\{[^\n]*"admin_port_taken"[^\n]*\n/gm, "");

export interface Running {
  readonly child: ChildProcessByStdio<null, Readable, Readable>;
  stdout(): string;
  stderr(): string;
  /** Ended, all of its output read. */
  readonly ended: Promise<Ended>;
  /** The address in the line that says that it listens. */
  address(): Promise<string>;
}

export interface RunOptions {
  readonly cwd?: string;
  readonly env?: Record<string, string>;
  /** At the head of a process group of its own, as a terminal starts it. */
  readonly detached?: boolean;
  /** Another than the quickest by which coverage can be measured. */
  readonly program?: Program;
}

export function run(
  t: TestContext,
  args: readonly string[],
  { cwd = folder(), env = {}, detached = false, program = PROGRAM }: RunOptions = {},
): Running {
  const { PATH = "", NODE_V8_COVERAGE } = process.env;
  const child = spawn(process.execPath, [...program.args, ...args], {
    cwd,
    detached,
    stdio: ["ignore", "pipe", "pipe"],
    // Nothing of the surroundings gets in, but for what coverage needs; warnings about Node itself
    // are not ours. tsx must compile for it what it compiles for the tests (same tsconfig.json), or
    // its coverage cannot be added to theirs.
    env: {
      PATH,
      NODE_NO_WARNINGS: "1",
      TSX_TSCONFIG_PATH: resolve("tsconfig.json"),
      ...(NODE_V8_COVERAGE !== undefined && { NODE_V8_COVERAGE }),
      ...env,
    },
  });
  let stdout = "";
  let stderr = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (stdout += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  const ended = once(child, "close").then(([code, signal]) => ({
    code: code as number | null,
    signal: signal as string | null,
    stdout,
    stderr: withoutPortNotice(stderr),
  }));
  t.after(async () => {
    child.kill("SIGKILL");
    await ended;
  });
  const address = () =>
    waitFor(() => {
      if (child.exitCode !== null) throw new Error(`it ended with ${child.exitCode}: ${stderr}`);
      return /^chat-gateway listens on (\S+) \(.*\)\n/m.exec(stdout)?.[1];
    }, "the line that says where it listens");
  return { child, stdout: () => stdout, stderr: () => withoutPortNotice(stderr), ended, address };
}

/** Runs it to its end. */
export const ended = (
  t: TestContext,
  args: readonly string[],
  options: RunOptions = {},
): Promise<Ended> => within(run(t, args, options).ended, `the end of ${args.join(" ")}`);

/** Its lines but for the empty ones. */
export const lines = (text: string): string[] => text.split("\n").filter((line) => line !== "");

/** What it says when it fails: one line, which begins with its name. */
export function assertOneLine({ stdout, stderr }: Ended, words: RegExp): void {
  assert.equal(stdout, "");
  assert.match(stderr, /^chat-gateway: [^\n]+\n$/, `one line on stderr: ${JSON.stringify(stderr)}`);
  assert.match(stderr, words);
}
