// The measurements. Each loads a target from this process and returns its figures. CPU and memory
// are those of the target's process, as counted by the kernel. autocannon requests whole replies,
// plain node:http requests streams.

import { once } from "node:events";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import http from "node:http";
import { createRequire } from "node:module";
import { setTimeout as pause } from "node:timers/promises";
import { within } from "../../test/support/wait.ts";
import { bodyOf, post, type Target } from "./targets.ts";

// The load generator is a package of the tests, because the project itself has no dependency.
const autocannon = createRequire(new URL("../../test/clients/package.json", import.meta.url))(
  "autocannon",
);

/** How thoroughly to measure. */
export interface Effort {
  readonly rounds: number;
  /** Seconds of each load of whole replies. */
  readonly seconds: number;
  /** Only shows that everything runs. Its figures mean little. */
  readonly isTrial: boolean;
}

export const median = (values: readonly number[]): number => percentile(values, 0.5);
/** The value below which this share of all values lies. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? NaN;
}

/** A file of /proc. Empty if its process or thread has just ended. */
function proc(path: string): string {
  try {
    return readFileSync(`/proc/${path}`, "utf8");
  } catch {
    return "";
  }
}

const threadsOf = (pid: number): string[] =>
  existsSync(`/proc/${pid}/task`) ? readdirSync(`/proc/${pid}/task`) : [];

/** The ids of a process and of all its descendants. */
export function familyOf(pid: number): number[] {
  const children = threadsOf(pid).flatMap((thread) =>
    proc(`${pid}/task/${thread}/children`).split(" ").filter(Boolean),
  );
  return [pid, ...children.flatMap((child) => familyOf(Number(child)))];
}

/** The CPU time of each thread when last read, in nanoseconds, by process. */
const lastSeen = new Map<number, Map<string, number>>();

/**
 * Microseconds that all threads of a process and of its descendants have spent on a CPU, by the
 * scheduler's own figures in nanoseconds. The usual figures count ticks of 10 ms, which misjudge
 * work that timers of the same period wake. A thread that has ended counts as last read.
 */
export function cpuOf(pid: number): number {
  const threads = lastSeen.get(pid) ?? new Map<string, number>();
  lastSeen.set(pid, threads);
  for (const member of familyOf(pid)) {
    for (const thread of threadsOf(member)) {
      const [nanoseconds] = proc(`${member}/task/${thread}/schedstat`).split(" ");
      if (nanoseconds) threads.set(thread, Number(nanoseconds));
    }
  }
  return [...threads.values()].reduce((sum, nanoseconds) => sum + nanoseconds, 0) / 1000;
}

/** Resident memory of a process and its descendants, in bytes. */
export const memoryOf = (pid: number): number =>
  familyOf(pid).reduce(
    (sum, member) => sum + Number(/VmRSS:\s+(\d+)/.exec(proc(`${member}/status`))?.[1] ?? 0) * 1024,
    0,
  );

/** Sends chat requests until `stop()`, or as long as autocannon's options say. */
export const startLoad = (target: Target, body: string, options: object): any =>
  autocannon({
    url: target.url + target.path,
    timeout: 60,
    method: "POST",
    headers: target.headers,
    body,
    ...options,
  });

/** The milliseconds of each response of a load. Throws unless all have the expected status. */
export async function answersOf(run: any, name: string, expected = 200): Promise<number[]> {
  const times: number[] = [];
  run.on("response", (_client: unknown, status: number, _bytes: number, time: number) => {
    if (status === expected) times.push(time);
  });
  const { requests, errors } = await run;
  const failed = requests.total - times.length;
  if (failed > 0 || errors > 0)
    throw new Error(`${name}: ${failed} answers were no ${expected}, ${errors} errors`);
  return times;
}

/**
 * Requests whole replies on `connections` connections, one at a time on each, until `amount`
 * replies or `duration` seconds. Requests in flight at that moment are aborted and not counted,
 * though they have cost CPU; among thousands of small replies that does not matter.
 */
export async function wholeReplies(
  target: Target,
  connections: number,
  extent: { readonly duration: number } | { readonly amount: number },
  body: string,
) {
  const before = cpuOf(target.pid);
  const began = performance.now();
  const times = await answersOf(startLoad(target, body, { connections, ...extent }), target.name);
  const tookMs = performance.now() - began;
  const spent = cpuOf(target.pid) - before;
  return {
    count: times.length,
    perSecond: times.length / (tookMs / 1000),
    /** Milliseconds until the reply was complete: the median, and the 99th percentile. */
    p50: median(times),
    p99: percentile(times, 0.99),
    /** The share of a core that the target used. */
    busy: spent / (tookMs * 1000),
  };
}

/** Reads a stream to its end. Resolves with the milliseconds until its first text. */
export async function readStream(
  target: Target,
  agent: http.Agent,
  body: string,
  begun: () => void = () => {},
): Promise<number> {
  const began = performance.now();
  let first = NaN;
  const res = await post(target, body, agent);
  if (res.statusCode !== 200) throw new Error(`${target.name}: status ${res.statusCode}`);
  res.on("data", (data: Buffer) => {
    if (!Number.isNaN(first) || !data.includes("happy")) return;
    first = performance.now() - began;
    begun();
  });
  await once(res, "end");
  if (Number.isNaN(first)) throw new Error(`${target.name}: a stream without text`);
  return first;
}

/** Milliseconds until the first text of each stream, one stream after another. */
export async function firstTokens(target: Target, count: number): Promise<number[]> {
  const agent = new http.Agent({ keepAlive: true });
  const times: number[] = [];
  for (let asked = 0; asked < count; asked += 1)
    times.push(await readStream(target, agent, bodyOf("events=1 every=1", target.model)));
  agent.destroy();
  return times;
}

/** Microseconds of CPU per event of `streams` concurrent streams with `events` events each. */
export async function cpuPerEvent(target: Target, streams: number, events: number, every: number) {
  const agent = new http.Agent({ keepAlive: false });
  const before = cpuOf(target.pid);
  await Promise.all(
    Array.from({ length: streams }, () =>
      readStream(target, agent, bodyOf(`events=${events} every=${every}`, target.model)),
    ),
  );
  return (cpuOf(target.pid) - before) / (streams * events);
}

/** The cost of open streams: bytes of memory per stream, and microseconds of CPU per event. */
export async function openStreams(target: Target, streams: number, seconds = 5) {
  const agent = new http.Agent({ keepAlive: false });
  const before = memoryOf(target.pid);
  const body = bodyOf("events=1000000 every=1000", target.model);
  const open = () =>
    new Promise<void>((begun) => {
      readStream(target, agent, body, begun).catch(() => undefined); // aborted below
    });
  try {
    for (let asked = 0; asked < streams; asked += 100) {
      // A listen queue holds a few hundred.
      const batch = Array.from({ length: Math.min(100, streams - asked) }, open);
      const what = `streams ${asked} to ${asked + batch.length} of ${target.name}`;
      await within(Promise.all(batch), what, 60_000);
    }
    const cpu = cpuOf(target.pid);
    await pause(seconds * 1000);
    const spent = cpuOf(target.pid) - cpu;
    const bytes = (memoryOf(target.pid) - before) / streams;
    return { bytes, cpu: spent / (streams * seconds) };
  } finally {
    agent.destroy();
    await pause(1000);
  }
}
