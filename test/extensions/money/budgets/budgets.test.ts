// Budgets of accounts and keys over real sockets: the exact limit, periods, holds and their
// release, restarts, reloads, and many requests at once.

import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { amountOf, pico } from "../../../../scripts/reconcile/money.ts";
import { entries, only, PRICE, priced, settled, spendLines, sum } from "../../../support/books.ts";
import { checkConfig } from "../../../support/config.ts";
import { folder } from "../../../support/folder.ts";
import { configFor, json, KEY, merge, startGateway, user } from "../../../support/gateway.ts";
import * as provided from "../../../support/provider.ts";
import { until } from "../../../support/wait.ts";
import { begin, budget, unbounded } from "./processes.ts";

const { chunk, held, speak, startProvider, status } = provided;

/** The cost of a request at PRICE with the provider's USAGE. */
const COST = "0.000089000007";
/** The hold of such a request with max_tokens 7: 57 bytes of JSON at the dearest input price. */
const HOLD = "0.000141250007";
const ASK = { max_tokens: 7 };
/** 75 per million tokens: the longest reply of this model costs 9.60. */
const DEAR = { price: { input_cache_miss: 15, output: 75 }, max_output_tokens: 128_000 };

const budgetFor = (costs: bigint, holds: bigint, more = 0n): object =>
  budget(costs * pico(COST) + holds * pico(HOLD) + more);
const with_ = (...parts: readonly object[]): object =>
  parts.reduce((whole, part) => merge(whole, part) as object, {});
const errorOf = ({ text }: { readonly text: string }) => JSON.parse(text).error;
const limitsSent = ({ asked }: { readonly asked: readonly { readonly body: any }[] }) =>
  asked.map(({ body }) => body.max_tokens);

async function standing(gw: { readonly gateway: { adminAddress(): string | undefined } }) {
  return (await json(await fetch(`${gw.gateway.adminAddress()}/status`))).budgets;
}

/** For each budget warning: its owner, the level and the amount spent. */
const warningsOf = ({ diagnostics }: { readonly diagnostics: readonly any[] }): unknown[] =>
  diagnostics
    .filter((each) => each.event === "budget_used")
    .map(({ limit, percent, spent }) => [limit, percent, spent]);

describe("a budget", () => {
  it("admits what fits, to the pico-unit", async (t) => {
    const enough = await priced(t, { m: speak("Fine.") }, budgetFor(0n, 1n));
    assert.equal((await enough.ask(ASK)).status, 200);
    const { open, settle } = only(enough.dir);
    assert.deepEqual([open["hold"], settle["cost"]], [HOLD, COST]);

    const short = await priced(t, { m: speak("Fine.") }, budgetFor(0n, 1n, -1n));
    const refused = await short.ask(ASK);
    assert.deepEqual([refused.status, short.provider.asked.length], [402, 0]);
    assert.deepEqual(spendLines(short.dir), []);
    const { type, code, message } = errorOf(refused);
    assert.deepEqual([type, code], ["billing_error", "insufficient_balance"]);
    assert.match(message, /0\.000141250006 is left, and this request may cost 0\.000141250007/);
    assert.match(message, /The budget does not renew\.$/);
  });

  it("holds while a request runs without warning, and releases the hold when its client leaves", async (t) => {
    const endless = held().behaviour;
    const m: provided.Behaviour = (asked) =>
      (asked.body["stream"] ? endless : speak("Fine."))(asked);
    const { gw, ask } = await priced(t, { m }, budgetFor(0n, 1n));
    const open = await begin(gw.url, { model: "m", ...ASK });
    assert.equal((await standing(gw))[0].held, HOLD);
    assert.match((await ask(ASK)).text, /0\.000141250007 is held for running requests/);
    assert.equal((await ask({ max_tokens: 1_000_000 })).status, 402);
    assert.deepEqual(warningsOf(gw), []);
    open.leave();
    await until(async () => (await standing(gw))[0].held === "0", "the hold to be given back");
  });

  for (const [period, begins, ends] of [
    ["day", "2026-11-28T23:59:59.000Z", "2026-11-29T00:00:00.000Z"],
    ["month", "2026-11-30T23:59:59.000Z", "2026-12-01T00:00:00.000Z"],
  ] as const)
    it(`of a ${period} is renewed at the end of the period, in UTC`, async (t) => {
      let now = Date.parse(begins);
      const over = budget(pico(HOLD), period);
      const { ask } = await priced(t, { m: speak("Fine.") }, over, { now: () => now });
      assert.equal((await ask(ASK)).status, 200);
      const { message } = errorOf(await ask(ASK));
      assert.ok(message.endsWith(`The budget renews at ${ends}.`), message);
      now += 999;
      assert.equal((await ask(ASK)).status, 402);
      now += 1;
      assert.deepEqual([(await ask(ASK)).status, (await ask(ASK)).status], [200, 402]);
    });

  it("counts a cost on the day on which its request ended, even if its line is written later", async (t) => {
    let dir: string | undefined;
    const now = () => {
      const isWritten = dir !== undefined && spendLines(dir).some(({ type }) => type === "settle");
      return Date.parse(isWritten ? "2026-11-29T00:00:00.000Z" : "2026-11-28T23:59:59.999Z");
    };
    const bench = await priced(t, { m: speak("Fine.") }, budget(pico(HOLD), "day"), { now });
    dir = bench.dir;
    assert.deepEqual([(await bench.ask(ASK)).status, (await bench.ask(ASK)).status], [200, 200]);
  });

  it("of a key applies besides that of its account", async (t) => {
    const own = { account: "acme", key: KEY, budget: { amount: HOLD, period: "day" } };
    const over = with_(budget(pico("1"), "day"), {
      keys: [own, { account: "acme", key: "sk-other" }],
    });
    const { ask } = await priced(t, { m: speak("Fine.") }, over);
    assert.equal((await ask(ASK)).status, 200);
    assert.match(errorOf(await ask(ASK)).message, /this API key has spent/);
    assert.equal((await ask(ASK, { authorization: "Bearer sk-other" })).status, 200);
  });

  it("does not affect free requests, or the open lines of accounts without a budget", async (t) => {
    const price = { input_cache_hit: 0, input_cache_miss: 0, output: 0 };
    const over = with_(budget(0n), { models: { free: { price } } });
    const free = await priced(t, { m: speak("Fine."), free: speak("Fine.") }, over);
    assert.equal((await free.ask({ ...ASK, model: "free" })).status, 200);
    assert.equal((await free.ask({ ...ASK, model: "m" })).status, 402);
    const without = await priced(t, { m: speak("Fine.") });
    await without.ask(ASK);
    assert.ok(!("hold" in only(without.dir).open));
  });

  it("is an exact decimal with a period, and nothing else", () => {
    const check = (value: unknown) =>
      checkConfig(
        configFor("http://127.0.0.1:1", ["m"], { accounts: { acme: { budget: value } } }),
      );
    const good = ["0", "1000000000", "0.000000000001", "100.00"];
    for (const amount of good) check({ amount, period: "total" });
    const bad = ["1.0000000000001", "1000000000.000000000001", "-1", "1e3", 1];
    const whole = [{ amount: "1", period: "week" }, { amount: "1" }];
    const wrong = [...bad.map((amount) => ({ amount, period: "day" })), ...whole];
    for (const value of [...wrong, { amount: "1", period: "day", currency: "USD" }])
      assert.throws(() => check(value), /accounts\.acme\.budget/, JSON.stringify(value));
  });
});

describe("a request without max_tokens", () => {
  const dear = (amount: bigint, model: object = DEAR): object =>
    with_(budget(amount), { models: { m: model } });

  it("never overspends a budget, 40 at once", async (t) => {
    const over = dear(pico("5"), { ...DEAR, max_output_tokens: 4_000 });
    const { gw, ask, dir, provider } = await priced(t, { m: unbounded }, over);
    const asked = Array.from({ length: 40 }, (_, at) => ask({ stream: at % 2 === 0 }));
    const statuses = (await Promise.all(asked)).map((answer) => answer.status);
    const served = statuses.filter((each) => each === 200).length;
    assert.equal(statuses.filter((each) => each === 402).length, 40 - served);
    assert.ok(served >= 16, `${served} were served`);
    for (const limit of limitsSent(provider)) assert.ok(limit >= 256 && limit <= 4_000);
    const spent = (await settled(dir, served)).reduce((all, { cost }) => all + pico(cost), 0n);
    for (const { open, settle } of entries(dir))
      assert.ok(pico(settle["cost"]) <= pico(open["hold"]), "no more than was held");
    assert.ok(spent <= pico("5"), `${amountOf(spent)} was spent`);
    const [row] = await standing(gw);
    assert.deepEqual([row.spent, row.held], [amountOf(spent), "0"]);
  });

  // 57 bytes of prompt at 15, 256 tokens at 75.
  const least = 57n * 15_000_000n + 256n * 75_000_000n;
  for (const [amount, sent] of [
    [pico("5"), 16_000], // 1.20 is held: the free 5.00 is at least four times that
    [pico("39"), 128_000],
    [least, 256],
    [least - 1n, undefined],
  ] as const)
    it(`is sent with max_tokens ${sent ?? "unset"} if ${amountOf(amount)} is free`, async (t) => {
      const { ask, provider } = await priced(t, { m: unbounded }, dear(amount));
      const expected = sent ? /"finish_reason":"length"/ : /this request may cost 0\.020055\./;
      assert.match((await ask()).text, expected);
      assert.deepEqual(limitsSent(provider), sent ? [sent] : []);
    });

  it("sends each model of an alias at most the tokens held for it", async (t) => {
    const long = { max_output_tokens: 100_000, price: { input_cache_miss: 1, output: 1 } };
    const over = with_(dear(pico("1000"), { price: DEAR.price }), {
      models: { long },
      aliases: { any: { models: ["long", "m"] } },
      retry: { max_retries: 0 },
    });
    const { ask, dir, provider } = await priced(t, { long: status(500, {}), m: unbounded }, over);
    assert.equal((await ask({ model: "any" })).status, 200);
    assert.deepEqual(limitsSent(provider), [100_000, 8_192]);
    const { open, settle } = only(dir);
    assert.ok(pico(settle["cost"]) <= pico(open["hold"]));
  });

  it("leaves room for the prompt in each model's context window", async (t) => {
    const over = with_(dear(pico("1000"), { max_output_tokens: 8_000, context_tokens: 9_000 }), {
      models: { large: { max_output_tokens: 8_000, context_tokens: 1_000_000 } },
    });
    const { ask, provider } = await priced(t, { m: unbounded, large: speak("Fine.") }, over);
    const messages = user("Four".repeat(2_000)); // 2,000 tokens by estimate, plus half
    for (const model of ["m", "large"]) await ask({ model, messages });
    await ask({ model: "m", messages: user("Four".repeat(8_900)) });
    assert.deepEqual(limitsSent(provider), [6_000, 8_000, 256]);
  });

  it("continues after a break with the rest of its hold", async (t) => {
    const broken = provided.stream([chunk({ content: "One two three four" })], "cut");
    const m = provided.inTurn(broken, unbounded);
    const model = { ...DEAR, max_output_tokens: 1_000, prefill: "plain", recovery: "continue" };
    const { ask, dir, provider } = await priced(t, { m }, dear(pico("5"), model));
    assert.equal((await ask({ stream: true })).status, 200);
    assert.deepEqual(limitsSent(provider), [1_000, 995]);
    const { open, settle } = only(dir);
    assert.equal(settle["attempts"].length, 2);
    assert.ok(pico(settle["cost"]) <= pico(open["hold"]));
  });

  it("is billed at most its allowed tokens if they are estimated", async (t) => {
    const said = [chunk({ content: "Incomprehensibilities ".repeat(100) }), chunk({}, "stop")];
    const { ask, dir } = await priced(t, { m: provided.stream(said) }, budget(pico("5")));
    assert.equal((await ask({ stream: true, max_tokens: 100 })).status, 200);
    const { usage_source: source, usage } = only(dir).settle;
    assert.deepEqual([source, usage.completion_tokens], ["estimated", 100]);
  });
});

describe("the spending counters", () => {
  const plain = (dir = folder()): object => ({ data_dir: dir, models: { m: { price: PRICE } } });

  async function gatewayWith(t: TestContext, config: object) {
    const { url } = await startProvider(t, { m: speak("Fine.") });
    const gw = await startGateway(t, configFor(url, ["m"], config));
    const status = async () =>
      (await gw.chat({ model: "m", messages: user("Say something."), ...ASK })).status;
    const reload = (more: object): void =>
      gw.gateway.reload(checkConfig(configFor(url, ["m"], with_(config, more))));
    const spent = async (): Promise<string> => (await standing(gw))[0]?.spent;
    return { ...gw, status, reload, spent };
  }

  it("include spending before a reload adds the first budget, which applies at once", async (t) => {
    const config = plain();
    const before = await gatewayWith(t, config);
    assert.equal(await before.status(), 200);
    await before.gateway.close();
    const gw = await gatewayWith(t, config);
    const asked = async (more: object, ...statuses: readonly number[]): Promise<void> => {
      gw.reload(more);
      for (const expected of statuses) assert.equal(await gw.status(), expected);
    };
    await asked({}, 200, 200);
    await asked(budgetFor(3n, 1n, -1n), 402);
    assert.equal(await gw.spent(), sum([COST, COST, COST]));
    await asked(budgetFor(3n, 1n), 200, 402);
    await asked(budget(pico("1"), "day"), 200);
    assert.equal(await gw.spent(), sum(Array<string>(5).fill(COST)));
    await asked({ accounts: { acme: { budget: undefined } } }, 200);
    assert.deepEqual(await standing(gw), []);
    await asked(budget(pico("1")), 200);
    assert.equal(await gw.spent(), sum(Array<string>(7).fill(COST)));
  });

  it("warn at 50, 80 and 100 per cent once per period, also after a restart", async (t) => {
    const config = plain();
    const gw = await gatewayWith(t, with_(config, budgetFor(5n, 0n)));
    for (const expected of [200, 200, 200, 200, 402]) assert.equal(await gw.status(), expected);
    const spentBy = (requests: number) => sum(Array<string>(requests).fill(COST));
    const warned = [
      ["account acme", 50, spentBy(3)],
      ["account acme", 80, spentBy(4)],
    ];
    assert.deepEqual(warningsOf(gw), warned);
    gw.reload(budgetFor(4n, 0n));
    for (let round = 0; round < 2; round += 1) assert.equal(await gw.status(), 402);
    assert.deepEqual(warningsOf(gw), [...warned, ["account acme", 100, spentBy(4)]]);
    await gw.gateway.close();
    const again = await gatewayWith(t, with_(config, budgetFor(4n, 0n)));
    assert.equal(await again.status(), 402);
    assert.deepEqual(warningsOf(again), []);
  });
});
