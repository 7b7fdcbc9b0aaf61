// The table `counts`: promises, timers and bytes of memory that the relay and the gateway create
// for one request. They are counted, not timed, so machine load does not change them.

import { once } from "node:events";
import http from "node:http";
import { launch } from "../../test/support/program.ts";
import { table } from "./table.ts";
import { AUTHORIZED, bodyOf, post, serving, stop, TYPESCRIPT, type Target } from "./targets.ts";

/** What one request, or one event of a stream, creates. */
export interface Counts {
  readonly promises: number;
  readonly timers: number;
  /** Bytes allocated on the heap. */
  readonly bytes: number;
  /** Bytes that survive a collection of young memory. Ideally 0. */
  readonly kept: number;
}

/** Counts per whole reply, and per event of a long stream with its share of the request. */
export interface Figures {
  readonly whole: Counts;
  readonly event: Counts;
}

/** No garbage collection while counting, and the same code optimized in every run. */
const FLAGS = [
  "--min-semi-space-size=512",
  "--max-semi-space-size=512",
  "--no-concurrent-recompilation",
  "--expose-gc",
  "--import",
  "./scripts/bench/count-hooks.mjs",
];
/** The requests of one measurement, and how they are counted. */
interface Work {
  /** The text that tells the provider how to reply. */
  readonly words: string;
  /** Requests before the counting begins. */
  readonly warmUp: number;
  readonly batches: number;
  /** Requests in a batch, sent one after another on one connection. */
  readonly requests: number;
  /** Replies or events in a batch: its counts are divided by this number. */
  readonly count: number;
}
/**
 * Per whole reply. A batch takes less than a second, even on a busy machine, so the smallest count
 * excludes work that runs once a second.
 */
const WHOLE: Work = { words: "bytes=300", warmUp: 1_500, batches: 25, requests: 20, count: 20 };
/** Per event. Its stream lasts a third of a second. */
const EVENT: Work = { words: "events=300 every=1", warmUp: 1, batches: 5, requests: 1, count: 300 };

/** The smallest counts of several batches, per reply or event. */
async function least(work: Work, target: Target, countsSoFar: () => Promise<Counts>) {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  const body = bodyOf(work.words, target.model);
  const ask = async (times: number): Promise<void> => {
    for (let time = 0; time < times; time += 1) {
      const res = await post(target, body, agent);
      res.resume();
      await once(res, "end");
      if (res.statusCode !== 200) throw new Error(`${res.statusCode}`);
    }
  };
  await ask(work.warmUp);
  const batches: Counts[] = [];
  while (batches.length < work.batches) {
    const before = await countsSoFar();
    await ask(work.requests);
    const after = await countsSoFar();
    const per = (name: keyof Counts, since = name) => (after[name] - before[since]) / work.count;
    const [promises, timers, kept] = [per("promises"), per("timers"), per("kept")];
    batches.push({ promises, timers, bytes: per("bytes", "kept"), kept });
  }
  agent.destroy();
  const leastOf = (name: keyof Counts) => Math.min(...batches.map((each) => each[name]));
  return {
    promises: leastOf("promises"),
    timers: leastOf("timers"),
    bytes: leastOf("bytes"),
    // One batch may include a full collection, which would make the smallest value negative.
    kept: batches.map(({ kept }) => kept).sort((one, other) => one - other)[work.batches >> 1]!,
  };
}

/**
 * Runs a program with count-hooks.mjs, sends it the requests of `target`, and returns the counts.
 */
export async function countIn(command: readonly string[], target: Target): Promise<Figures> {
  let received: (counts: Counts) => void = () => undefined;
  const running = launch({ args: FLAGS, cwd: process.cwd() }, command, {
    // Collecting coverage would add to the counts.
    env: { NODE_V8_COVERAGE: "" },
    onLine(line) {
      if (line.startsWith('{"counted"')) received(JSON.parse(line).counted);
    },
  });
  const countsSoFar = () =>
    new Promise<Counts>((resolve) => {
      received = resolve;
      running.child.kill("SIGUSR2");
    });
  try {
    const counted = { ...target, url: await running.address };
    const whole = await least(WHOLE, counted, countsSoFar);
    return { whole, event: await least(EVENT, counted, countsSoFar) };
  } finally {
    await stop(running);
  }
}

/** The counts of the relay and of the built file. */
export async function countTable(upstream: Target): Promise<string> {
  const target = { ...upstream, headers: AUTHORIZED };
  const relay = await countIn([...TYPESCRIPT, "scripts/bench/relay.ts", upstream.url], target);
  const gateway = await countIn(serving(upstream.url), target);
  const rowsOf = (what: string, kind: keyof Figures): string[][] => {
    const row = (name: string, figure: keyof Counts, unit = 1) => [
      name,
      ...[relay, gateway].map((counts) => (counts[kind][figure] / unit).toFixed(1)),
    ];
    return [
      row(`promises for a ${what}`, "promises"),
      row("timers", "timers"),
      row("KB allocated", "bytes", 1024),
      row("KB kept by a minor collection", "kept", 1024),
    ];
  };
  const head = ["", "relay", "chat-gateway"];
  return table([head, ...rowsOf("whole reply", "whole"), ...rowsOf("streamed event", "event")]);
}
