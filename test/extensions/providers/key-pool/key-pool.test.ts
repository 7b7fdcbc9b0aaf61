// Providers with several keys: which one a request takes, what happens to one that is refused or
// exhausted, and what of it is told to whom.

import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { createKeyPool, type KeyPool } from "../../../../src/extensions/providers/key-pool/pool.ts";
import { checkConfig } from "../../../support/config.ts";
import { folder } from "../../../support/folder.ts";
import { createFakeClock } from "../../../support/fake-clock.ts";
import { configFor, json, startGateway, user } from "../../../support/gateway.ts";
import { completion, startProvider, status, type Asked } from "../../../support/provider.ts";
import { settled } from "../../../support/books.ts";
import { issueLines } from "../../../support/token-service.ts";

/** The ends of the keys that so many requests take, each in a minute of its own if `apart`. */
function taken(pool: KeyPool, count: number, tried: ReadonlySet<string> = new Set()): unknown[] {
  return Array.from({ length: count }, () => {
    const key = pool.take(tried);
    return typeof key === "number" ? key : key.end;
  });
}

describe("a pool of keys", () => {
  it("draws them by their weights", () => {
    const points = [0, 0.74, 0.75, 0.99];
    const pool = createKeyPool(
      [
        { key: "key-aaaa", weight: 3 },
        { key: "key-bbbb", weight: 1 },
      ],
      createFakeClock(),
      () => points.shift()!,
    );
    assert.deepEqual(taken(pool, 4), ["aaaa", "aaaa", "bbbb", "bbbb"]);
  });

  it("takes another one when the requests or tokens of a minute are used up", () => {
    const clock = createFakeClock();
    const pool = createKeyPool(
      [
        { key: "key-aaaa", weight: 1, rpm: 2 },
        { key: "key-bbbb", weight: 1, tpm: 100 },
      ],
      clock,
      () => 0,
    );
    assert.deepEqual(taken(pool, 3), ["aaaa", "aaaa", "bbbb"]);
    const last = pool.take(new Set());
    assert.ok(typeof last !== "number");
    last.used(100);
    assert.deepEqual(taken(pool, 1), [60_000]);
    clock.advance(59_999);
    assert.deepEqual(taken(pool, 1), [1]);
    clock.advance(1);
    assert.deepEqual(taken(pool, 3), ["aaaa", "aaaa", "bbbb"]);
  });

  it("leaves out those that rest, or that a request has tried", () => {
    const clock = createFakeClock();
    const keys = ["aaaa", "bbbb"].map((key) => ({ key, weight: 1 }));
    const pool = createKeyPool(keys, clock, () => 0);
    const first = pool.take(new Set());
    assert.ok(typeof first !== "number");
    first.rest(5_000);
    assert.deepEqual(taken(pool, 1), ["bbbb"]);
    assert.deepEqual(taken(pool, 1, new Set(["bbbb"])), [5_000]);
    assert.deepEqual(pool.status(), [
      { key: "aaaa", resting_ms: 5_000 },
      { key: "bbbb", resting_ms: 0 },
    ]);
    clock.advance(5_000);
    assert.deepEqual(taken(pool, 1), ["aaaa"]);
  });
});

const KEYS = ["sk-secret-good", "sk-secret-evil"];

async function start(t: TestContext, answer: (asked: Asked, key: string) => void, keys: object[]) {
  t.mock.method(Math, "random", () => 0);
  const provider = await startProvider(t, (asked) =>
    answer(asked, String(asked.headers.authorization).replace("Bearer ", "")),
  );
  const data = folder();
  const config = configFor(provider.url, [], {
    data_dir: data,
    providers: {
      pool: { dialect: "openai", base_url: provider.url, api_keys: keys },
    },
    models: {
      m: { provider: "pool", reasoning: false },
      n: { provider: "pool", reasoning: false },
    },
    breaker: { failures: 1, cooldown_ms: 600_000 },
  });
  return { provider, data, ...(await startGateway(t, config)) };
}

const refusing =
  (code: number, headers: Record<string, string> = {}) =>
  (asked: Asked, key: string): void => {
    const isGood = key === KEYS[0];
    const body = isGood ? completion({ content: "Hi." }) : { error: { message: `bad key ${key}` } };
    status(isGood ? 200 : code, body, { "content-type": "application/json", ...headers })(asked);
  };

describe("a provider with several keys", () => {
  const bothOf = (first: string, second: string) => [{ key: first }, { key: second }];

  it("is asked with another key when one is refused, which rests from then on", async (t) => {
    const { chat, provider, diagnostics, gateway } = await start(
      t,
      refusing(401),
      bothOf(KEYS[1]!, KEYS[0]!),
    );
    for (let i = 0; i < 2; i += 1)
      assert.equal((await chat({ model: "m", messages: user("hi") })).status, 200);
    assert.deepEqual(
      provider.asked.map(({ headers }) => headers.authorization),
      [KEYS[1], KEYS[0], KEYS[0]].map((key) => `Bearer ${key}`),
    );
    const answer = await fetch(`${gateway.adminAddress()}/status`);
    const state = (await answer.json()) as Record<string, any>;
    assert.ok(state["provider_keys"].pool.evil > 50_000);
    assert.equal(state["provider_keys"].pool.good, 0);
    const told = JSON.stringify([diagnostics, state]);
    for (const key of KEYS) assert.ok(!told.includes(key));
    assert.match(told, /attempt_failed/);
  });

  it("names each key by its end in the attempts of the spend log", async (t) => {
    const { chat, data } = await start(t, refusing(401), bothOf(KEYS[1]!, KEYS[0]!));
    assert.equal((await chat({ model: "m", messages: user("hi") })).status, 200);
    const [line] = await settled(data);
    assert.deepEqual(
      line!["attempts"].map(({ outcome, key }: Record<string, string>) => [outcome, key]),
      [
        ["model_unavailable", "evil"],
        ["completed", "good"],
      ],
    );
  });

  it("rests a key that is exhausted until the provider says", async (t) => {
    const { chat, provider } = await start(
      t,
      refusing(429, { "retry-after": "30" }),
      bothOf(KEYS[1]!, KEYS[0]!),
    );
    for (const model of ["m", "n"])
      assert.equal((await chat({ model, messages: user("hi") })).status, 200);
    assert.equal(provider.asked.length, 3);
  });

  it("opens the breaker as a refused key only if all of them are", async (t) => {
    const { chat, provider } = await start(t, refusing(401), [{ key: "sk-a" }, { key: "sk-b" }]);
    const answer = await chat({ model: "m", messages: user("hi") });
    assert.equal((await json(answer)).error.code, "model_unavailable");
    assert.equal(provider.asked.length, 2);
    assert.equal((await chat({ model: "m", messages: user("hi") })).status, 503);
    assert.equal(provider.asked.length, 2);
  });

  it("has no room when the keys' own limits are used up, and says when", async (t) => {
    const { chat } = await start(t, refusing(401), [{ key: KEYS[0]!, rpm: 1 }]);
    assert.equal((await chat({ model: "m", messages: user("hi") })).status, 200);
    const answer = await chat({ model: "n", messages: user("hi") });
    const { error } = await json(answer);
    assert.deepEqual([answer.status, error.code], [503, "model_overloaded"]);
    assert.ok(Number(answer.headers.get("retry-after")) > 50);
  });
});

describe("the setting api_keys", () => {
  const issues = (provider: object) =>
    issueLines(() =>
      checkConfig({ providers: { p: { vendor: "openai", ...provider } }, models: {} }),
    );

  it("takes the place of api_key, and is refused with its place", () => {
    assert.deepEqual(issues({ api_keys: [{ key: "a" }, { key: "b", weight: 2, rpm: 5 }] }), []);
    assert.deepEqual(issues({ api_key: "a", api_keys: [{ key: "b" }] }), [
      "providers.p.api_keys: cannot stand beside api_key",
    ]);
    assert.equal(issues({ api_keys: [] }).length, 1);
    assert.equal(issues({ api_keys: [{ key: "a", weight: 0 }] }).length, 1);
  });
});
