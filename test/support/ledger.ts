// A gateway with the demo model whose books are looked at: requests in number, and what the books
// hold afterwards.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, lstatSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { configFile, settles, usageRecords } from "./books.ts";
import { ended } from "./command.ts";
import { demo, startGateway, user, type RunningGateway } from "./gateway.ts";
import type { Ended } from "./program.ts";
import { runHere } from "./run-here.ts";
import { until, within } from "./wait.ts";

export interface Run {
  readonly gw: RunningGateway;
  /** Asks so many times, and waits until nothing waits to be copied. */
  ask(times: number): Promise<void>;
  /** What /status says of the usage sync. */
  usage(): Promise<{ fault: string | null; lag_seconds: number | null }>;
  stop(): Promise<void>;
}

const settings = (dir: string, over: object) =>
  demo({ data_dir: dir, usage: { sync_ms: 20 }, ...over });

export async function serve(
  t: TestContext,
  dir: string,
  over: object = {},
  deps: object = {},
): Promise<Run> {
  const gw = await startGateway(t, settings(dir, over), deps);
  const usage = async () => {
    const status = await fetch(`${gw.gateway.adminAddress()}/status`);
    return ((await status.json()) as any).usage;
  };
  return {
    gw,
    usage,
    async ask(times) {
      const asked = Date.now();
      for (let done = 0; done < times; done += 10) {
        const some = Array.from({ length: Math.min(10, times - done) }, async () => {
          const answer = await gw.chat(
            { model: "demo-chat", max_tokens: 1, messages: user("hi") },
            { authorization: "Bearer sk-demo" },
          );
          assert.equal(answer.status, 200, await answer.text());
        });
        await Promise.all(some);
      }
      const since = Date.now();
      await until(async () => {
        const looked = Date.now(); // before the lag is told: this process may stand still after it
        return ((await usage()).lag_seconds ?? Infinity) * 1_000 < looked - since;
      }, `all that was asked since ${asked} to be copied, or said not to be`);
    },
    stop: () => within(gw.gateway.close(0), "the gateway to close"),
  };
}

/** One life of a gateway. */
export async function live(
  t: TestContext,
  dir: string,
  times: number,
  over: object = {},
): Promise<Run> {
  const run = await serve(t, dir, over);
  await run.ask(times);
  await run.stop();
  return run;
}

/** What cp -R makes of a data_dir: sockets are no files. */
export const copyDir = (from: string, to: string): void =>
  cpSync(from, to, {
    recursive: true,
    preserveTimestamps: true,
    filter: (path) => lstatSync(path).isFile() || lstatSync(path).isDirectory(),
  });

/**
 * Runs a shell script to its end, in a folder; resolves with what it prints, and fails if it does.
 */
export async function runScript(script: string, cwd: string): Promise<string> {
  const child = spawn("bash", ["-euo", "pipefail", "-c", script], {
    cwd,
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (data: Buffer) => (output += data.toString()));
  const [code] = await within(once(child, "close"), `the end of: ${script}`);
  assert.equal(code, 0, `${script}\n${output}`);
  return output;
}

/** Runs a command of the books on a data_dir, in this process. */
export const command = (dir: string, args: readonly string[], over: object = {}): Promise<Ended> =>
  runHere([...args, "--config", configFile(settings(dir, over))]);

/** The same as a process of its own, for tests in which processes meet. */
export const commandProcess = (
  t: TestContext,
  dir: string,
  args: readonly string[],
  over: object = {},
): Promise<Ended> => ended(t, [...args, "--config", configFile(settings(dir, over))]);

export async function audit(dir: string, over: object = {}) {
  const end = await command(dir, ["audit", "--json"], over);
  return { code: end.code, stderr: end.stderr, found: JSON.parse(end.stdout) };
}

/**
 * Each settled request is in the usage records once, and nothing else is but `extra` that the log
 * has lost. A request may have two settle lines: another process took an older copy of a segment
 * for a dead process's, and settled in it what was open, before the whole came back behind that.
 */
export function assertEach(dir: string, extra = 0): void {
  const recorded = usageRecords(dir).map(({ usage_id }) => usage_id);
  assert.equal(new Set(recorded).size, recorded.length, "no record twice");
  const settled = new Set(settles(dir).map(({ spend_id }) => spend_id));
  const missing = [...settled].filter((id) => !recorded.includes(id));
  assert.deepEqual(missing, [], "none is missing");
  assert.equal(recorded.length, settled.size + extra);
}

export const events = ({ gw }: Run, event: string) =>
  gw.diagnostics.filter((each) => each["event"] === event);
export const errors = ({ gw }: Run) => gw.diagnostics.filter(({ level }) => level === "error");

export const cursorFile = (dir: string): string => join(dir, "usage", "cursor.json");
export const readCursor = (dir: string): any => JSON.parse(readFileSync(cursorFile(dir), "utf8"));
export const writeCursor = (dir: string, cursor: object): void =>
  writeFileSync(cursorFile(dir), JSON.stringify(cursor));
export const listSpend = (dir: string): string[] => readdirSync(join(dir, "spend")).sort();
