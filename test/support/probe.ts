// The process that asks a gateway for GET /healthz while it is at work (scripts/bench/probe.ts), and
// how large another process has been.

import { fork } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import type { Probed } from "../../scripts/bench/probe.ts";
import { fromModules } from "./program.ts";
import { within } from "./wait.ts";

export type Probe = ReturnType<typeof createProbe>;

/** Asks one gateway after the other. `start` resolves when the first answer has come. */
export function createProbe() {
  const { args } = fromModules("", "scripts/bench/probe.ts");
  const child = fork(args.at(-1)!, { execArgv: args.slice(0, -1) });
  const tell = async (message: number | "stop") => {
    child.send(message);
    const [said] = await within(once(child, "message"), "the probe of /healthz", 120_000);
    return said as Probed;
  };
  const start = (port: number) => tell(port);
  return { start, stop: () => tell("stop"), end: () => child.disconnect() };
}

/** The height of a process's resident memory in bytes. */
export function heightOf(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return Number(/VmHWM:\s+(\d+)/.exec(status)![1]) * 1024;
}
