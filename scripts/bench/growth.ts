// The second table: what happens to the cost of one unit of work when there is much more of
// something. Flat is 1.0.

import { bodyOf, cpuPerEvent, median, openStreams, wholeReplies, type Whole } from "./load.ts";
import { table } from "./table.ts";
import { gateway, type Kind, type Target } from "./targets.ts";

const ROUNDS = 3;
const SECONDS = 3;

/** Runs `measure` in turn on all of the kinds, each started once; medians of the rounds. */
async function alternating(
  kinds: readonly Kind[],
  upstream: Target,
  measure: (target: Target) => Promise<number>,
): Promise<number[]> {
  const targets: Target[] = [];
  try {
    for (const kind of kinds) targets.push(await kind.start(upstream.url));
    for (const target of targets) await measure(target); // warm-up
    const figures: number[][] = targets.map(() => []);
    for (let round = 0; round < ROUNDS; round += 1)
      for (const [at, target] of targets.entries()) figures[at]!.push(await measure(target));
    return figures.map(median);
  } finally {
    for (const target of targets) await target.stop();
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
const small = (target: Target): Promise<Whole> =>
  wholeReplies(target, 16, SECONDS, bodyOf("bytes=300", target.model));
const row = (what: string, unit: string, few: number, many: number) => [
  what,
  unit,
  few.toFixed(few < 10 ? 2 : 1),
  many.toFixed(many < 10 ? 2 : 1),
  (many / few).toFixed(2),
];

export async function growth(upstream: Target): Promise<string> {
  const rows = [["", "cost", "few", "many", "ratio"]];
  const perReply = async (target: Target) => (await small(target)).cpu;
  const [fewKeys, manyKeys] = await alternating(
    [gateway(keys(10)), gateway(keys(100_000))],
    upstream,
    perReply,
  );
  rows.push(row("10 and 100,000 keys", "CPU us per reply", fewKeys!, manyKeys!));
  const [fewModels, manyModels] = await alternating(
    [gateway(models(10)), gateway(models(1_000))],
    upstream,
    perReply,
  );
  rows.push(row("10 and 1,000 models", "CPU us per reply", fewModels!, manyModels!));

  /**
   * Of whole replies of one size: what each further kilobyte costs beside what a small one costs.
   */
  const perKilobyte = async (
    words: (kb: number) => string,
    filler: (kb: number) => number,
    sizes: readonly number[],
  ) => {
    const costs: number[] = [];
    for (const kb of [1, ...sizes]) {
      const [cpu] = await alternating(
        [gateway({ server: { max_body_bytes: 16_000_000, max_reply_bytes: 64_000_000 } })],
        upstream,
        async (target) =>
          (
            await wholeReplies(
              target,
              kb > 1000 ? 2 : 16,
              SECONDS,
              bodyOf(words(kb), target.model, filler(kb)),
            )
          ).cpu,
      );
      costs.push(cpu!);
    }
    return sizes.map((kb, at) => (costs[at + 1]! - costs[0]!) / (kb - 1));
  };
  const [body100, body10k] = await perKilobyte(
    () => "bytes=300",
    (kb) => kb * 1000,
    [100, 10_000],
  );
  rows.push(row("bodies of 100 KB and 10 MB", "CPU us per KB", body100!, body10k!));
  const [reply100, reply50k] = await perKilobyte(
    (kb) => `bytes=${kb * 1000}`,
    () => 200,
    [100, 50_000],
  );
  rows.push(row("replies of 100 KB and 50 MB", "CPU us per KB", reply100!, reply50k!));

  const [one, many] = [1, 5_000];
  const [event1] = await alternating([gateway()], upstream, (target) =>
    cpuPerEvent(target, one, 1_000, 2),
  );
  const [event5000] = await alternating(
    [gateway()],
    upstream,
    async (target) => (await openStreams(target, many)).cpu,
  );
  rows.push(row("1 and 5,000 open streams", "CPU us per event", event1!, event5000!));
  return table(rows);
}
