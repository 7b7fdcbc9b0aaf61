// The windows of a gateway's limits in Redis, a real one. Where a minute would have to pass, the
// admissions of the last one are written into Redis instead. Skipped where Redis or the package
// `redis` (npm ci in test/clients) is not installed; REQUIRE_REDIS=1 forbids that.

import assert from "node:assert/strict";
import { after, before, describe, it, type TestContext } from "node:test";
import { noRedis, startRedis, type Redis } from "../../../support/redis.ts";
import { suiteScope } from "../../../support/scope.ts";
import { until } from "../../../support/wait.ts";
import {
  assertLimited,
  countAll,
  keyOf,
  ofStatus,
  post,
  serve,
  timesOf,
  WINDOW_MS,
  windowKey,
  type Gateway,
  type Options,
  type Told,
} from "./bench.ts";

let redis: Redis;
let gateway: Gateway;

/** Writes admissions of so long ago into an account's window, as they would stand there. */
async function seed(account: string, ages: readonly number[]): Promise<number[]> {
  const now = await redis.now();
  const times = ages.map((age) => now - age).sort((a, b) => a - b);
  await redis.command("RPUSH", windowKey(account), ...times);
  await redis.command("PEXPIRE", windowKey(account), WINDOW_MS);
  return times;
}

const admissions = (account: string, name?: string) => timesOf(redis, windowKey(account, name));
const ttlOf = (account: string): Promise<number> => redis.command("PTTL", windowKey(account));

/** Refused by a limit, each for as many seconds as there are until `time`, and no less. */
async function assertRoomAt(time: number, limit: number, asked: () => Promise<readonly Told[]>) {
  const secondsLeft = async () => Math.max(1, Math.ceil((time - (await redis.now())) / 1000));
  const [most, told, least] = [await secondsLeft(), await asked(), await secondsLeft()];
  for (const each of told) {
    const named = assertLimited(each, limit);
    assert.ok(least <= named && named <= most, `${least} <= ${named} <= ${most}`);
  }
}

/**
 * Redis was too slow, which happens where the machine is busy enough: what a test sees then is not
 * what it looks at.
 */
class TooSlow extends Error {}

async function ask(account: string, key = keyOf(account)): Promise<Told> {
  const told = await post(gateway.url, key);
  if (told.status === 503) throw new TooSlow();
  return told;
}

async function many(requests: number, account: string, key?: string): Promise<Told[]> {
  const asked = Array.from({ length: requests }, () => ask(account, key));
  await Promise.allSettled(asked);
  return await Promise.all(asked);
}

/** A test from an empty Redis on, again if Redis was too slow in it. */
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
  /** An account for each test, so that none meets what the gateway remembers of another. */
  const limits = {
    ...{ probe: 1, none: 0, twenty: 20, both: 6, refused: 3, exact: 20_000 },
    ...{ expiring: 5, back: 3, lowered: 10, counted: 50 },
  };
  const accounts = {
    ...Object.fromEntries(Object.entries(limits).map(([name, rpm]) => [name, { rpm }])),
    wordy: { rpm: 30, tokens_per_minute: 1 },
    single: { rpm: 1, max_in_flight: 1 },
  };
  let options: Options;
  before(async () => {
    redis = await startRedis();
    const keys = [{ account: "both", key: BOTH, rpm: 4 }];
    options = { store: redis.url, accounts, keys };
    gateway = await serve(scope, options);
  });
  after(() => redis?.close());

  rule("of 0 admit nothing, ever", async () => {
    for (const told of await many(3, "none")) assert.equal(assertLimited(told, 0), 60);
    assert.deepEqual(await redis.command("KEYS", "*"), []);
  });

  rule(
    "that refuse a request say when there is room; it costs nothing, and holds no key alive",
    async () => {
      const times = await seed("refused", [37_300, 20_000, 1_000]);
      const ttl = await ttlOf("refused");
      await assertRoomAt(times[0]! + WINDOW_MS, 3, () => many(40, "refused"));
      assert.deepEqual(await admissions("refused"), times);
      assert.ok((await ttlOf("refused")) <= ttl);
    },
  );

  rule("of an account and of a key hold both, or the request costs neither", async () => {
    const limited = await many(10, "both", BOTH);
    assert.deepEqual(countAll(limited), { 200: 4, 429: 6 });
    for (const each of ofStatus(limited, 429)) assertLimited(each, 4);
    const own = await admissions("both");
    assert.equal(own.length, 4, "what its key refused costs the account nothing");
    const other = await many(10, "both");
    assert.deepEqual(countAll(other), { 200: 2, 429: 8 });
    for (const each of ofStatus(other, 429)) assertLimited(each, 6);
    assert.deepEqual(countAll(await many(5, "both", BOTH)), { 429: 5 });
    const keys: string[] = (await redis.command("KEYS", "*")).sort();
    const names = keys.map((key) => key.replace(/[0-9a-f]{16}$/, ""));
    assert.deepEqual(names, [windowKey("both"), windowKey("both", "key key_")]);
    const counts = keys.map(async (key) => (await timesOf(redis, key)).length);
    assert.deepEqual(await Promise.all(counts), [6, 4]);
  });

  rule(
    "of a key are counted in the same window, whether its account has a limit or not",
    async () => {
      await gateway.reload({ ...options, accounts: { ...accounts, both: { rpm: null } } });
      assert.deepEqual(countAll(await many(5, "both", BOTH)), { 200: 4, 429: 1 });
      await gateway.reload(options);
      assert.deepEqual(countAll(await many(5, "both", BOTH)), { 429: 5 });
    },
  );

  rule("count a request no longer that is refused for its tokens, here and in Redis", async () => {
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

  rule("forget what is 60 seconds old, to the millisecond", async () => {
    const eachMs = Array.from({ length: 10_001 }, (_, at) => 55_000 + at);
    const seeded = await seed("exact", eachMs);
    const admitted: number[] = [];
    for (let round = 0; round < 5; round += 1) {
      const { headers } = await ask("exact");
      const times = await admissions("exact");
      const time = times.at(-1)!;
      const standing = [...seeded.filter((each) => each + WINDOW_MS > time), ...admitted, time];
      assert.deepEqual(times, standing);
      const isSome = standing.length > 10 && standing.length < 10_000;
      assert.ok(isSome, `${standing.length} stand in it: some are old enough, some are not`);
      assert.equal(headers["x-ratelimit-remaining-requests"], String(20_000 - standing.length));
      admitted.push(time);
    }
  });

  rule("expire with the last admission", async () => {
    await ask("both", BOTH);
    await seed("expiring", [59_000]);
    await redis.command("PEXPIRE", windowKey("expiring"), 20_000);
    await ask("expiring");
    const keys: string[] = await redis.command("KEYS", "*");
    assert.equal(keys.length, 3);
    for (const key of keys) {
      const ttl = await redis.command("PTTL", key);
      assert.ok(ttl > 40_000 && ttl <= WINDOW_MS, `${key}: ${ttl}`);
    }
  });

  rule(
    "admit no more after a clock that was set back, and refuse nobody for longer than a minute",
    async () => {
      const times = await seed("back", [20_000, -30_000]); // the second before the clock was set
      const expire = () => redis.command("PEXPIRE", windowKey("back"), WINDOW_MS + 30_000);
      await expire();
      const told = await many(10, "back");
      assert.deepEqual(countAll(told), { 200: 1, 429: 9 });
      for (const each of ofStatus(told, 429)) assertLimited(each, 3);
      assert.deepEqual(await admissions("back"), [...times, times[1]]);
      await expire();
      assert.deepEqual(countAll(await many(10, "back")), { 429: 10 });
      assert.ok((await ttlOf("back")) <= WINDOW_MS);
    },
  );

  rule("that are lowered hold at once, until enough of their admissions have gone", async () => {
    await gateway.reload(options);
    const times = await seed("lowered", [55_000, 50_000, 45_000, 40_000, 35_000, 30_000]);
    assert.equal((await ask("lowered")).headers["x-ratelimit-remaining-requests"], "3");
    await gateway.reload({ ...options, accounts: { ...accounts, lowered: { rpm: 4 } } });
    // Of seven, four have to go.
    await assertRoomAt(times[3]! + WINDOW_MS, 4, () => many(5, "lowered"));
  });

  rule("refuse without keeping the place in flight that the request had", async () => {
    assert.equal((await ask("single")).status, 200);
    for (let round = 0; round < 3; round += 1) assertLimited(await ask("single"), 1);
    await redis.command("DEL", windowKey("single"));
    assert.equal((await ask("single")).status, 200);
  });

  rule(
    "are one script a request, loaded once; what is asked at once travels together",
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
      /** Each report asks whether the store answers. */
      async function assertCalls(least: number): Promise<void> {
        const [evalsha = 0, whole] = await calls();
        assert.ok(evalsha >= least && evalsha < least + 10, `${evalsha}`);
        assert.equal(whole, 1);
      }
      await assertCalls(1);
      const before = await reads();
      assert.deepEqual(countAll(await many(400, "counted")), { 200: 50, 429: 350 });
      const packets = (await reads()) - before;
      await assertCalls(401);
      assert.ok(packets < 200, `400 requests came in ${packets} packets`);
    },
  );
});
