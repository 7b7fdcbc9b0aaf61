// The limits of a provider or a model: gates on a clock that the test moves, and requests beyond
// them through the gateway.

import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { Cancel } from "../../../../src/core/http/cancel.ts";
import {
  createGate,
  type Bounds,
  type Ending,
  type Entered,
  type Permit,
} from "../../../../src/extensions/routing/gates/gate.ts";
import { createFakeClock } from "../../../support/fake-clock.ts";
import { checkConfig } from "../../../support/config.ts";
import { json, merge, startWith, user, type RunningGateway } from "../../../support/gateway.ts";
import {
  completion,
  silent,
  speak,
  startProvider,
  status,
  type Behaviour,
} from "../../../support/provider.ts";
import { until } from "../../../support/wait.ts";

const setUp = (initial: Bounds) => {
  const clock = createFakeClock();
  const gate = createGate(clock);
  let bounds = initial;
  const enter = (): Entered => {
    const entered = gate.enter(bounds, { account: "x", waitMs: 0 });
    assert.ok(!(entered instanceof Promise), "it waits");
    return entered;
  };
  return {
    clock,
    gate,
    permit(): Permit {
      const entered = enter();
      assert.ok(typeof entered === "object", `no room: ${entered}`);
      return entered;
    },
    /** True for an admitted request, else the milliseconds until there is room. */
    tryIt(): number | true {
      const entered = enter();
      return typeof entered === "number" ? entered : true;
    },
    wait: async (account: string, waitMs: number, cancel = new Cancel()) =>
      gate.enter(bounds, { account, waitMs, cancel }),
    setBounds(next: Bounds) {
      bounds = next;
    },
  };
};

describe("a gate", () => {
  it("admits as many requests and tokens as fit into a minute", () => {
    const { clock, permit, tryIt } = setUp({ rpm: 2, tpm: 100 });
    const first = permit();
    assert.deepEqual([tryIt(), tryIt()], [true, 60_000]);
    first.release(100, "reply");
    clock.advance(59_999);
    assert.equal(tryIt(), 1);
    clock.advance(1);
    assert.equal(tryIt(), true);
  });

  it("admits waiting requests in turns between accounts", async () => {
    const { clock, permit, tryIt, wait } = setUp({ max_in_flight: 1 });
    let inside = permit();
    const order: string[] = [];
    const waits = ["a", "a", "a", "b", "c"].map(async (account) => {
      const entered = await wait(account, 5_000);
      order.push(typeof entered === "number" ? `${account} gave up` : account);
      if (typeof entered === "object") inside = entered;
    });
    assert.equal(tryIt(), Number.POSITIVE_INFINITY);
    for (let left = 0; left < 4; left += 1) {
      inside.release(0, "reply");
      await new Promise(setImmediate);
    }
    assert.deepEqual(order, ["a", "b", "c", "a"]);
    clock.advance(5_000);
    await Promise.all(waits);
    assert.deepEqual(order.slice(4), ["a gave up"]);
    assert.equal(clock.pending(), 0);
  });

  it("keeps its counts when its limits change", () => {
    const { gate, tryIt, setBounds } = setUp({ rpm: 3, max_in_flight: 3 });
    for (let count = 0; count < 3; count += 1) assert.equal(tryIt(), true);
    setBounds({ rpm: 5, max_in_flight: 3 });
    assert.equal(tryIt(), Infinity, "three are in flight");
    setBounds({ rpm: 5 });
    assert.deepEqual([tryIt(), tryIt()], [true, true]);
    assert.equal(tryIt(), 60_000);
    assert.equal(gate.limit(), Infinity);
  });

  it("admits waiting requests when its limits grow", async () => {
    const { tryIt, wait, setBounds } = setUp({ max_in_flight: 1 });
    assert.equal(tryIt(), true);
    const waited = wait("a", 5_000);
    setBounds({ max_in_flight: 2 });
    assert.equal(tryIt(), Infinity);
    assert.equal(typeof (await waited), "object");
  });

  it("counts nothing of a request that is not sent", () => {
    const { permit, tryIt } = setUp({ rpm: 1, max_in_flight: 1 });
    permit().undo();
    assert.equal(tryIt(), true);
    assert.equal(tryIt(), Infinity);
  });

  it("keeps counting later requests when an earlier one is undone", () => {
    const { clock, permit, tryIt } = setUp({ rpm: 2 });
    const first = permit();
    clock.advance(9_000);
    assert.equal(tryIt(), true);
    clock.advance(1_000);
    first.undo();
    assert.equal(tryIt(), true);
    clock.advance(50_001);
    assert.equal(tryIt(), 8_999);
  });

  it("admits no request whose client has left, before the wait or during it, and counts none of them", async () => {
    const { clock, permit, tryIt, wait } = setUp({ max_in_flight: 1, rpm: 2 });
    const inside = permit();
    const clients = [new Cancel(), new Cancel(), new Cancel()];
    const waits = clients.map((cancel) => wait("x", 5_000, cancel));
    const staying = wait("x", 5_000);
    for (const client of clients) client.abort();
    assert.deepEqual(await Promise.all(waits), [Infinity, Infinity, Infinity]);
    assert.equal(await wait("x", 5_000, clients[0]), Infinity);
    inside.release(0, "reply");
    const stayed = await staying;
    assert.ok(typeof stayed === "object", "the client that stays is admitted");
    assert.equal(clock.pending(), 0);
    stayed.undo();
    assert.equal(tryIt(), true);
  });

  it("admits when a minute has room again, and also tells those who gave up waiting when that is", async () => {
    const { clock, tryIt, wait } = setUp({ rpm: 1 });
    assert.equal(tryIt(), true);
    const waits = ["a", "b"].map((account) => wait(account, 3_000));
    assert.equal(tryIt(), 60_000);
    clock.advance(3_000);
    assert.deepEqual(await Promise.all(waits), [57_000, 57_000]);
    clock.advance(56_000);
    const waited = wait("a", 3_000);
    clock.advance(1_000);
    assert.equal(typeof (await waited), "object");
    assert.equal(clock.pending(), 0);
  });

  it("adapts: one more while half of the limit is in use, a tenth less after an overload", () => {
    const { gate, permit, tryIt, setBounds } = setUp({ adaptive: true, max_in_flight: 11 });
    const inside = Array.from({ length: 10 }, permit);
    const release = (ending: Ending): void => inside.pop()!.release(0, ending);
    assert.equal(tryIt(), Number.POSITIVE_INFINITY);
    assert.equal(gate.limit(), 10);
    release("overload");
    assert.equal(gate.limit(), 9);
    release("other");
    assert.equal(gate.limit(), 9, "a timeout is no sign of overload");
    release("reply");
    assert.equal(gate.limit(), 10);
    release("reply");
    assert.equal(gate.limit(), 11);
    for (let i = 0; i < 6; i += 1) release("reply");
    assert.equal(gate.limit(), 11);
    setBounds({ max_in_flight: 11 });
    permit().release(0, "overload"); // the limit is not adaptive then
    setBounds({ adaptive: true });
    for (const each of Array.from({ length: 6 }, permit)) each.release(0, "reply");
    assert.equal(gate.limit(), 13, "half of 12 were in use, and then fewer");
    for (let i = 0; i < 50; i += 1) permit().release(0, "overload");
    assert.equal(gate.limit(), 1);
    permit().release(0, "reply");
    assert.equal(gate.limit(), 2);
  });
});

it("a paused gate admits nobody until the pause ends, which takes a minute at most", () => {
  const { clock, gate, tryIt } = setUp({ max_in_flight: 5 });
  gate.pause(10_000);
  gate.pause(4_000);
  assert.equal(tryIt(), 10_000);
  clock.advance(10_000);
  assert.equal(tryIt(), true);
  gate.pause(1e12);
  assert.equal(tryIt(), 60_000);
});

/**
 * A gateway with a model `m` of a provider that takes one request at a time, and another provider.
 */
async function fullSite(t: TestContext, other: Behaviour, over: object) {
  const spare = await startProvider(t, other);
  const lab = { limits: { max_in_flight: 1 } };
  const providers = { lab, other: { dialect: "openai", base_url: spare.url } };
  const base = { providers, retry: { max_wait_ms: 60_000 } };
  const site = await startWith(t, { m: silent }, merge(base, over) as object);
  return {
    ...site,
    spare,
    ask: (model: string, text = "hi") => site.chat({ model, messages: user(text) }),
    /** Answers a request to the provider that is full. */
    answer: async (n: number) => speak("Fine.")(await site.provider.nth(n)),
  };
}
const statusOf = async ({ gateway }: RunningGateway): Promise<Record<string, any>> =>
  json(await fetch(`${gateway.adminAddress()}/status`));

const TOO_LARGE = { error: { message: "Request too large: limit 10, requested 20" } };
const ADAPTIVE = {
  providers: { lab: { limits: { adaptive: true } } },
  retry: { max_wait_ms: 0 },
};

describe("a provider with limits", () => {
  it("is not called beyond them: the next candidate is, or the request waits", async (t) => {
    const site = await fullSite(t, speak("Quick."), {
      models: { spare: { provider: "other", limits: { max_in_flight: 9 } } },
      aliases: { any: { models: ["m", "spare"] } },
    });
    const { ask, answer, provider, gateway, config } = site;
    const first = ask("m");
    await provider.nth(0);
    assert.equal((await json(await ask("any"))).model, "spare");
    const third = ask("m");
    const state = await until(async () => {
      const { provider_limits: limits, in_flight } = await statusOf(site);
      return in_flight >= 2 ? limits : undefined;
    }, "the third request in flight");
    assert.deepEqual(state, { "provider lab": 1, "model spare": 9 });
    assert.equal(provider.asked.length, 1);
    for (const [n, asked] of [first, third].entries()) {
      await answer(n);
      assert.equal((await asked).status, 200);
    }
    for (const limits of [null, { max_in_flight: null, rpm: 9 }]) {
      gateway.reload(checkConfig(merge(config, { providers: { lab: { limits } } }), {}));
      assert.deepEqual((await statusOf(site))["provider_limits"], { "model spare": 9 });
    }
  });

  it("is awaited if no other candidate is available: without room, or with an open breaker", async (t) => {
    const { ask, answer } = await fullSite(t, status(500), {
      models: { small: { provider: "other", context_tokens: 1_000 } },
      aliases: { any: { models: ["m", "small"] } },
      breaker: { failures: 1, cooldown_ms: 600_000 },
    });
    assert.equal((await ask("small")).status, 503);
    const asks = ["one", "short", "long ".repeat(5_000)].map((text) => ask("any", text));
    for (const [n, asked] of asks.entries()) {
      await answer(n);
      assert.equal((await asked).status, 200);
    }
  });

  it("is awaited if the other candidates are too small for the prompt", async (t) => {
    const full = status(400, { error: { message: "no", code: "context_length_exceeded" } });
    const { ask, answer, spare } = await fullSite(t, full, {
      models: {
        small: { provider: "other", context_tokens: 1_000 },
        smaller: { provider: "other", context_tokens: 900 },
      },
      aliases: { any: { models: ["small", "m", "smaller"] } },
    });
    const asks = ["m", "any"].map((model) => ask(model));
    for (const [n, asked] of asks.entries()) {
      await spare.nth(0);
      await answer(n);
      assert.equal((await asked).status, 200);
    }
  });

  it("is not charged for what a model's own limit rejects, nor the reverse: 503, which is no failure", async (t) => {
    const both = { m: speak("Hi."), n: speak("Hi.") };
    const site = await startWith(t, both, {
      providers: { lab: { limits: { rpm: 3 } } },
      models: { m: { limits: { rpm: 1 } }, n: { limits: { rpm: 3 } } },
      retry: { max_wait_ms: 0 },
      breaker: { failures: 1 },
    });
    const { chat, gateway, provider, config } = site;
    const ask = (model: string) => chat({ model, messages: user("1") });
    const codeOf = async (model: string) => (await ask(model)).status;
    const statuses = [];
    for (const model of ["m", "m", "m", "m", "n", "n", "n"]) statuses.push(await codeOf(model));
    assert.deepEqual(statuses, [200, 503, 503, 503, 200, 200, 503]);
    const refused = await ask("m");
    assert.equal((await json(refused)).error.code, "model_overloaded");
    assert.ok(Number(refused.headers.get("retry-after")) > 50);
    const state = JSON.stringify(await statusOf(site));
    assert.ok(!state.includes('"open"'), "it is no failure of the model");
    gateway.reload(checkConfig(merge(config, { providers: { lab: { limits: { rpm: 4 } } } }), {}));
    assert.deepEqual([await codeOf("n"), await codeOf("n")], [200, 503]);
    assert.equal(provider.asked.length, 4);
  });

  it("and an adaptive one is left alone when a reply says that nothing is left", async (t) => {
    const m = status(200, completion({ content: "Hi." }), {
      "content-type": "application/json",
      "x-ratelimit-remaining-requests": "0",
      "x-ratelimit-reset-requests": "30s",
      "x-ratelimit-remaining-tokens": "90",
      "x-ratelimit-reset-tokens": "50s",
    });
    const { chat, provider } = await startWith(t, { m, n: silent }, ADAPTIVE);
    assert.equal((await chat({ model: "m", messages: user("1") })).status, 200);
    const answer = await chat({ model: "n", messages: user("2") });
    assert.equal((await json(answer)).error.code, "model_overloaded");
    const seconds = Number(answer.headers.get("retry-after"));
    assert.ok(seconds > 20 && seconds <= 30, `${seconds}`);
    assert.equal(provider.asked.length, 1);
  });

  for (const [what, limit, m] of [
    ["shrinks after an overload", 9, status(429)],
    ["does not shrink after another failure", 10, status(500)],
    ["does not shrink when a single request is too large", 10, status(429, TOO_LARGE)],
  ] as const)
    it(`and an adaptive one ${what}`, async (t) => {
      const site = await startWith(t, { m }, ADAPTIVE);
      assert.equal((await site.chat({ model: "m", messages: user("1") })).status, 503);
      assert.deepEqual((await statusOf(site))["provider_limits"], { "provider lab": limit });
    });
});
