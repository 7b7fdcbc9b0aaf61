// What a provider or a model can take: gates by a clock that the test moves, and requests beyond them
// through the gateway.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
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
import { configFor, json, merge, startGateway, user } from "../../../support/gateway.ts";
import { completion, speak, startProvider, status, type Asked } from "../../../support/provider.ts";
import { until } from "../../../support/wait.ts";

/** What `enter` returned: true for a request that was let in, else how long there is no room. */
const outcome = (entered: Entered | Promise<Entered>) => {
  assert.ok(!(entered instanceof Promise), "it waits");
  return typeof entered === "number" ? entered : true;
};

/** A gate by a clock that the test moves. */
const setUp = (initial: Bounds) => {
  const clock = createFakeClock();
  const gate = createGate(clock);
  let bounds = initial;
  /** Lets a request in. */
  function permit(): Permit {
    const entered = gate.enter(bounds, { account: "x", waitMs: 0 });
    assert.ok(typeof entered === "object" && !(entered instanceof Promise), `no room: ${entered}`);
    return entered;
  }
  return {
    clock,
    gate,
    permit,
    tryIt: () => outcome(gate.enter(bounds, { account: "x", waitMs: 0 })),
    wait: async (account: string, waitMs: number, cancel = new Cancel()) =>
      gate.enter(bounds, { account, waitMs, cancel }),
    setBounds(next: Bounds) {
      bounds = next;
    },
  };
};

describe("a gate", () => {
  it("lets in as many requests and tokens as a minute has", () => {
    const { clock, permit, tryIt } = setUp({ rpm: 2, tpm: 100 });
    const first = permit();
    assert.deepEqual([tryIt(), tryIt()], [true, 60_000]);
    first.release(100, "reply");
    clock.advance(59_999);
    assert.equal(tryIt(), 1);
    clock.advance(1);
    assert.equal(tryIt(), true);
  });

  it("lets in by turns of the accounts those who wait for a place", async () => {
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

  it("keeps what it has counted when its bounds change", () => {
    const { gate, tryIt, setBounds } = setUp({ rpm: 3, max_in_flight: 3 });
    for (let count = 0; count < 3; count += 1) assert.equal(tryIt(), true);
    setBounds({ rpm: 5, max_in_flight: 3 });
    assert.equal(tryIt(), Infinity, "three are in flight");
    setBounds({ rpm: 5 });
    assert.deepEqual([tryIt(), tryIt()], [true, true]);
    assert.equal(tryIt(), 60_000);
    assert.equal(gate.limit(), Infinity);
  });

  it("lets in those who wait when its bounds are wider", async () => {
    const { tryIt, wait, setBounds } = setUp({ max_in_flight: 1 });
    assert.equal(tryIt(), true);
    const waited = wait("a", 5_000);
    setBounds({ max_in_flight: 2 });
    assert.equal(tryIt(), Infinity);
    assert.equal(typeof (await waited), "object");
  });

  it("forgets what is older than a minute, however much that was", () => {
    const { clock, tryIt } = setUp({ rpm: 5_000 });
    for (let minute = 0; minute < 3; minute += 1) {
      for (let count = 0; count < 5_000; count += 1) assert.equal(tryIt(), true);
      assert.equal(tryIt(), 60_000);
      clock.advance(30_000);
      assert.equal(tryIt(), 30_000);
      clock.advance(30_000);
    }
  });

  it("counts nothing of a request that is not made", () => {
    const { permit, tryIt } = setUp({ rpm: 1, max_in_flight: 1 });
    permit().undo();
    assert.equal(tryIt(), true);
    assert.equal(tryIt(), Infinity);
  });

  it("still counts those that entered after it", () => {
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

  it("does not let a request wait whose client has left", async () => {
    const { permit, wait } = setUp({ max_in_flight: 1 });
    permit();
    const cancel = new Cancel();
    cancel.abort();
    assert.equal(await wait("x", 5_000, cancel), Infinity);
  });

  it("lets in nobody whose client has left meanwhile, and counts none of them", async () => {
    const { clock, permit, tryIt, wait } = setUp({ max_in_flight: 1, rpm: 2 });
    const inside = permit();
    const clients = [new Cancel(), new Cancel(), new Cancel()];
    const waits = clients.map((cancel) => wait("x", 5_000, cancel));
    for (const client of clients) client.abort();
    assert.deepEqual(await Promise.all(waits), [Infinity, Infinity, Infinity]);
    assert.equal(clock.pending(), 0);
    inside.release(0, "reply");
    assert.equal(tryIt(), true);
  });

  it("says when a minute has room again also to those who have waited behind others", async () => {
    const { clock, tryIt, wait } = setUp({ rpm: 1 });
    assert.equal(tryIt(), true);
    const waits = ["a", "b"].map((account) => wait(account, 3_000));
    assert.equal(tryIt(), 60_000);
    clock.advance(3_000);
    assert.deepEqual(await Promise.all(waits), [57_000, 57_000]);
  });

  it("lets in when a minute has room again", async () => {
    const { clock, tryIt, wait } = setUp({ rpm: 1 });
    assert.equal(tryIt(), true);
    clock.advance(59_000);
    const waited = wait("a", 3_000);
    clock.advance(1_000);
    assert.equal(typeof (await waited), "object");
    assert.equal(clock.pending(), 0);
  });

  it("adapts: one more while half of it is in use, a tenth less after an overload", () => {
    const { gate, permit, tryIt } = setUp({ adaptive: true, max_in_flight: 11 });
    const inside = Array.from({ length: 10 }, permit);
    const release = (ending: Ending): void => inside.pop()!.release(0, ending);
    assert.equal(tryIt(), Number.POSITIVE_INFINITY);
    assert.equal(gate.limit(), 10);
    release("overload");
    assert.equal(gate.limit(), 9);
    release("other");
    assert.equal(gate.limit(), 9, "a time-out says nothing of what it bears");
    release("reply");
    assert.equal(gate.limit(), 10);
    release("reply");
    assert.equal(gate.limit(), 11);
    for (let i = 0; i < 6; i += 1) release("reply");
    assert.equal(gate.limit(), 11);
    for (let i = 0; i < 50; i += 1) permit().release(0, "overload");
    assert.equal(gate.limit(), 1);
    permit().release(0, "reply");
    assert.equal(gate.limit(), 2);
  });
});

describe("a gate with a pause", () => {
  it("lets nobody in until it is over, and is not closed for more than a minute", () => {
    const { clock, gate, tryIt } = setUp({ max_in_flight: 5 });
    gate.pause(10_000);
    gate.pause(4_000);
    assert.equal(tryIt(), 10_000);
    clock.advance(10_000);
    assert.equal(tryIt(), true);
    gate.pause(1e12);
    assert.equal(tryIt(), 60_000);
  });
});

describe("a provider with limits", () => {
  it("is asked no more than it can take: the next candidate is, or the request waits", async (t) => {
    const held: Asked[] = [];
    const slow = await startProvider(t, (asked) => {
      held.push(asked);
    });
    const quick = await startProvider(t, speak("Quick."));
    const config = configFor(slow.url, ["m"], {
      providers: {
        lab: { limits: { max_in_flight: 1 } },
        other: { dialect: "openai", base_url: quick.url },
      },
      models: { spare: { provider: "other", limits: { max_in_flight: 9 } } },
      aliases: { any: { models: ["m", "spare"] } },
      retry: { max_wait_ms: 60_000 },
    });
    const { chat, gateway } = await startGateway(t, config);
    const first = chat({ model: "m", messages: user("1") });
    await slow.nth(0);
    const second = await json(await chat({ model: "any", messages: user("2") }));
    assert.equal(second.model, "spare");
    const third = chat({ model: "m", messages: user("3") });
    const statusOf = async () => {
      const answer = await fetch(`${gateway.adminAddress()}/status`);
      return (await answer.json()) as Record<string, any>;
    };
    const state = await until(async () => {
      const { provider_limits: limits, in_flight } = await statusOf();
      return in_flight >= 2 ? limits : undefined;
    }, "the third request in flight");
    assert.deepEqual(state, { "provider lab": 1, "model spare": 9 });
    assert.equal(slow.asked.length, 1);
    await speak("One.")(held[0]!);
    assert.equal((await first).status, 200);
    await slow.nth(1);
    await speak("Three.")(held[1]!);
    assert.equal((await third).status, 200);
    for (const limits of [null, { max_in_flight: null, rpm: 9 }]) {
      gateway.reload(checkConfig(merge(config, { providers: { lab: { limits } } }), {}));
      assert.deepEqual((await statusOf())["provider_limits"], { "model spare": 9 });
    }
  });

  it("is waited for where no other candidate can be asked: no room there, or an open breaker", async (t) => {
    const held: Asked[] = [];
    const slow = await startProvider(t, (asked) => {
      held.push(asked);
    });
    const broken = await startProvider(t, status(500));
    const config = configFor(slow.url, ["m"], {
      providers: {
        lab: { limits: { max_in_flight: 1 } },
        other: { dialect: "openai", base_url: broken.url },
      },
      models: { small: { provider: "other", context_tokens: 1_000 } },
      aliases: { any: { models: ["m", "small"] } },
      retry: { max_wait_ms: 60_000 },
      breaker: { failures: 1, cooldown_ms: 600_000 },
    });
    const { chat } = await startGateway(t, config);
    assert.equal((await chat({ model: "small", messages: user("hi") })).status, 503);
    const asks = ["one", "short", "long ".repeat(5_000)].map((text) =>
      chat({ model: "any", messages: user(text) }),
    );
    for (const [index, ask] of asks.entries()) {
      await slow.nth(index);
      await speak("Fine.")(held[index]!);
      assert.equal((await ask).status, 200);
    }
  });

  it("is waited for where the other candidates are too small for the prompt", async (t) => {
    const held: Asked[] = [];
    const slow = await startProvider(t, (asked) => {
      held.push(asked);
    });
    const small = await startProvider(
      t,
      status(400, { error: { message: "no", code: "context_length_exceeded" } }),
    );
    const config = configFor(slow.url, ["m"], {
      providers: {
        lab: { limits: { max_in_flight: 1 } },
        other: { dialect: "openai", base_url: small.url },
      },
      models: {
        small: { provider: "other", context_tokens: 1_000 },
        smaller: { provider: "other", context_tokens: 900 },
      },
      aliases: { any: { models: ["small", "m", "smaller"] } },
      retry: { max_wait_ms: 60_000 },
    });
    const { chat } = await startGateway(t, config);
    const asks = ["m", "any"].map((model) => chat({ model, messages: user("hi") }));
    for (const [index, ask] of asks.entries()) {
      await slow.nth(index);
      await small.nth(0);
      await speak("Fine.")(held[index]!);
      assert.equal((await ask).status, 200);
    }
  });

  it("is not charged for what a model's own limit refuses, nor the reverse: 503, which is no failure", async (t) => {
    const provider = await startProvider(t, { m: speak("Hi."), n: speak("Hi.") });
    const config = configFor(provider.url, ["m", "n"], {
      providers: { lab: { limits: { rpm: 3 } } },
      models: { m: { limits: { rpm: 1 } }, n: { limits: { rpm: 3 } } },
      retry: { max_wait_ms: 0 },
      breaker: { failures: 1 },
    });
    const { chat, gateway } = await startGateway(t, config);
    const ask = (model: string) => chat({ model, messages: user("1") });
    const statusOf = async (model: string) => (await ask(model)).status;
    const statuses = [];
    for (const model of ["m", "m", "m", "m", "n", "n", "n"]) statuses.push(await statusOf(model));
    assert.deepEqual(statuses, [200, 503, 503, 503, 200, 200, 503]);
    const refused = await ask("m");
    assert.equal((await json(refused)).error.code, "model_overloaded");
    assert.ok(Number(refused.headers.get("retry-after")) > 50);
    const state = await (await fetch(`${gateway.adminAddress()}/status`)).text();
    assert.ok(!state.includes('"open"'), "it is no failure of the model");
    gateway.reload(checkConfig(merge(config, { providers: { lab: { limits: { rpm: 4 } } } }), {}));
    assert.deepEqual([await statusOf("n"), await statusOf("n")], [200, 503]);
    assert.equal(provider.asked.length, 4);
  });

  it("that adapts is left alone when a reply says that nothing is left", async (t) => {
    const provider = await startProvider(
      t,
      status(200, completion({ content: "Hi." }), {
        "content-type": "application/json",
        "x-ratelimit-remaining-requests": "0",
        "x-ratelimit-reset-requests": "30s",
        "x-ratelimit-remaining-tokens": "90",
        "x-ratelimit-reset-tokens": "50s",
      }),
    );
    const config = configFor(provider.url, ["m", "n"], {
      providers: { lab: { limits: { adaptive: true } } },
      retry: { max_wait_ms: 0 },
    });
    const { chat } = await startGateway(t, config);
    assert.equal((await chat({ model: "m", messages: user("1") })).status, 200);
    const answer = await chat({ model: "n", messages: user("2") });
    assert.equal((await json(answer)).error.code, "model_overloaded");
    const seconds = Number(answer.headers.get("retry-after"));
    assert.ok(seconds > 20 && seconds <= 30, `${seconds}`);
    assert.equal(provider.asked.length, 1);
  });

  it("that adapts does not shrink when a request alone is too large", async (t) => {
    const error = { message: "Request too large for the model: limit 10, requested 20" };
    const provider = await startProvider(t, status(429, { error }));
    const config = configFor(provider.url, ["m"], {
      providers: { lab: { limits: { adaptive: true } } },
      retry: { max_retries: 0 },
    });
    const { chat, gateway } = await startGateway(t, config);
    assert.equal((await chat({ model: "m", messages: user("1") })).status, 503);
    const state = await (await fetch(`${gateway.adminAddress()}/status`)).json();
    assert.deepEqual((state as Record<string, unknown>)["provider_limits"], { "provider lab": 10 });
  });
});
