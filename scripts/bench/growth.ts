// The table `growth`: how the cost of one unit of work changes when there is much more of
// something. A ratio of 1.0 means that it does not change.

import { setTimeout as pause } from "node:timers/promises";
import { cpuOf, cpuPerEvent, median, openStreams, wholeReplies, type Effort } from "./load.ts";
import { table } from "./table.ts";
import { bodyOf, gateway, started, type Kind, type Target } from "./targets.ts";

/** How long the gateway may still work after a load, in ms: logs, books, garbage collection. */
const QUIET_MS = 1_000;

/** One side of a comparison: a gateway of its own, and how the cost of its work is measured. */
interface Side {
  readonly kind: Kind;
  readonly measure: (target: Target) => Promise<number>;
}

/**
 * Warms each side up, then measures them in turn, so that other work on the machine affects all
 * alike. Returns a list of costs for each round, in the order of the sides.
 */
async function alternating(sides: readonly Side[], upstream: Target, effort: Effort) {
  const running: { target: Target; measure: Side["measure"] }[] = [];
  try {
    for (const { kind, measure } of sides)
      running.push({ target: await started(kind, upstream.url), measure });
    for (const { target, measure } of running) {
      const body = bodyOf("bytes=300", target.model);
      await wholeReplies(target, 16, { duration: effort.seconds }, body);
      await measure(target);
    }
    const rounds: number[][] = [];
    for (let round = 0; round < effort.rounds; round += 1) {
      const costs: number[] = [];
      for (const { target, measure } of running) costs.push(await measure(target));
      rounds.push(costs);
    }
    return rounds;
  } finally {
    for (const { target } of running) await target.stop();
  }
}

const keys = (count: number) => ({
  keys: Array.from({ length: count }, (_, at) => ({
    account: `a${at}`,
    key: at === 0 ? "sk-bench" : `sk-bench-${at}`,
  })),
});
const models = (count: number) => ({
  models: Object.fromEntries(
    Array.from({ length: count }, (_, at) => [at === 0 ? "m" : `m${at}`, { provider: "fast" }]),
  ),
});

/** A load of whole replies. `body` and `reply` are kilobytes of request body and of reply text. */
interface Load {
  readonly connections: number;
  readonly replies: number;
  readonly body: number;
  readonly reply: number;
}

/**
 * Microseconds of CPU per whole reply of a gateway with this configuration, including the work that
 * follows the last reply. The number of replies is fixed: a load that ends after some seconds would
 * abort large replies that have cost CPU but are not counted.
 */
const perReply = (config: object, { connections, replies, body, reply }: Load): Side => ({
  kind: gateway(config),
  async measure(target) {
    const text = bodyOf(`bytes=${reply * 1000}`, target.model, body * 1000);
    const before = cpuOf(target.pid);
    await wholeReplies(target, connections, { amount: replies }, text);
    await pause(QUIET_MS);
    return (cpuOf(target.pid) - before) / replies;
  },
});

const small = (config: object): Side =>
  perReply(config, { connections: 16, replies: 10_000, body: 0.2, reply: 0.3 });

/** Whole replies of one size, two at a time. */
function sized(body: number, reply: number): Side {
  const replies = Math.min(5_000, Math.round(200_000 / Math.max(body, reply)));
  const server = { max_body_bytes: 16_000_000, max_reply_bytes: 64_000_000 };
  return perReply({ server }, { connections: 2, replies, body, reply });
}

/** The cost of each kilobyte beyond the first, in replies of `few` and of `many` kilobytes. */
const perKilobyte =
  (few: number, many: number) =>
  ([one = Number.NaN, ofFew = Number.NaN, ofMany = Number.NaN]: readonly number[]) => [
    (ofFew - one) / (few - 1),
    (ofMany - one) / (many - 1),
  ];

const format = (cost: number) => cost.toFixed(cost < 10 ? 2 : 1);

/** A table row: the median cost of each side, and the median ratio of the rounds. */
function row(what: string, unit: string, rounds: readonly number[][]): string[] {
  const few = rounds.map((costs) => costs[0] ?? Number.NaN);
  const many = rounds.map((costs) => costs[1] ?? Number.NaN);
  const ratios = few.map((cost, round) => (many[round] ?? Number.NaN) / cost);
  return [what, unit, format(median(few)), format(median(many)), median(ratios).toFixed(2)];
}

/** Measures gateways with little and with much of something. Returns the table. */
export async function growth(upstream: Target, effort: Effort): Promise<string> {
  const costsOf = (sides: readonly Side[]) => alternating(sides, upstream, effort);
  const bodies = [1, 100, 10_000].map((body) => sized(body, 0.3));
  const replies = [1, 100, 50_000].map((reply) => sized(0.2, reply));
  const streams = [
    (target: Target) => cpuPerEvent(target, 1, 1_000, 2),
    async (target: Target) => (await openStreams(target, 5_000)).cpu,
  ].map((measure) => ({ kind: gateway(), measure }));
  const byKeys = await costsOf([keys(10), keys(100_000)].map(small));
  const byModels = await costsOf([models(10), models(1_000)].map(small));
  const byBody = (await costsOf(bodies)).map(perKilobyte(100, 10_000));
  const byReply = (await costsOf(replies)).map(perKilobyte(100, 50_000));
  return table([
    ["", "cost", "few", "many", "ratio"],
    row("10 and 100,000 keys", "CPU us per reply", byKeys),
    row("10 and 1,000 models", "CPU us per reply", byModels),
    row("bodies of 100 KB and 10 MB", "CPU us per KB", byBody),
    row("replies of 100 KB and 50 MB", "CPU us per KB", byReply),
    row("1 and 5,000 open streams", "CPU us per event", await costsOf(streams)),
  ]);
}
