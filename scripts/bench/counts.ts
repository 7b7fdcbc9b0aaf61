// What a process creates for one request, counted instead of timed: promises, timers and bytes of
// memory. No load of the machine changes these figures.

import { once } from "node:events";
import http from "node:http";
import { launch } from "../../test/support/program.ts";
import { bodyOf, post } from "./body.ts";
import { stop, type Target } from "./target.ts";

/** What one request, or one event of a stream, takes. */
export interface Counts {
  readonly promises: number;
  readonly timers: number;
  /** Allocated on the heap. */
  readonly bytes: number;
  /** Those of them that are there after a collection of young memory, which is to leave nothing. */
  readonly kept: number;
}

/**
 * A young generation so large that nothing is collected while it is counted, and code that is
 * optimised at the same moments in every run.
 */
const FLAGS = [
  "--min-semi-space-size=512",
  "--max-semi-space-size=512",
  "--no-concurrent-recompilation",
  "--expose-gc",
  "--import",
  "./scripts/bench/count-hooks.mjs",
];
const WARM_UP = 1_500;
/**
 * The least of so many counts has nothing of what happens once a second beside requests: a batch is
 * shorter than that on a busy machine too.
 */
const WHOLE = { batches: 25, count: 20 };
/** A stream of so many events takes a third of a second. */
const EVENTS = { batches: 5, count: 300 };

type Sizes = Readonly<typeof WHOLE>;

/** A process whose creations are counted. */
export interface Counted {
  readonly url: string;
  counts(): Promise<Counts>;
  stop(): Promise<void>;
}

/** Starts a program of Node under the counter. It must say where it listens. */
export async function startCounted(command: readonly string[]): Promise<Counted> {
  let heard: (counts: Counts) => void = () => undefined;
  const running = launch({ args: FLAGS, cwd: process.cwd() }, command, {
    // Counting what is covered has a cost of its own.
    env: { NODE_V8_COVERAGE: "" },
    heard(line) {
      if (line.startsWith('{"counted"')) heard(JSON.parse(line).counted);
    },
  });
  return {
    url: await running.address,
    counts: () =>
      new Promise((resolve) => {
        heard = resolve;
        running.child.kill("SIGUSR2");
      }),
    stop: () => stop(running),
  };
}

async function ask(url: string, agent: http.Agent, target: Target, body: string): Promise<void> {
  const res = await post({ ...target, url }, body, agent);
  res.resume();
  await once(res, "end");
  if (res.statusCode !== 200) throw new Error(`${res.statusCode}`);
}

/** The least of several counts, each of what `batch` creates, for each of `count`. */
async function least(
  counted: Counted,
  { batches: most, count }: Sizes,
  batch: () => Promise<void>,
): Promise<Counts> {
  const batches: Counts[] = [];
  while (batches.length < most) {
    const before = await counted.counts();
    await batch();
    const after = await counted.counts();
    batches.push({
      promises: (after.promises - before.promises) / count,
      timers: (after.timers - before.timers) / count,
      bytes: (after.bytes - before.kept) / count,
      kept: (after.kept - before.kept) / count,
    });
  }
  const leastOf = (name: keyof Counts) => Math.min(...batches.map((each) => each[name]));
  return {
    promises: leastOf("promises"),
    timers: leastOf("timers"),
    bytes: leastOf("bytes"),
    // A full collection in one of the batches would make the least of them negative.
    kept: batches.map(({ kept }) => kept).sort((one, other) => one - other)[most >> 1]!,
  };
}

/** What one whole reply takes, one request after the other on one connection. */
export async function countWhole(counted: Counted, target: Target): Promise<Counts> {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  const body = bodyOf("bytes=300", target.model);
  const askTimes = async (times: number): Promise<void> => {
    for (let time = 0; time < times; time += 1) await ask(counted.url, agent, target, body);
  };
  await askTimes(WARM_UP);
  const counts = await least(counted, WHOLE, () => askTimes(WHOLE.count));
  agent.destroy();
  return counts;
}

/** What an event of a long stream takes, with its share of the request. */
export async function countEvent(counted: Counted, target: Target): Promise<Counts> {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  const body = bodyOf(`events=${EVENTS.count} every=1`, target.model);
  await ask(counted.url, agent, target, body);
  const counts = await least(counted, EVENTS, () => ask(counted.url, agent, target, body));
  agent.destroy();
  return counts;
}
