// Budgets that several gateways spend together, through a real Redis: the real processes, against a
// server of the tests' own that is emptied, killed and not there. Skipped where Redis or the
// package `redis` (npm ci in test/clients) is not installed; REQUIRE_REDIS=1 forbids that.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, describe, it, type TestContext } from "node:test";
import { settles } from "../../../support/books.ts";
import { folder } from "../../../support/folder.ts";
import { quickest, type Running } from "../../../support/program.ts";
import { noRedis, REDIS_FOLDER, startRedis, type Redis } from "../../../support/redis.ts";
import { until } from "../../../support/wait.ts";
import {
  ask,
  begin,
  bench,
  budget,
  COST,
  HOLD,
  LONG_MS,
  money,
  OPEN,
  pico,
  text,
  untilStanding,
} from "../budgets/processes.ts";

const program = quickest(folder(), REDIS_FOLDER);
const script = readFileSync("src/extensions/money/shared-budgets/script.lua", "utf8");

/** Asks until the store answers in time; the status. */
async function answerOf(url: string): Promise<number> {
  let status = 503;
  const isAnswered = async () => {
    status = await ask(url);
    return status !== 503;
  };
  await until(isAnswered, `an answer of ${url} that is the store's`, LONG_MS);
  return status;
}

/** Waits until a gateway has told of an event. */
const untilTold = ({ running }: { readonly running: Running }, event: string) =>
  until(async () => running.stderr().includes(event), event, LONG_MS);

describe("budgets of several gateways", { skip: noRedis() }, () => {
  let redis: Redis;
  before(async () => {
    redis = await startRedis();
  });
  after(() => redis.close());

  const limits = (onError: "local" | "refuse") => ({
    limits: { store: redis.url, on_error: onError },
  });

  /** Two gateways with a folder each, in front of a store that knows nothing. */
  async function two(t: TestContext, amount: bigint, more: object = {}) {
    await redis.command("FLUSHALL");
    const over = { ...limits("refuse"), ...budget(amount) };
    const { start } = await bench(t, program, over);
    const dirs = [folder(), folder()] as const;
    const [one, other] = [await start({}, dirs[0]), await start(more, dirs[1])];
    return { start, dirs, one, other, urls: [one.url, other.url] };
  }
  it("are spent together, and no further, by replies that no client has bounded", async (t) => {
    const five = 5_000_000_000_000n;
    const { dirs, one, other, urls } = await two(t, five, { server: { workers: 2 } });
    for (const url of urls) assert.equal(await answerOf(url), 200);
    const asked = Array.from({ length: 200 }, (_, index) => ask(urls[index % 2]!, OPEN));
    const served = (await Promise.all(asked)).filter((status) => status === 200).length;
    assert.ok(served >= 16, `${served} were served`);
    const [first, second] = dirs.map((dir) => settles(dir).map(({ cost }) => pico(cost)));
    assert.ok(first!.length > 0 && second!.length > 0);
    const spent = [...first!, ...second!].reduce((total, cost) => total + cost, 0n);
    assert.ok(spent <= five, `${money(spent)} was spent`);
    // Also the one with workers, of which nothing is asked any more.
    for (const { standing } of [one, other])
      await untilStanding(standing, { spent: text(spent), held: "0" });
  });

  it("count amounts beyond what a double holds", async (t) => {
    const amount = 999_999_999n * 1_000_000_000_000n + 1n;
    const { one } = await two(t, amount);
    assert.equal(await answerOf(one.url), 200);
    const left = text(amount - COST);
    await untilStanding(one.standing, { spent: text(COST), held: "0", left });
  });

  it("hold nothing for a gateway that has died, and know what it spent", async (t) => {
    const { start, dirs, one, other } = await two(t, COST + HOLD);
    assert.equal(await answerOf(one.url), 200);
    await begin(one.url);
    assert.equal(await answerOf(other.url), 402);
    one.running.child.kill("SIGKILL");
    await one.running.ended;
    const again = await start({}, dirs[0]);
    await untilStanding(again.standing, { spent: text(COST), held: "0" });
    assert.equal(await answerOf(other.url), 200);
    assert.equal(await answerOf(again.url), 402);
  });

  it("have what a gateway spent last that was stopped", async (t) => {
    const { dirs, one, other } = await two(t, 400n * COST);
    for (const { url } of [one, other]) assert.equal(await answerOf(url), 200);
    const asked = Array.from({ length: 60 }, () => ask(other.url).catch(() => 0));
    await Promise.race(asked);
    other.running.child.kill("SIGTERM");
    await Promise.all(asked);
    await other.running.ended;
    const costs = settles(dirs[1]!).map(({ cost }) => pico(cost));
    const spent = costs.reduce((total, cost) => total + cost, COST);
    await untilStanding(one.standing, { spent: text(spent), held: "0" });
  });

  it("wait for the rows of the others, also where the news of the loss came too late", async (t) => {
    const { one, other } = await two(t, 2n * HOLD);
    for (const { url } of [one, other]) assert.equal(await answerOf(url), 200);
    other.running.child.kill("SIGSTOP");
    await redis.command("FLUSHALL");
    redis.pause();
    assert.equal(await ask(one.url), 503);
    redis.resume(); // the script has run meanwhile, and has written a row
    await untilTold(one, "budgets_store_recovered");
    assert.equal(await ask(one.url), 503);
    other.running.child.kill("SIGCONT");
    assert.equal(await answerOf(one.url), 402);
  });

  it("wait for the rows of the others where the store has old ones", async (t) => {
    const { one, other } = await two(t, COST + 2n * HOLD);
    assert.equal(await answerOf(other.url), 200);
    await redis.command("SAVE");
    t.after(async () => {
      await redis.command("FLUSHALL");
      await redis.command("SAVE");
    });
    for (const { url } of [one, other]) assert.equal(await answerOf(url), 200);
    other.running.child.kill("SIGSTOP");
    await redis.kill();
    await redis.start();
    await untilTold(one, "budgets_store_recovered");
    assert.equal(await ask(one.url), 503);
    other.running.child.kill("SIGCONT");
    assert.equal(await answerOf(one.url), 402);
  });

  it("tell of old rows until an answer has come in time", async () => {
    const zero = [0, 0];
    /** The birth of the row, and how often it was written. */
    async function write(writes: number): Promise<readonly [born: number, writes: number]> {
      const row = { period: "2026-01", amount: [9, 0], spent: zero, held: zero, writes };
      const task = { token: "", tokens: 0, offers: [], budgets: [row], limits: [] };
      const words = JSON.stringify({ gateway: "g", window: 60_000, lease: 15_000, tasks: [task] });
      const [[, , , [figures]]] = await redis.command("EVAL", script, 1, "old-rows", words);
      return figures.slice(0, 2);
    }
    const [born] = await write(0);
    assert.deepEqual(await write(1), [born, 2]);
    await until(async () => {
      const [seconds, microseconds] = await redis.command("TIME");
      return seconds * 1_000 + Math.floor(microseconds / 1_000) > born;
    }, "the store's clock to move");
    // Of these only the last answer comes in time. By then the row was written more than 7 times.
    for (let written = 3; written <= 9; written += 1) await write(7);
    const [again, writes] = await write(7);
    assert.deepEqual([again > born, writes], [true, 10]);
  });

  it("are each gateway's own, or refuse, while the store is not there", async (t) => {
    await redis.command("FLUSHALL");
    const { start } = await bench(t, program, budget(2n * COST + HOLD));
    const local = await start(limits("local"), folder());
    const strict = await start(limits("refuse"), folder());
    assert.equal(await answerOf(local.url), 200);
    assert.equal(await answerOf(strict.url), 200);
    await redis.kill();
    await until(async () => (await ask(strict.url)) === 503, "a refusal", LONG_MS);
    // By itself each has spent one of the two.
    assert.equal(await answerOf(local.url), 200);
    assert.equal(await answerOf(local.url), 200);
    assert.equal(await answerOf(local.url), 402);
    await redis.start();
    await until(async () => (await ask(strict.url)) === 402, "the store to know", LONG_MS);
    await untilStanding(strict.standing, { spent: text(4n * COST), left: "0" });
  });
});

describe("tokens per minute of several gateways", { skip: noRedis() }, () => {
  it("are admitted together", async (t) => {
    const redis = await startRedis();
    t.after(redis.close);
    // 14 bytes are 4 tokens, and 7 may come; with the provider's figures each has 27.
    const { start } = await bench(t, program, {
      limits: { store: redis.url, on_error: "refuse" },
      accounts: { acme: { tokens_per_minute: 27 * 4 + 11 } },
    });
    const urls = [(await start({}, folder())).url, (await start({}, folder())).url];
    // A request that the store answered too late has counted, although its gateway refused it.
    let late = 0;
    const asked = async (url: string): Promise<number> => {
      const status = await ask(url);
      if (status === 503) late += 1;
      return status === 503 ? await answerOf(url) : status;
    };
    let admitted = 0;
    while (admitted < 10 && (await asked(urls[admitted % 2]!)) === 200) admitted += 1;
    assert.ok(admitted <= 5, `${admitted} admitted`);
    if (late === 0) assert.equal(admitted, 5);
    assert.equal(await answerOf(urls[0]!), 429);
    assert.equal(await answerOf(urls[1]!), 429);
  });

  it("are right when a minute is over since a request that counts nothing", async (t) => {
    const redis = await startRedis();
    t.after(redis.close);
    await redis.command("RPUSH", "list", "1 refused");
    await redis.command("HSET", "hash", "refused", 0, "*", 0);
    const task = { token: "", tokens: 0, offers: [], budgets: [], limits: [10] };
    const words = JSON.stringify({ gateway: "g", window: 60_000, lease: 15_000, tasks: [task] });
    const [[, , , , windows]] = await redis.command("EVAL", script, 2, "list", "hash", words);
    assert.deepEqual(windows, [[0, 0]]);
  });
});
