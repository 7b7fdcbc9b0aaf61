// Runs the program's commands as real processes: arguments, output, exit code.

import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { folder } from "./folder.ts";
import { launch, quickest, type Ended, type LaunchOptions, type Program } from "./program.ts";
import { within } from "./wait.ts";

const PROGRAM = quickest(folder());

/** Removes the warning that the admin listener's port is taken: other gateways run meanwhile. */
const withoutPortNotice = (stderr: string) =>
  stderr.replace(/^\{[^\n]*"admin_port_taken"[^\n]*\n/gm, "");

export type Running = ReturnType<typeof run>;

export interface RunOptions extends LaunchOptions {
  readonly cwd?: string;
  /** Absent: the program that starts fastest. */
  readonly program?: Program;
}

export function run(
  t: TestContext,
  args: readonly string[],
  { cwd = folder(), program = PROGRAM, ...options }: RunOptions = {},
) {
  const running = launch({ ...program, cwd }, args, options);
  const { child, stdout, stderr } = running;
  t.after(async () => {
    child.kill("SIGKILL");
    await running.ended;
  });
  return {
    child,
    stdout,
    stderr: () => withoutPortNotice(stderr()),
    ended: running.ended.then((end) => ({ ...end, stderr: withoutPortNotice(end.stderr) })),
    /** Waits for the line that says where the gateway listens. Resolves with the address. */
    address: () => within(running.address, "the line that says where it listens"),
  };
}

/** Runs a command to its end. */
export const ended = (t: TestContext, args: readonly string[], options: RunOptions = {}) =>
  within(run(t, args, options).ended, `the end of ${args.join(" ")}`);

/** The lines of a text that are not empty. */
export const lines = (text: string): string[] => text.split("\n").filter((line) => line !== "");

/** Asserts that a command printed only one line, on stderr, which begins with its name. */
export function assertOneLine({ stdout, stderr }: Ended, words: RegExp): void {
  assert.equal(stdout, "");
  assert.match(stderr, /^chat-gateway: [^\n]+\n$/, `one line on stderr: ${JSON.stringify(stderr)}`);
  assert.match(stderr, words);
}

/** Asserts the same, and the exit code. */
export function assertFails(end: Ended, code: number, words: RegExp): void {
  assertOneLine(end, words);
  assert.equal(end.code, code);
}

/** The standard output of a command. Asserts that it succeeded, and printed nothing on stderr. */
export function outputOf({ code, stdout, stderr }: Ended): string {
  assert.deepEqual([code, stderr], [0, ""]);
  return stdout;
}
