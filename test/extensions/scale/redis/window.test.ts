// A gateway's limit windows in a real Redis, where the comparison in model.test.ts cannot see them.
// Instead of waiting a minute, the tests write the last minute's admissions into Redis. Skipped if
// Redis or the package `redis` (npm ci in test/clients) is not installed; REQUIRE_REDIS=1 forbids
// that.

import assert from "node:assert/strict";
import { after, before, describe, it, type TestContext } from "node:test";
import { noRedis, startRedis, type Redis } from "../../../support/redis.ts";
import { suiteScope } from "../../../support/scope.ts";
import { until } from "../../../support/wait.ts";
import * as bench from "./bench.ts";

let redis: Redis;
let gateway: bench.Gateway;

/** Writes admissions of these ages into an account's window, as Redis stores them. */
async function seed(account: string, ages: readonly number[]): Promise<number[]> {
  const now = await redis.now();
  const times = ages.map((age) => now - age).sort((a, b) => a - b);
  await redis.command("RPUSH", bench.windowKey(account), ...times);
  await redis.command("PEXPIRE", bench.windowKey(account), bench.WINDOW_MS);
  return times;
}

const admissions = (account: string, name?: string) =>
  bench.timesOf(redis, bench.windowKey(account, name));
const ttlOf = (account: string): Promise<number> => redis.command("PTTL", bench.windowKey(account));

/** Asserts rejections by a limit, each with the whole seconds until `time`, and no fewer. */
async function assertRoomAt(
  time: number,
  limit: number,
  asked: () => Promise<readonly bench.Told[]>,
) {
  const secondsLeft = async () => Math.max(1, Math.ceil((time - (await redis.now())) / 1000));
  const [most, told, least] = [await secondsLeft(), await asked(), await secondsLeft()];
  for (const each of told) {
    const named = bench.assertLimited(each, limit);
    assert.ok(least <= named && named <= most, `${least} <= ${named} <= ${most}`);
  }
}

/**
 * Redis answered too late, which happens on a busy machine: the test's result then says nothing.
 */
class TooSlow extends Error {}

async function ask(account: string, key = bench.keyOf(account)): Promise<bench.Told> {
  const told = await bench.post(gateway.url, key);
  if (told.status === 503) throw new TooSlow();
  return told;
}

async function many(requests: number, account: string, key?: string): Promise<bench.Told[]> {
  const asked = Array.from({ length: requests }, () => ask(account, key));
  await Promise.allSettled(asked);
  return await Promise.all(asked);
}

/** A test on an empty Redis, repeated if Redis was too slow. */
const rule = (title: string, scenario: () => Promise<void>) => it(title, (t) => play(t, scenario));

async function play(t: TestContext, scenario: () => Promise<void>): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    const answers = () => ask("probe").then(Boolean, () => false);
    await until(answers, "Redis to be asked again");
    await redis.command("FLUSHALL");
    try {
      return await scenario();
    } catch (error) {
      if (!(error instanceof TooSlow) || tries === 10) throw error;
      t.diagnostic("once more: Redis was too slow");
    }
  }
}

describe("limits of a gateway in Redis", { skip: noRedis() }, () => {
  const scope = suiteScope();
  const BOTH = "sk-both-limited";
  /** A separate account for each test, so that none meets another's state in the gateway. */
  const limits = {
    ...{ probe: 1, both: 6, refused: 3, expiring: 5, back: 3, counted: 50 },
  };
  const accounts = {
    ...Object.fromEntries(Object.entries(limits).map(([name, rpm]) => [name, { rpm }])),
    wordy: { rpm: 30, tokens_per_minute: 1 },
    single: { rpm: 1, max_in_flight: 1 },
  };
  let options: bench.Options;
  before(async () => {
    redis = await startRedis();
    const keys = [{ account: "both", key: BOTH, rpm: 4 }];
    options = { store: redis.url, accounts, keys };
    gateway = await bench.serve(scope, options);
  });
  after(() => redis?.close());

  rule(
    "that reject a request say when there is room, at no cost, without extending the key's life",
    async () => {
      const times = await seed("refused", [37_300, 20_000, 1_000]);
      const ttl = await ttlOf("refused");
      await assertRoomAt(times[0]! + bench.WINDOW_MS, 3, () => many(40, "refused"));
      assert.deepEqual(await admissions("refused"), times);
      assert.ok((await ttlOf("refused")) <= ttl);
    },
  );

  rule("of an account and of a key both apply, or the request costs neither", async () => {
    for (const [key, limit, served] of [
      [BOTH, 4, 4],
      [undefined, 6, 2],
    ] as const) {
      const told = await many(10, "both", key);
      assert.deepEqual(bench.countAll(told), { 200: served, 429: 10 - served });
      for (const each of bench.ofStatus(told, 429)) bench.assertLimited(each, limit);
    }
    assert.deepEqual(bench.countAll(await many(5, "both", BOTH)), { 429: 5 });
    const keys: string[] = (await redis.command("KEYS", "*")).sort();
    const names = keys.map((key) => key.replace(/[0-9a-f]{16}$/, ""));
    assert.deepEqual(names, [bench.windowKey("both"), bench.windowKey("both", "key key_")]);
  });

  rule("of a key use the same window, whether its account has a limit or not", async () => {
    await gateway.reload({ ...options, accounts: { ...accounts, both: { rpm: null } } });
    assert.deepEqual(bench.countAll(await many(5, "both", BOTH)), { 200: 4, 429: 1 });
    await gateway.reload(options);
    assert.deepEqual(bench.countAll(await many(5, "both", BOTH)), { 429: 5 });
  });

  rule("no longer count a request that is rejected for its tokens, here and in Redis", async () => {
    const seeded = await seed("wordy", [1_000]);
    const codes = (await many(20, "wordy")).map(({ error }) => error?.code);
    assert.deepEqual(codes, Array(20).fill("tokens_per_minute_exceeded"));
    const isBack = async () => (await admissions("wordy")).length === 1;
    await until(isBack, "only the other admission to count");
    assert.deepEqual(await admissions("wordy"), seeded);
    await until(async () => {
      const { limits: now } = await gateway.status();
      return now.accounts.find(({ account }: any) => account === "wordy").used === 0;
    }, "nothing to count here");
  });

  rule("expire with the last admission, and a minute after a clock was set back", async () => {
    await ask("both", BOTH);
    await seed("expiring", [59_000]);
    await redis.command("PEXPIRE", bench.windowKey("expiring"), 20_000);
    await ask("expiring");
    await seed("back", [20_000, 1_000, -30_000]); // the last is from before the clock change
    await redis.command("PEXPIRE", bench.windowKey("back"), bench.WINDOW_MS + 30_000);
    for (const each of await many(10, "back")) bench.assertLimited(each, 3);
    const keys: string[] = await redis.command("KEYS", "*");
    assert.equal(keys.length, 4);
    for (const key of keys) {
      const ttl = await redis.command("PTTL", key);
      assert.ok(ttl > 40_000 && ttl <= bench.WINDOW_MS, `${key}: ${ttl}`);
    }
  });

  rule("reject without keeping the request's concurrency slot", async () => {
    assert.equal((await ask("single")).status, 200);
    for (let round = 0; round < 3; round += 1) bench.assertLimited(await ask("single"), 1);
    await redis.command("DEL", bench.windowKey("single"));
    assert.equal((await ask("single")).status, 200);
  });

  rule(
    "run one script per request, loaded once, and send simultaneous requests together",
    async () => {
      const calls = async () => {
        const info: string = await redis.command("INFO", "commandstats");
        return ["evalsha", "eval"].map((command) =>
          Number(new RegExp(`^cmdstat_${command}:calls=(\\d+)`, "m").exec(info)?.[1] ?? 0),
        );
      };
      const reads = async () =>
        Number(/^total_reads_processed:(\d+)/m.exec(await redis.command("INFO", "stats"))?.[1]);
      await redis.command("SCRIPT", "FLUSH");
      await redis.command("CONFIG", "RESETSTAT");
      assert.equal(
        (await ask("both", BOTH)).status,
        200,
        "Redis is told a script it does not know",
      );
      /** Each report checks whether the store responds. */
      async function assertCalls(least: number): Promise<void> {
        const [evalsha = 0, whole] = await calls();
        assert.ok(evalsha >= least && evalsha < least + 10, `${evalsha}`);
        assert.equal(whole, 1);
      }
      await assertCalls(1);
      const before = await reads();
      assert.deepEqual(bench.countAll(await many(400, "counted")), { 200: 50, 429: 350 });
      const packets = (await reads()) - before;
      await assertCalls(401);
      assert.ok(packets < 200, `400 requests came in ${packets} packets`);
    },
  );
});
