// Budgets of accounts and keys, asked for over real sockets: the exact boundary, periods, what is
// held and given back, restarts, reloads, and many requests at once.

import assert from "node:assert/strict";
import http from "node:http";
import { describe, it, type TestContext } from "node:test";
import { entries, only, PRICE, priced, settled, spendLines, sum } from "../../support/books.ts";
import { checkConfig } from "../../support/config.ts";
import { folder } from "../../support/folder.ts";
import { configFor, json, KEY, merge, startGateway, user } from "../../support/gateway.ts";
import { LONG } from "../../support/long.ts";
import {
  chunk,
  completion,
  held,
  speak,
  startProvider,
  status,
  stream,
  type Behaviour,
} from "../../support/provider.ts";
import { until, within } from "../../support/wait.ts";

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

describe("a hold of a request without max_tokens", () => {
  /** Replies with so many tokens. */
  const replying =
    (tokens: () => number): Behaviour =>
    (asked) =>
      status(
        200,
        completion({ content: "Fine." }, "stop", {
          usage: { prompt_tokens: 10, completion_tokens: tokens(), total_tokens: 10 + tokens() },
        }),
      )(asked);

  it("takes the model's bound, or 1,000 tokens", async (t) => {
    const { ask, dir } = await priced(
      t,
      { m: speak("Fine."), bound: speak("Fine."), sent: speak("Fine.") },
      {
        ...budget("1"),
        models: { bound: { max_output_tokens: 100 }, sent: { default_output_tokens: 100 } },
      },
    );
    for (const model of ["m", "bound", "sent"]) await ask({ model });
    const holds = entries(dir).map(({ open }) => open["hold"]);
    assert.deepEqual(holds, ["0.010057501", "0.0010575001", "0.0010575001"]);
  });

  it("is at most what the last 100 requests cost, and a quarter", async (t) => {
    let tokens = 40;
    const price = { input_cache_miss: 1, output: 1 };
    const { ask, dir } = await priced(
      t,
      { m: replying(() => tokens) },
      merge(budget("1"), { models: { m: { price } } }) as object,
    );
    await ask();
    tokens = 20;
    for (let round = 0; round < 101; round += 1) await ask();
    const holds = entries(dir).map(({ open }) => open["hold"]);
    assert.equal(holds[0], "0.001046");
    assert.equal(holds[1], "0.0000625"); // (10 + 40) and a quarter
    assert.equal(holds[100], "0.0000625");
    assert.equal(holds[101], "0.0000375"); // the dear one is the 101st before it
  });

  it("is not less where requests before it were left, or failed", async (t) => {
    let behaviour: Behaviour = held().behaviour;
    const { gw, ask, dir } = await priced(t, { m: (asked) => behaviour(asked) }, budget("0.02"));
    const leave = await beginStream(gw.url);
    leave();
    await until(async () => (await standing(gw))[0].held === "0", "the hold to be given back");
    behaviour = status(500);
    assert.equal((await ask()).status, 503);
    behaviour = speak("Fine.");
    assert.equal((await ask()).status, 200);
    const holds = entries(dir).map(({ open }) => open["hold"]);
    assert.deepEqual(holds, Array<string>(3).fill("0.010057501"));
  });

  it("is no less than what the prompt alone comes to", async (t) => {
    const { ask, dir } = await priced(t, { m: speak("Fine.") }, budget("1"));
    await ask({ model: "m" });
    await ask({ model: "m", messages: user("Long. ".repeat(4_000)) });
    assert.equal(entries(dir)[1]!.open["hold"], "0.0075"); // 24,000 bytes, four a token
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
      ["account acme", 100, sum([COST, COST, COST, COST])],
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
    assert.deepEqual(warningsOf(again), [["account acme", 100, COST]]);
  });

  it("of nothing warns at the first request that it refuses", async (t) => {
    const { gw, ask } = await priced(t, { m: speak("Fine.") }, budget("0"));
    for (let round = 0; round < 2; round += 1) assert.equal((await ask(ASK)).status, 402);
    assert.deepEqual(warningsOf(gw), [["account acme", 100, "0"]]);
  });

  it("still warns at 50 and 80 per cent after a request that was too large for it", async (t) => {
    const dir = folder();
    const { url } = await startProvider(t, { m: speak("Fine.") });
    const gw = await gatewayAt(t, url, over(dir, money(5n * pico(COST))));
    assert.equal((await gw.ask({ max_tokens: 1_000_000 })).status, 402);
    while ((await gw.ask()).status === 200);
    assert.deepEqual(warningsOf(gw), [
      ["account acme", 100, "0"],
      ["account acme", 50, sum([COST, COST, COST])],
      ["account acme", 80, sum([COST, COST, COST, COST])],
    ]);
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
