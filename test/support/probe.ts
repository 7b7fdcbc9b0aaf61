// Starts the process that measures /healthz while a gateway is under load (scripts/bench/probe.ts),
// and reads the peak memory of a process.

import { fork } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import type { Probed } from "../../scripts/bench/probe.ts";
import { fromModules } from "./program.ts";
import { within } from "./wait.ts";

/** The process that measures /healthz. */
export type Probe = ReturnType<typeof createProbe>;

/** Starts the process. It can measure one gateway after another. */
export function createProbe() {
  const { args } = fromModules("", "scripts/bench/probe.ts");
  const child = fork(args.at(-1)!, { execArgv: args.slice(0, -1) });
  const send = async (message: number | "stop") => {
    child.send(message);
    const [answer] = await within(once(child, "message"), "the probe of /healthz", 120_000);
    return answer as Probed;
  };
  const start = (port: number) => send(port);
  return { start, stop: () => send("stop"), end: () => child.disconnect() };
}

/** The peak of a process's resident memory, in bytes. */
export function heightOf(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return Number(/VmHWM:\s+(\d+)/.exec(status)![1]) * 1024;
}
