// Budgets shared by several gateways through a real Redis: real processes, and a server of the
// tests' own that is emptied, killed and missing. Skipped if Redis or the package `redis` (npm ci
// in test/clients) is not installed; REQUIRE_REDIS=1 forbids that.

import assert from "node:assert/strict";
import { after, before, describe, it, type TestContext } from "node:test";
import { amountOf, pico } from "../../../../scripts/reconcile/money.ts";
import { settles } from "../../../support/books.ts";
import { noRedis, REDIS_FOLDER, startRedis, type Redis } from "../../../support/redis.ts";
import { until } from "../../../support/wait.ts";
import {
  ask,
  budget,
  COST,
  HOLD,
  LONG_MS,
  OPEN,
  start,
  untilStanding,
} from "../budgets/processes.ts";

/** Sends requests until the store answers in time. Resolves with the status. */
async function answerOf(url: string): Promise<number> {
  let status = 503;
  const isAnswered = async () => {
    status = await ask(url);
    return status !== 503;
  };
  await until(isAnswered, `an answer of ${url} that is the store's`, LONG_MS);
  return status;
}

describe("budgets of several gateways", { skip: noRedis() }, () => {
  let redis: Redis;
  before(async () => {
    redis = await startRedis();
  });
  after(() => redis.close());

  const limits = (onError: "local" | "refuse") => ({
    limits: { store: redis.url, on_error: onError },
  });

  /** Two gateways with an empty store. */
  async function two(t: TestContext, amount: bigint, more: object = {}) {
    await redis.command("FLUSHALL");
    const over = { ...limits("refuse"), ...budget(amount) };
    const one = await start(t, over, REDIS_FOLDER);
    const other = await start(t, { ...over, ...more }, REDIS_FOLDER);
    return { both: [one, other] as const, urls: [one.url, other.url] };
  }

  it("are spent together, and never exceeded, by replies without max_tokens", async (t) => {
    const five = 5_000_000_000_000n;
    const { both, urls } = await two(t, five, { server: { workers: 2 } });
    for (const url of urls) assert.equal(await answerOf(url), 200);
    const asked = Array.from({ length: 200 }, (_, index) => ask(urls[index % 2]!, OPEN));
    const served = (await Promise.all(asked)).filter((status) => status === 200).length;
    assert.ok(served >= 16, `${served} were served`);
    const [first, second] = both.map(({ dir }) => settles(dir).map(({ cost }) => pico(cost)));
    assert.ok(first!.length > 0 && second!.length > 0);
    const spent = [...first!, ...second!].reduce((total, cost) => total + cost, 0n);
    assert.ok(spent <= five, `${amountOf(spent)} was spent`);
    // Also the gateway with workers, which gets no more requests.
    for (const { standing } of both)
      await untilStanding(standing, { spent: amountOf(spent), held: "0" });
  });

  it("count amounts beyond the precision of a double", async (t) => {
    const amount = 999_999_999n * 1_000_000_000_000n + 1n;
    const [one] = (await two(t, amount)).both;
    assert.equal(await answerOf(one.url), 200);
    const left = amountOf(amount - COST);
    await untilStanding(one.standing, { spent: amountOf(COST), held: "0", left });
  });

  it("are per gateway, or reject requests, while the store is down", async (t) => {
    await redis.command("FLUSHALL");
    const purse = budget(2n * COST + HOLD);
    const local = await start(t, { ...purse, ...limits("local") }, REDIS_FOLDER);
    const strict = await start(t, { ...purse, ...limits("refuse") }, REDIS_FOLDER);
    assert.equal(await answerOf(local.url), 200);
    assert.equal(await answerOf(strict.url), 200);
    await redis.kill();
    await until(async () => (await ask(strict.url)) === 503, "a refusal", LONG_MS);
    // On its own each gateway has spent one of the two.
    assert.equal(await answerOf(local.url), 200);
    assert.equal(await answerOf(local.url), 200);
    assert.equal(await answerOf(local.url), 402);
    await redis.start();
    await until(async () => (await ask(strict.url)) === 402, "the store to know", LONG_MS);
    await untilStanding(strict.standing, { spent: amountOf(4n * COST), left: "0" });
  });
});

it("tokens per minute of several gateways are admitted together", {
  skip: noRedis(),
}, async (t) => {
  const redis = await startRedis();
  t.after(redis.close);
  // 14 bytes are 4 tokens, and up to 7 may follow; by the provider's figures each request has 27.
  const over = {
    limits: { store: redis.url, on_error: "refuse" },
    accounts: { acme: { tokens_per_minute: 27 * 4 + 11 } },
  };
  const gateways = [await start(t, over, REDIS_FOLDER), await start(t, over, REDIS_FOLDER)];
  const urls = gateways.map(({ url }) => url);
  // A request that the store answered too late has counted, although its gateway rejected it.
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
