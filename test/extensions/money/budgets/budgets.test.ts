// Budgets of accounts and keys, asked for over real sockets: the exact boundary, periods, what is
// held and given back, restarts, reloads, and many requests at once.

import assert from "node:assert/strict";
import http from "node:http";
import { describe, it, type TestContext } from "node:test";
import { entries, only, PRICE, priced, settled, spendLines, sum } from "../../../support/books.ts";
import { checkConfig } from "../../../support/config.ts";
import { folder } from "../../../support/folder.ts";
import { configFor, json, KEY, merge, startGateway, user } from "../../../support/gateway.ts";
import { LONG } from "../../../support/long.ts";
import {
  chunk,
  completion,
  event,
  held,
  speak,
  startProvider,
  status,
  stream,
  type Behaviour,
} from "../../../support/provider.ts";
import { until, within } from "../../../support/wait.ts";

/** The cost of a request at PRICE with the provider's USAGE. */
const COST = "0.000089000007";
/** What such a request holds with max_tokens 7: 46 bytes and marks at the dearest input price. */
const HOLD = "0.000127500007";
const ASK = { max_tokens: 7 };

const budget = (amount: string, period = "total"): object => ({
  accounts: { acme: { budget: { amount, period } } },
});
const pico = (text: string): bigint => {
  const [units = "", decimals = ""] = text.split(".");
  return BigInt(units + decimals.padEnd(12, "0"));
};
const money = (amount: bigint): string => {
  const text = String(amount).padStart(13, "0");
  return `${text.slice(0, -12)}.${text.slice(-12)}`;
};
const errorOf = ({ text }: { readonly text: string }) => JSON.parse(text).error;

/** How the budgets stand, as the admin listener says. */
async function standing(gw: { readonly gateway: { adminAddress(): string | undefined } }) {
  const response = await fetch(`${gw.gateway.adminAddress()}/status`);
  return (await json(response)).budgets;
}

/** Of each warning that a budget is used: whose it is, the level and what was spent. */
const warningsOf = ({ diagnostics }: { readonly diagnostics: readonly any[] }): unknown[] =>
  diagnostics
    .filter(({ event }) => event === "budget_used")
    .map(({ limit, percent, spent }) => [limit, percent, spent]);

/** A stream that has begun. Returns what leaves it. */
async function beginStream(url: string, more: object = {}): Promise<() => void> {
  const leave = new AbortController();
  const request = http.request(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${KEY}`, "content-type": "application/json" },
    signal: leave.signal,
  });
  request.on("error", () => undefined);
  const begun = new Promise<http.IncomingMessage>((resolve) => request.on("response", resolve));
  const body = { model: "m", messages: user("Say something."), stream: true, ...more };
  request.end(JSON.stringify(body));
  await within(begun, "the stream to begin");
  return () => leave.abort();
}

describe("a budget", () => {
  it("admits what it has room for, to the pico-unit", async (t) => {
    const enough = await priced(t, { m: speak("Fine.") }, budget(HOLD));
    assert.equal((await enough.ask(ASK)).status, 200);
    assert.equal(only(enough.dir).open["hold"], HOLD);
    assert.equal(only(enough.dir).settle["cost"], COST);

    const short = await priced(t, { m: speak("Fine.") }, budget(money(pico(HOLD) - 1n)));
    const refused = await short.ask(ASK);
    assert.equal(refused.status, 402);
    assert.equal(short.provider.asked.length, 0);
    assert.deepEqual(spendLines(short.dir), []);
    const { type, code, message } = errorOf(refused);
    assert.deepEqual([type, code], ["billing_error", "insufficient_balance"]);
    assert.match(message, /0\.000127500006 is left, and this request may cost 0\.000127500007/);
    assert.match(message, /It is not renewed\.$/);
  });

  it("counts what a request cost, and gives the rest back", async (t) => {
    const amount = money(pico(COST) + pico(HOLD));
    const { gw, ask, dir } = await priced(t, { m: speak("Fine.") }, budget(amount));
    assert.deepEqual(
      (await standing(gw)).map((row: any) => [row.account, row.spent, row.held]),
      [["acme", "0", "0"]],
    );
    assert.equal((await ask(ASK)).status, 200);
    assert.equal((await ask(ASK)).status, 200);
    assert.equal((await ask(ASK)).status, 402);
    assert.equal(entries(dir).length, 2);
    const [row] = await standing(gw);
    assert.equal(row.spent, sum([COST, COST]));
    assert.equal(row.held, "0");
  });

  it("holds while a request runs, and gives it back when the client has left", async (t) => {
    const { behaviour } = held();
    const { gw, ask } = await priced(t, { m: behaviour }, budget(HOLD));
    const leave = await beginStream(gw.url, ASK);
    assert.equal((await standing(gw))[0].held, HOLD);
    const refused = await ask(ASK);
    assert.equal(refused.status, 402);
    assert.match(errorOf(refused).message, /0\.000127500007 is held for requests that run/);
    leave();
    await until(async () => (await standing(gw))[0].held === "0", "the hold to be given back");
  });

  it("gives everything back where a provider fails", async (t) => {
    const { gw, ask } = await priced(t, { m: status(500) }, budget(HOLD));
    for (let round = 0; round < 3; round += 1) assert.equal((await ask(ASK)).status, 503);
    const [row] = await standing(gw);
    assert.deepEqual([row.spent, row.held], ["0", "0"]);
  });

  it("is renewed when its period ends, in UTC", async (t) => {
    let now = Date.parse("2026-11-30T23:59:59.000Z");
    const { ask } = await priced(t, { m: speak("Fine.") }, budget(HOLD, "month"), {
      now: () => now,
    });
    assert.equal((await ask(ASK)).status, 200);
    const refused = await ask(ASK);
    assert.equal(refused.status, 402);
    assert.match(errorOf(refused).message, /It is renewed at 2026-12-01T00:00:00\.000Z\.$/);
    now += 999;
    assert.equal((await ask(ASK)).status, 402);
    now += 1;
    assert.equal((await ask(ASK)).status, 200);
    assert.equal((await ask(ASK)).status, 402);
  });

  it("of a key stands beside that of its account", async (t) => {
    const over = {
      accounts: { acme: { budget: { amount: "1", period: "day" } } },
      keys: [
        { account: "acme", key: KEY, budget: { amount: HOLD, period: "day" } },
        { account: "acme", key: "sk-other" },
      ],
    };
    const { ask } = await priced(t, { m: speak("Fine.") }, over);
    assert.equal((await ask(ASK)).status, 200);
    const refused = await ask(ASK);
    assert.equal(refused.status, 402);
    assert.match(errorOf(refused).message, /the budget of this API key/);
    assert.equal((await ask(ASK, { authorization: "Bearer sk-other" })).status, 200);
  });

  it("takes the dearest candidate of an alias, and the dearest price of a prompt", async (t) => {
    const dear = { input_cache_hit: 3, input_cache_miss: 2, output: 20 };
    const { ask, dir } = await priced(
      t,
      { cheap: speak("Fine."), dear: speak("Fine.") },
      merge(budget("1"), {
        models: { dear: { price: dear } },
        aliases: { any: { models: ["cheap", "dear"] } },
      }) as object,
    );
    await ask({ ...ASK, model: "any" });
    assert.equal(only(dir).open["hold"], "0.000278"); // 46 tokens at 3, 7 at 20
  });

  it("leaves requests alone that cost nothing, and open lines of accounts without one", async (t) => {
    const free = await priced(
      t,
      { m: speak("Fine."), free: speak("Fine.") },
      {
        ...budget("0"),
        models: { free: { price: { input_cache_hit: 0, input_cache_miss: 0, output: 0 } } },
      },
    );
    assert.equal((await free.ask({ ...ASK, model: "free" })).status, 200);
    assert.equal((await free.ask({ ...ASK, model: "m" })).status, 402);
    const without = await priced(t, { m: speak("Fine.") });
    await without.ask(ASK);
    assert.ok(!("hold" in only(without.dir).open));
  });
});

describe("what a budget may be", () => {
  const withBudget = (value: unknown) =>
    configFor("http://127.0.0.1:1", ["m"], { accounts: { acme: { budget: value } } });

  for (const bad of [
    { amount: "1.0000000000001", period: "day" },
    { amount: "1000000000.000000000001", period: "day" },
    { amount: "-1", period: "day" },
    { amount: "1e3", period: "day" },
    { amount: 1, period: "day" },
    { amount: "1", period: "week" },
    { amount: "1" },
    { amount: "1", period: "day", currency: "USD" },
  ])
    it(`is not ${JSON.stringify(bad)}`, () =>
      assert.throws(() => checkConfig(withBudget(bad)), /accounts\.acme\.budget/));

  it("is an exact decimal", () => {
    for (const amount of ["0", "1000000000", "0.000000000001", "100.00"])
      checkConfig(withBudget({ amount, period: "total" }));
  });
});

/** Says as much as max_tokens allows, and a million tokens where it says nothing. */
const endless: Behaviour = (asked) => {
  const { max_tokens: completion_tokens = 1_000_000, stream: isStream } = asked.body as any;
  const usage = {
    prompt_tokens: 20,
    completion_tokens,
    total_tokens: 20 + completion_tokens,
  };
  if (!isStream) status(200, completion({ content: "Word." }, "length", { usage }))(asked);
  else stream([chunk({ content: "Word." }), chunk({}, "length"), { ...chunk({}), usage }])(asked);
};

describe("a request without max_tokens", () => {
  /** 75 a million tokens: the whole reply of this model costs 9.60. */
  const DEAR = {
    price: { input_cache_miss: 15, output: 75 },
    max_output_tokens: 128_000,
  };
  const limitsSent = ({ asked }: { readonly asked: readonly { readonly body: any }[] }) =>
    asked.map(({ body }) => body.max_tokens);

  for (const isStream of [false, true])
    it(`never outspends a budget, 200 at once, ${isStream ? "streamed" : "whole"}`, async (t) => {
      const over = merge(budget("5"), {
        models: { m: { ...DEAR, max_output_tokens: 4_000 } },
        server: { max_in_flight: 1_000 },
      }) as object;
      const { gw, ask, dir, provider } = await priced(t, { m: endless }, over);
      const answers = await within(
        Promise.all(Array.from({ length: 200 }, () => ask({ stream: isStream }))),
        "all answers",
        120_000,
      );
      const served = answers.filter((answer) => answer.status === 200);
      assert.equal(answers.filter((answer) => answer.status === 402).length, 200 - served.length);
      assert.ok(served.length >= 16, `${served.length} were served`);
      for (const { text } of served) assert.match(text, /"finish_reason":"length"/);
      const lines = await settled(dir, served.length);
      const spent = lines.reduce((total, { cost }) => total + pico(cost), 0n);
      assert.ok(spent <= pico("5."), `${money(spent)} was spent`);
      for (const { open, settle } of entries(dir))
        assert.ok(pico(settle["cost"]) <= pico(open["hold"]), "no more than was held");
      for (const limit of limitsSent(provider)) assert.ok(limit >= 256 && limit <= 4_000);
      const [row] = await standing(gw);
      assert.deepEqual([pico(row.spent), row.held], [spent, "0"]);
    });

  it("is served by a dear model on a new account, and ends with `length`", async (t) => {
    const { ask, provider } = await priced(
      t,
      { m: endless },
      merge(budget("5"), { models: { m: DEAR } }) as object,
    );
    const answer = await ask();
    assert.equal(answer.status, 200);
    assert.match(answer.text, /"finish_reason":"length"/);
    assert.deepEqual(limitsSent(provider), [16_000]); // 1.20: of 5.00 four times that is free
  });

  it("gets all that the model can say where a quarter of what is free pays for it", async (t) => {
    const { ask, provider } = await priced(
      t,
      { m: speak("Fine.") },
      merge(budget("39"), { models: { m: DEAR } }) as object,
    );
    await ask();
    assert.deepEqual(limitsSent(provider), [128_000]);
  });

  it("is refused where 256 tokens do not fit, to the pico-unit", async (t) => {
    // 46 bytes and marks of prompt at 15, 256 tokens at 75.
    const least = 46n * 15_000_000n + 256n * 75_000_000n;
    const models = { m: DEAR };
    const enough = await priced(
      t,
      { m: endless },
      merge(budget(money(least)), { models }) as object,
    );
    assert.equal((await enough.ask()).status, 200);
    assert.deepEqual(limitsSent(enough.provider), [256]);
    const short = await priced(
      t,
      { m: endless },
      merge(budget(money(least - 1n)), { models }) as object,
    );
    const refused = await short.ask();
    assert.equal(refused.status, 402);
    assert.equal(short.provider.asked.length, 0);
    assert.match(errorOf(refused).message, /this request may cost 0\.01989\./);
  });

  it("with a limit of its own is never cut shorter", async (t) => {
    const { ask, provider } = await priced(
      t,
      { m: speak("Fine.") },
      merge(budget("5"), { models: { m: DEAR } }) as object,
    );
    assert.equal((await ask({ max_tokens: 60_000 })).status, 200);
    assert.equal((await ask({ max_completion_tokens: 70_000 })).status, 402);
    assert.deepEqual(limitsSent(provider), [60_000]);
  });

  it("has no limit where no budget applies", async (t) => {
    const { ask, provider } = await priced(t, { m: speak("Fine.") }, { models: { m: DEAR } });
    await ask();
    assert.deepEqual(limitsSent(provider), [undefined]);
  });

  it("sends each model of an alias no more than is held for it", async (t) => {
    const models = {
      long: { max_output_tokens: 100_000, price: { input_cache_miss: 1, output: 1 } },
      m: { price: DEAR.price },
    };
    const alias = { models: ["long", "m"] };
    const { ask, dir, provider } = await priced(
      t,
      { long: status(500, {}), m: endless },
      merge(budget("1000"), {
        models,
        aliases: { any: alias },
        retry: { max_retries: 0 },
      }) as object,
    );
    assert.equal((await ask({ model: "any" })).status, 200);
    assert.deepEqual(limitsSent(provider), [100_000, 8_192]);
    const { open, settle } = only(dir);
    assert.ok(pico(settle["cost"]) <= pico(open["hold"]));
  });

  it("leaves room for the prompt in the window of each model", async (t) => {
    const { ask, provider } = await priced(
      t,
      { m: endless, large: speak("Fine.") },
      merge(budget("1000"), {
        models: {
          m: { max_output_tokens: 8_000, context_tokens: 9_000 },
          large: { max_output_tokens: 8_000, context_tokens: 1_000_000 },
        },
      }) as object,
    );
    const messages = user("Four".repeat(2_000));
    for (const model of ["m", "large"]) await ask({ model, messages });
    assert.deepEqual(limitsSent(provider), [6_000, 8_000]); // 2,000 tokens by estimate, and a half
    await ask({ model: "m", messages: user("Four".repeat(8_900)) });
    assert.equal(limitsSent(provider).at(-1), 256);
  });

  it("goes on after a break with what is left of its hold", async (t) => {
    const broken: Behaviour = (asked) => {
      const isFirst = (asked.body as any).messages.length === 1;
      if (!isFirst) return endless(asked);
      const { res } = asked;
      res.writeHead(200, { "content-type": "text/event-stream" });
      res.write(event(chunk({ content: "One two three four" })), () => res.destroy());
    };
    const model = { ...DEAR, max_output_tokens: 1_000, prefill: "plain", recovery: "continue" };
    const { ask, dir, provider } = await priced(
      t,
      { m: broken },
      merge(budget("5"), { models: { m: model } }) as object,
    );
    assert.equal((await ask({ stream: true })).status, 200);
    assert.deepEqual(limitsSent(provider), [1_000, 995]);
    const { open, settle } = only(dir);
    assert.equal(settle["attempts"].length, 2);
    assert.ok(pico(settle["cost"]) <= pico(open["hold"]));
  });

  it("is billed no more tokens than it was allowed where they are estimated", async (t) => {
    const unmeasured: Behaviour = ({ res }) => {
      res.writeHead(200, { "content-type": "text/event-stream" });
      for (const part of [
        chunk({ content: "Incomprehensibilities ".repeat(100) }),
        chunk({}, "stop"),
      ])
        res.write(event(part));
      res.end("data: [DONE]\n\n");
    };
    const { ask, dir } = await priced(t, { m: unmeasured }, budget("5"));
    assert.equal((await ask({ stream: true, max_tokens: 100 })).status, 200);
    const { settle } = only(dir);
    assert.equal(settle["usage_source"], "estimated");
    assert.equal(settle["usage"].completion_tokens, 100);
  });
});

describe("the memory of budgets", () => {
  const over = (dir: string, amount: string, more: object = {}) =>
    merge(
      merge(budget(amount), {
        data_dir: dir,
        models: { m: { price: PRICE } },
      }),
      more,
    ) as object;

  async function gatewayAt(t: TestContext, url: string, over: object) {
    const gw = await startGateway(t, configFor(url, ["m"], over));
    const ask = (more: object = {}) =>
      gw.chat({ model: "m", messages: user("Say something."), ...ASK, ...more });
    return { ...gw, ask };
  }

  it("is read from the books at the start", async (t) => {
    const dir = folder();
    const { url } = await startProvider(t, { m: speak("Fine.") });
    for (const period of ["day", "month", "total"]) {
      const config = merge(over(dir, "1"), { accounts: { acme: { budget: { period } } } });
      const gw = await gatewayAt(t, url, config as object);
      const before = (await standing(gw))[0].spent;
      assert.equal((await gw.ask()).status, 200);
      assert.equal((await standing(gw))[0].spent, sum([before, COST]));
      await gw.gateway.close();
    }
    const last = await gatewayAt(t, url, over(dir, money(3n * pico(COST) + pico(HOLD) - 1n)));
    assert.equal((await standing(last))[0].spent, sum([COST, COST, COST]));
    assert.equal((await last.ask()).status, 402);
  });

  it("is read when the first budget comes with a reload, and a changed one counts at once", async (t) => {
    const dir = folder();
    const { url } = await startProvider(t, { m: speak("Fine.") });
    const plain = { data_dir: dir, models: { m: { price: PRICE } } };
    const gw = await gatewayAt(t, url, plain);
    for (let round = 0; round < 3; round += 1) assert.equal((await gw.ask()).status, 200);
    const reload = (more: object): void =>
      gw.gateway.reload(checkConfig(configFor(url, ["m"], merge(plain, more) as object)));
    reload(budget(money(3n * pico(COST) + pico(HOLD) - 1n)));
    assert.equal((await gw.ask()).status, 402);
    assert.equal((await standing(gw))[0].spent, sum([COST, COST, COST]));
    reload(budget(money(3n * pico(COST) + pico(HOLD))));
    assert.equal((await gw.ask()).status, 200);
    assert.equal((await gw.ask()).status, 402);
    reload(budget("1", "day"));
    assert.equal((await gw.ask()).status, 200);
    assert.equal((await standing(gw))[0].spent, sum([COST, COST, COST, COST, COST]));
    reload({});
    assert.equal((await gw.ask()).status, 200);
    assert.deepEqual(await standing(gw), []);
    reload(budget("1"));
    assert.equal((await gw.ask()).status, 200);
    assert.equal((await standing(gw))[0].spent, sum(Array<string>(7).fill(COST)));
  });

  it("of a key is shown no more when a reload has taken it away", async (t) => {
    const { url } = await startProvider(t, { m: speak("Fine.") });
    const config = (more: object): object =>
      configFor(url, ["m"], {
        models: { m: { price: PRICE } },
        keys: [{ account: "acme", key: KEY, ...more }],
      });
    const gw = await startGateway(t, config({ budget: { amount: "1", period: "day" } }));
    assert.equal((await standing(gw)).length, 1);
    gw.gateway.reload(checkConfig(config({})));
    assert.deepEqual(await standing(gw), []);
  });

  it("warns at 50, 80 and 100 per cent, once in a period", async (t) => {
    const dir = folder();
    const { url } = await startProvider(t, { m: speak("Fine.") });
    const gw = await gatewayAt(t, url, over(dir, money(5n * pico(COST))));
    let answers = 0;
    while ((await gw.ask()).status === 200) answers += 1;
    assert.equal((await gw.ask()).status, 402);
    assert.equal(answers, 4);
    assert.deepEqual(warningsOf(gw), [
      ["account acme", 50, sum([COST, COST, COST])],
      ["account acme", 80, sum([COST, COST, COST, COST])],
    ]);
  });

  it("warns when the first request after a start spends half of it", async (t) => {
    const dir = folder();
    const { url } = await startProvider(t, { m: speak("Fine.") });
    const gw = await gatewayAt(t, url, over(dir, money(2n * pico(COST))));
    assert.equal((await gw.ask()).status, 200);
    await gw.gateway.close();
    assert.deepEqual(warningsOf(gw), [["account acme", 50, COST]]);

    const again = await gatewayAt(t, url, over(dir, money(2n * pico(COST))));
    assert.equal((await again.ask()).status, 402);
    assert.deepEqual(warningsOf(again), []);
  });

  it("warns at 100 per cent once all is spent, however many requests it refuses", async (t) => {
    const dir = folder();
    const { url } = await startProvider(t, { m: speak("Fine.") });
    const gw = await gatewayAt(t, url, over(dir, HOLD));
    const reload = (amount: string): void =>
      gw.gateway.reload(checkConfig(configFor(url, ["m"], merge(over(dir, amount), {}) as object)));
    assert.equal((await gw.ask()).status, 200);
    await until(async () => warningsOf(gw).length === 1, "the warning of a half");
    reload(COST);
    assert.equal((await gw.ask()).status, 402);
    assert.equal((await gw.ask()).status, 402);
    assert.deepEqual(warningsOf(gw).at(-1), ["account acme", 100, COST]);
    assert.equal(warningsOf(gw).length, 2);
  });

  it("does not warn of what is held, however much a request would cost", async (t) => {
    const { gw, ask } = await priced(t, { m: held().behaviour }, budget(HOLD));
    const leave = await beginStream(gw.url, ASK);
    assert.equal((await ask(ASK)).status, 402);
    assert.equal((await ask({ max_tokens: 1_000_000 })).status, 402);
    assert.deepEqual(warningsOf(gw), []);
    leave();
    await until(async () => (await standing(gw))[0].held === "0", "the hold to be given back");
  });
});

describe("tokens per minute", () => {
  it("are counted by estimate at first, then as they were", async (t) => {
    let now = 1_000;
    const { ask } = await priced(
      t,
      { m: speak("Fine.") },
      { accounts: { acme: { tokens_per_minute: 40 } } },
      { monotonic: () => now },
    );
    // 14 bytes are 4 tokens, and 7 may come: 11 at first, and 27 at the end.
    const first = await ask(ASK);
    assert.equal(first.status, 200);
    assert.equal(first.headers.get("x-ratelimit-limit-tokens"), "40");
    assert.equal(first.headers.get("x-ratelimit-remaining-tokens"), "29");
    assert.equal(first.headers.get("x-ratelimit-reset-tokens"), "60s");
    now += 20_000;
    assert.equal((await ask(ASK)).status, 200);
    now += 39_999;
    const refused = await ask(ASK);
    assert.equal(refused.status, 429);
    assert.equal(refused.headers.get("retry-after"), "1");
    assert.equal(refused.headers.get("x-ratelimit-remaining-tokens"), "0");
    const { type, code, message } = errorOf(refused);
    assert.deepEqual([type, code], ["rate_limit_error", "tokens_per_minute_exceeded"]);
    assert.match(message, /Retry after 1 seconds\.$/);
    now += 1;
    assert.equal((await ask(ASK)).status, 200);
  });

  it("of a key are its own, and a request that was not served takes none", async (t) => {
    const over = {
      keys: [{ account: "acme", key: KEY, tokens_per_minute: 11 }],
    };
    const { ask } = await priced(t, { m: speak("Fine."), bad: status(500) }, over);
    assert.equal((await ask({ ...ASK, model: "bad" })).status, 503);
    assert.equal((await ask(ASK)).status, 200);
    assert.equal((await ask(ASK)).status, 429);
  });
});

describe("many requests at once", () => {
  it("never spend more than the budget, and nearly all of it", async (t) => {
    const requests = LONG ? 10_000 : 1_000;
    const served = 100;
    const [prompt, output] = [12, 60];
    const usage = {
      prompt_tokens: prompt,
      completion_tokens: output,
      total_tokens: prompt + output,
    };
    const reply: Behaviour = (asked) =>
      asked.body["stream"]
        ? stream([
            chunk({ content: "Fine." }),
            chunk({}, "stop"),
            {
              id: "u",
              object: "chat.completion.chunk",
              created: 1,
              model: "u",
              choices: [],
              usage,
            },
          ])(asked)
        : status(200, completion({ content: "Fine." }, "stop", { usage }))(asked);
    const price = { input_cache_miss: 1, output: 4 };
    const cost = BigInt(prompt + 4 * output) * 1_000_000n;
    const amount = money(BigInt(served) * cost);
    const { gw, dir } = await priced(
      t,
      { m: reply },
      merge(budget(amount), { models: { m: { price } } }) as object,
    );
    const agent = new http.Agent({ keepAlive: true, maxSockets: 8 });
    t.after(() => agent.destroy());
    const ask = (index: number): Promise<number> =>
      new Promise((resolve, reject) => {
        const req = http.request(
          `${gw.url}/v1/chat/completions`,
          {
            method: "POST",
            agent,
            headers: { authorization: `Bearer ${KEY}`, "content-type": "application/json" },
          },
          (res) => {
            res.resume().on("end", () => resolve(res.statusCode ?? 0));
            res.on("error", reject);
          },
        );
        req.on("error", reject);
        const body = { model: "m", messages: user("Say something."), max_tokens: 80 };
        req.end(JSON.stringify({ ...body, stream: index % 2 === 0 }));
      });
    const statuses = await within(
      Promise.all(Array.from({ length: requests }, (_, index) => ask(index))),
      "all answers",
      120_000,
    );
    const completed = statuses.filter((each) => each === 200).length;
    assert.equal(statuses.filter((each) => each === 402).length, requests - completed);
    assert.ok(completed >= 95, `${completed} of ${served} were served`);
    const lines = await settled(dir, completed);
    const spent = lines.reduce((total, { cost: each }) => total + pico(each), 0n);
    assert.ok(spent <= BigInt(served) * cost, `${spent} of ${amount} was spent`);
    const [row] = await standing(gw);
    assert.equal(pico(row.spent), spent);
    assert.equal(row.held, "0");
  });
});
