// The model of the stored scripts, on which the simulation relies, compared with the scripts in a
// real Redis: the same random calls get the same answers. Skipped if Redis or the package `redis`
// (npm ci in test/clients) is not installed; REQUIRE_REDIS=1 forbids that.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import {
  BUDGETS,
  emptyData,
  runScript,
  WINDOWS,
} from "../../../../scripts/simulate/stored-scripts.ts";
import { LONG } from "../../../support/long.ts";
import { createRandom } from "../../../support/random.ts";
import { noRedis, startRedis, type Redis } from "../../../support/redis.ts";

const CALLS = LONG ? 2_000 : 150;
const WINDOW_MS = 60_000;
const LEASE_MS = 15_000;
const START = Date.UTC(2026, 6, 31, 23, 59);

describe("the model of the stored scripts", { skip: noRedis() }, () => {
  const seed = Number(process.env["SIMULATE_SEED"] ?? Date.now() % 100_000);
  let redis: Redis;
  before(async () => {
    redis = await startRedis();
  });
  after(() => redis.close());

  type Words = readonly string[];

  /** Makes the same calls of both, with times a little after or before the previous call. */
  async function compare(
    script: string,
    next: (random: ReturnType<typeof createRandom>, answer: unknown) => Words,
  ) {
    const random = createRandom(seed);
    const data = emptyData();
    let now = START;
    let answer: unknown;
    await redis.command("FLUSHALL");
    for (let call = 1; call <= CALLS; call += 1) {
      now += random.between(-2_000, 9_000);
      const words = next(random, answer);
      const microseconds = (now % 1_000) * 1_000 + random.between(0, 999);
      answer = await redis.command("EVAL", at(script, now, microseconds), ...words);
      const told = `seed ${seed}, call ${call}: ${words.join(" ")}`;
      const time = Math.floor(now / 1_000) * 1_000 + microseconds / 1_000;
      assert.deepEqual(runScript(data, script, words, time), answer, told);
    }
  }

  /** The script, at a second and microseconds after it. */
  const at = (script: string, now: number, microseconds: number): string =>
    script.replaceAll("redis.call('TIME')", `{'${Math.floor(now / 1_000)}', '${microseconds}'}`);

  it("never admits more than the limit in a minute, to the microsecond", async () => {
    await redis.command("FLUSHALL");
    const words = ["1", "one", String(WINDOW_MS), "0", "1"];
    const first = START + WINDOW_MS;
    for (const [after, microseconds, admitted, resetMs] of [
      [0, 999, 1, 60_000],
      [59_000, 998_999, 0, 2],
      [60_000, 0, 0, 1],
      [60_000, 998, 0, 1],
      [60_000, 999, 1, 60_000],
    ] as const) {
      const script = at(WINDOWS, first + after, microseconds);
      const [isAdmitted, , figures] = await redis.command("EVAL", script, ...words);
      assert.deepEqual([isAdmitted, figures], [admitted, [[1, resetMs]]], `${after}`);
    }
  });

  it("never admits more tokens than the limit in a minute, to the microsecond", async () => {
    await redis.command("FLUSHALL");
    const none = [[0, 0]];
    const task = { token: "a", tokens: 1, offers: [[none[0], none[0]]], budgets: [], limits: [1] };
    for (const [after, microseconds, admitted, resetMs] of [
      [0, 999, 1, 0],
      [60_000, 0, 0, 1],
      [60_000, 998, 0, 1],
      [60_000, 1_000, 1, 0],
      [120_000, 1_999, 0, 1],
      [120_000, 2_000, 1, 0],
      [119_000, 999_000, 0, 60_000], // the clock was set back
    ] as const) {
      const call = { gateway: "a", window: WINDOW_MS, lease: LEASE_MS, tasks: [task] };
      const words = ["2", "list", "counts", JSON.stringify(call)];
      const script = at(BUDGETS, START + after, microseconds);
      const [[isAdmitted, , waitMs]] = await redis.command("EVAL", script, ...words);
      assert.deepEqual([isAdmitted, waitMs], [admitted, resetMs], `${after}`);
    }
  });

  it("has a script that drops rows of earlier periods whose gateways are gone", async () => {
    await redis.command("FLUSHALL");
    const budget = { period: "2026-08", amount: [9, 0], spent: [0, 0], held: [0, 0], writes: 0 };
    const tasks = [{ token: "", tokens: 0, offers: [], budgets: [budget], limits: [] }];
    const input = JSON.stringify({ gateway: "own", window: WINDOW_MS, lease: LEASE_MS, tasks });
    const day = 86_400_000;
    for (const [name, period, expired] of [
      ["gone", "2026-07", 1.1 * day],
      ["down", "2026-07", 0.9 * day],
      ["counts", "2026-08", 9 * day],
    ] as const)
      await redis.command("HSET", "key", name, `${period} 1 0 1 0 ${START - expired} 1 1`);
    const [[, , , [[, , spent, held]]]] = await redis.command(
      "EVAL",
      ...[at(BUDGETS, START, 0), "1", "key", input],
    );
    assert.deepEqual(
      [spent, held],
      [
        [1, 0],
        [0, 0],
      ],
    );
    assert.deepEqual((await redis.command("HKEYS", "key")).sort(), ["counts", "down", "own"]);
  });

  it("has a script that forgets tokens if their list was evicted", async () => {
    await redis.command("FLUSHALL");
    const zero = [
      [0, 0],
      [0, 0],
    ];
    const task = { token: "a", tokens: 9, offers: [zero], budgets: [], limits: [10] };
    const call = { gateway: "a", window: WINDOW_MS, lease: LEASE_MS, tasks: [task] };
    const admit = async (): Promise<number> =>
      (await redis.command("EVAL", BUDGETS, "2", "list", "counts", JSON.stringify(call)))[0][0];
    assert.deepEqual([await admit(), await admit()], [1, 0]);
    await redis.command("DEL", "list");
    assert.deepEqual([await admit(), await admit()], [1, 0]);
  });

  it("has a script that fails without memory, even to reject a request", async () => {
    const tasks = [
      {
        token: "",
        tokens: 1,
        offers: [
          [
            [0, 0],
            [0, 0],
          ],
        ],
        budgets: [],
        limits: [0],
      },
    ];
    const input = JSON.stringify({ gateway: "a", window: WINDOW_MS, lease: LEASE_MS, tasks });
    await redis.command("CONFIG", "SET", "maxmemory", 1);
    for (const words of [
      [WINDOWS, "1", "one", String(WINDOW_MS), "0", "0"],
      [BUDGETS, "2", "list", "counts", input],
    ])
      await assert.rejects(redis.command("EVAL", ...words), /^Error: OOM/);
    await redis.command("CONFIG", "SET", "maxmemory", 0);
  });

  it("admits to windows and takes admissions back as the script of limits does", async () => {
    await compare(WINDOWS, ({ random, pick }, answer) => {
      const keys = random() < 0.5 ? ["one"] : ["one", "two"];
      const refunded = Array.isArray(answer) && random() < 0.1 ? answer[1] : 0;
      return [
        keys.length,
        ...keys,
        WINDOW_MS,
        refunded,
        ...keys.map(() => pick([0, 2, 3, 7, 7])),
      ].map(String);
    });
  });

  it("decides about budgets and tokens as the script of budgets does", async () => {
    let tokens = 0;
    await compare(BUDGETS, ({ random, pick, between }) => {
      const parts = (most: number) => [between(0, most), between(0, 999_999_999_999)];
      const gateway = pick(["a", "b", "c"]);
      const budgetOf = (period: string) => ({
        period,
        amount: [9, 0],
        spent: parts(1),
        held: parts(1),
        writes: between(0, 9),
      });
      const keys: string[] = [];
      const task = () => {
        const budgets = ["day", "month"].filter(() => random() < 0.7);
        const limits = ["few", "many"].filter(() => random() < 0.4);
        keys.push(...budgets, ...limits.flatMap((name) => [`${name} list`, `${name} counts`]));
        const offers = [
          [parts(4), parts(1)],
          [parts(1), pick([[0, 0], parts(1)])],
        ].slice(pick([0, 1, 2]));
        if (offers.length > 0) tokens += 1;
        return {
          token: `token ${offers.length > 0 ? tokens : between(1, tokens + 1)}`,
          tokens: between(0, 60),
          offers,
          budgets: budgets.map(() => budgetOf(pick(["2026-07", "2026-08"]))),
          limits: limits.map((name) => (name === "few" ? 100 : 300)),
        };
      };
      const tasks = Array.from({ length: between(1, 3) }, task);
      const call = { gateway, window: WINDOW_MS, lease: LEASE_MS, tasks };
      return [String(keys.length), ...keys, JSON.stringify(call)];
    });
  });
});
