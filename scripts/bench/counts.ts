// What a process creates for one request, counted instead of timed: promises, timers and bytes of
// memory. No load of the machine changes these figures.

import { spawn } from "node:child_process";
import http from "node:http";
import { setTimeout as pause } from "node:timers/promises";
import { bodyOf } from "./body.ts";
import { addressOf, stop, type Target } from "./target.ts";

/** What one request, or one event of a stream, takes. */
export interface Counts {
  readonly promises: number;
  readonly timers: number;
  /** Allocated on the heap. */
  readonly bytes: number;
}

/** A young generation so large that nothing is collected while it is counted. */
const FLAGS = [
  "--min-semi-space-size=512",
  "--max-semi-space-size=512",
  "--import",
  "./scripts/bench/count-hooks.mjs",
];
const WARM_UP = 2_000;
const REQUESTS = 1_000;
const EVENTS = 2_000;

/** A process whose creations are counted. */
export interface Counted {
  readonly url: string;
  counts(): Promise<Counts>;
  stop(): Promise<void>;
}

/** Starts a program of Node under the counter. It must say where it listens. */
export async function startCounted(command: readonly string[]): Promise<Counted> {
  const child = spawn(process.execPath, [...FLAGS, ...command], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  let heard: (counts: Counts) => void = () => undefined;
  const url = await addressOf(child, {
    out: () => undefined,
    err: (line) => {
      if (line.startsWith('{"counted"')) heard(JSON.parse(line).counted);
    },
  });
  return {
    url,
    counts: () =>
      new Promise((resolve) => {
        heard = resolve;
        child.kill("SIGUSR2");
      }),
    stop: () => stop(child),
  };
}

/** Sends one request, and reads its whole answer. */
function ask(url: string, agent: http.Agent, { path, headers }: Target, body: string) {
  return new Promise<void>((resolve, reject) => {
    const options = {
      method: "POST",
      agent,
      headers: { ...headers, "content-length": body.length },
    };
    const req = http.request(url + path, options, (res) => {
      res.resume();
      res.on("end", () =>
        res.statusCode === 200 ? resolve() : reject(new Error(`${res.statusCode}`)),
      );
    });
    req.on("error", reject);
    req.end(body);
  });
}

/** The difference of two counts, for each of so many. */
const each = (before: Counts, after: Counts, count: number): Counts => ({
  promises: (after.promises - before.promises) / count,
  timers: (after.timers - before.timers) / count,
  bytes: (after.bytes - before.bytes) / count,
});

/** What one whole reply takes, one request after the other on one connection. */
export async function countWhole(counted: Counted, target: Target): Promise<Counts> {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  const body = bodyOf("bytes=300", target.model);
  for (let request = 0; request < WARM_UP; request += 1)
    await ask(counted.url, agent, target, body);
  const before = await counted.counts();
  for (let request = 0; request < REQUESTS; request += 1)
    await ask(counted.url, agent, target, body);
  const after = await counted.counts();
  agent.destroy();
  return each(before, after, REQUESTS);
}

/** What one more event of a stream takes. */
export async function countEvent(counted: Counted, target: Target): Promise<Counts> {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  const streamOf = (events: number) => bodyOf(`events=${events} every=1`, target.model);
  async function of(events: number): Promise<Counts> {
    const before = await counted.counts();
    await ask(counted.url, agent, target, streamOf(events));
    return each(before, await counted.counts(), 1);
  }
  await of(EVENTS);
  const [few, many] = [await of(10), await of(10 + EVENTS)];
  agent.destroy();
  await pause(0);
  return each(few, many, EVENTS);
}
