// Providers with several keys: which one a request uses, what happens to a rejected or exhausted
// key, and what is shown of it to whom.

import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import {
  createKeyPool,
  type KeyPool,
  type PoolKey,
} from "../../../../src/extensions/providers/key-pool/pool.ts";
import { createGates } from "../../../../src/extensions/routing/gates/index.ts";
import { sharedPauses } from "../../../../src/extensions/routing/pauses/index.ts";
import { settled } from "../../../support/books.ts";
import { checkConfig } from "../../../support/config.ts";
import { createFakeClock } from "../../../support/fake-clock.ts";
import { folder } from "../../../support/folder.ts";
import { assemble, configFor, json, merge, readStream } from "../../../support/gateway.ts";
import { startGateway, user } from "../../../support/gateway.ts";
import { chunk, completion, startProvider, status, stream } from "../../../support/provider.ts";
import type { Asked } from "../../../support/provider.ts";
import { issueLines } from "../../../support/token-service.ts";

/** The ends of the keys that this many requests to the model "m" use. */
async function taken(pool: KeyPool, count: number, ...tried: string[]): Promise<unknown[]> {
  const ends: unknown[] = [];
  for (let i = 0; i < count; i += 1) {
    const key = await pool.take("m", new Set(tried));
    ends.push(typeof key === "number" ? key : key.end);
  }
  return ends;
}

/** The key that the next request uses. There must be one. */
async function takenKey(pool: KeyPool) {
  const key = await pool.take("m", new Set());
  assert.ok(typeof key !== "number");
  return key;
}

/** A pool on a clock that the test moves. Keys are drawn at these points, by default the first. */
function poolOf(keys: readonly PoolKey[], ...points: number[]) {
  const clock = createFakeClock();
  const pauseOf = sharedPauses({ clock, on: () => undefined }, "test");
  const services = { gates: createGates(clock), pauseOf, random: () => points.shift() ?? 0 };
  const reloaded = (others: readonly PoolKey[]) => createKeyPool("p", others, services);
  return { clock, pool: reloaded(keys), reloaded };
}
const A = { key: "key-aaaa", weight: 1 };
const B = { key: "key-bbbb", weight: 1 };

describe("a pool of keys", () => {
  it("draws keys by their weights", async () => {
    const { pool } = poolOf([{ ...A, weight: 3 }, B], 0, 0.74, 0.75, 0.99);
    assert.deepEqual(await taken(pool, 4), ["aaaa", "aaaa", "bbbb", "bbbb"]);
  });

  it("uses another key when the requests or tokens of a minute are used up", async () => {
    const { clock, pool } = poolOf([
      { ...A, rpm: 2 },
      { ...B, tpm: 100 },
    ]);
    assert.deepEqual(await taken(pool, 3), ["aaaa", "aaaa", "bbbb"]);
    (await takenKey(pool)).used(100);
    assert.deepEqual(await taken(pool, 1), [60_000]);
    clock.advance(59_999);
    assert.deepEqual(await taken(pool, 1), [1]);
    clock.advance(1);
    assert.deepEqual(await taken(pool, 3), ["aaaa", "aaaa", "bbbb"]);
  });

  it("skips keys that are resting or that the request has tried", async () => {
    const { clock, pool } = poolOf([A, B]);
    const first = await takenKey(pool);
    first.exhausted(5_000);
    assert.deepEqual(await taken(pool, 1), ["bbbb"]);
    assert.deepEqual(await taken(pool, 1, "key-bbbb"), [5_000]);
    assert.deepEqual(pool.pauses(["m"]), { aaaa: 5_000, bbbb: 0 });
    assert.deepEqual(pool.pauses(["other"]), { aaaa: 0, bbbb: 0 }, "only this model has to wait");
    first.refused();
    assert.deepEqual(pool.pauses(["other"]), { aaaa: 60_000, bbbb: 0 });
    clock.advance(60_000);
    assert.deepEqual(await taken(pool, 1), ["aaaa"]);
    assert.deepEqual(await taken(pool, 1, "key-aaaa", "key-bbbb"), [0], "both at once");
  });

  it("knows for which model the provider refuses all of them, and not of those that are exhausted", async () => {
    const { pool } = poolOf([A, B]);
    (await takenKey(pool)).refused(true);
    const second = await takenKey(pool);
    second.exhausted(5_000);
    assert.equal(pool.isRefused("m"), false);
    second.refused(true);
    assert.deepEqual([pool.isRefused("m"), pool.isRefused("n")], [true, false]);
  });

  it("distinguishes the rests of two keys with the same end", async () => {
    const { pool } = poolOf([A, { ...A, key: "sk-aaaa" }]);
    (await takenKey(pool)).refused();
    assert.deepEqual(pool.pauses(["m"]), { aaaa: 60_000, "aaaa (2)": 0 });
  });

  it("recognizes a key at another position after a reload", async () => {
    const second = { ...B, rpm: 2 };
    const { pool, reloaded } = poolOf([{ ...A, rpm: 2 }, second]);
    assert.deepEqual(await taken(pool, 3), ["aaaa", "aaaa", "bbbb"]);
    assert.deepEqual(await taken(reloaded([second]), 2), ["bbbb", 60_000]);
  });
});

const [GOOD, EVIL] = ["sk-secret-good", "sk-secret-evil"];
const BOTH = [{ key: EVIL }, { key: GOOD }];
const bearerOf = ({ headers }: Asked) => String(headers.authorization).replace("Bearer ", "");

async function start(
  t: TestContext,
  answer: (asked: Asked) => void,
  api_keys: object[] = BOTH,
  over: object = {},
) {
  t.mock.method(Math, "random", () => 0);
  const provider = await startProvider(t, answer);
  const data_dir = folder();
  const base = configFor(provider.url, [], {
    data_dir,
    providers: { pool: { dialect: "openai", base_url: provider.url, api_keys } },
    models: { m: { provider: "pool" }, n: { provider: "pool" } },
    breaker: { failures: 1, cooldown_ms: 600_000 },
  });
  const config = merge(base, over) as object;
  const { chat, gateway, diagnostics } = await startGateway(t, config);
  const ask = (model = "m", more: object = {}) => chat({ model, messages: user("hi"), ...more });
  const status = async () => json(await fetch(`${gateway.adminAddress()}/status`));
  const reload = (changed: object) => gateway.reload(checkConfig(merge(config, changed)));
  return { asked: provider.asked, data_dir, ask, status, reload, diagnostics };
}

const FINE = completion({ content: "Hi." });
const refusing =
  (code: number, more: Record<string, string> = {}) =>
  (asked: Asked): void => {
    const key = bearerOf(asked);
    const headers = { "content-type": "application/json", ...more };
    if (key === GOOD) status(200, FINE, headers)(asked);
    else status(code, { error: { message: `bad key ${key}` } }, headers)(asked);
  };

describe("a provider with several keys", () => {
  it("is called with another key when one is rejected, which then rests; keys are named by their ends", async (t) => {
    const { ask, asked, data_dir, status, diagnostics } = await start(t, refusing(401));
    for (const model of ["m", "n"]) assert.equal((await ask(model)).status, 200);
    assert.deepEqual(asked.map(bearerOf), [EVIL, GOOD, GOOD]);
    const state = await status();
    const { evil, good } = state.provider_keys.pool;
    assert.ok(evil > 50_000 && good === 0);
    const [line] = await settled(data_dir);
    const [first, second, ...more] = line!["attempts"];
    assert.deepEqual([first.outcome, first.key], ["model_unavailable", "evil"]);
    assert.deepEqual([second.outcome, second.key, more], ["completed", "good", []]);
    const told = JSON.stringify([diagnostics, state, line]);
    for (const key of [GOOD, EVIL]) assert.ok(!told.includes(key!));
    const failed = diagnostics.find(({ event }) => event === "attempt_failed")!;
    const said = { provider_status: 401, provider_message: "bad key [redacted]" };
    assert.deepEqual(failed, { ...failed, level: "error", key: "evil", ...said });
  });

  it("says when the first key can be used again if all are exhausted", async (t) => {
    const { ask } = await start(t, (asked) => {
      const wait = bearerOf(asked) === EVIL ? "40" : "20";
      status(429, { error: {} }, { "retry-after": wait })(asked);
    });
    for (let i = 0; i < 2; i += 1) {
      const answer = await ask();
      assert.equal((await json(answer)).error.code, "model_overloaded");
      const seconds = Number(answer.headers.get("retry-after"));
      assert.ok(seconds > 10 && seconds <= 20, `${seconds}`);
    }
  });

  it("is called at once with a key added by a reload, however long the others have to rest", async (t) => {
    const exhausted = refusing(429, { "retry-after": "900" });
    const { ask, reload } = await start(t, exhausted, [{ key: EVIL }]);
    assert.equal((await ask()).status, 503);
    reload({ providers: { pool: { api_keys: BOTH } } });
    assert.equal((await ask()).status, 200);
  });

  it("opens the breaker for rejected keys only if all of them are", async (t) => {
    const keys = ["sk-a", "sk-b"];
    const { ask, asked, diagnostics } = await start(
      t,
      refusing(401),
      keys.map((key) => ({ key })),
    );
    for (let i = 0; i < 2; i += 1)
      assert.equal((await json(await ask())).error.code, "model_unavailable");
    assert.equal(asked.length, 2);
    const told = diagnostics.slice(0, 2).map(({ level, key }) => `${level} ${key}`);
    assert.deepEqual(told.sort(), ["error sk-a", "error sk-b"]);
  });

  it("is down for its other models too while all keys rest that it refused, not out of room", async (t) => {
    const { ask, asked, status } = await start(t, refusing(401), [{ key: EVIL }]);
    for (const model of ["m", "n"])
      assert.equal((await json(await ask(model))).error.code, "model_unavailable");
    assert.equal(asked.length, 1);
    const { models } = await status();
    assert.deepEqual([models[0].breaker.state, models[1].breaker.state], ["open", "open"]);
  });

  for (const [code, message, other, count] of [
    [429, "Request too large for gpt-4.1 on tokens per min (TPM): Limit 30000", "m", 2],
    [402, "This request requires more credits, or fewer max_tokens", "m", 2],
    [403, "Project `p` does not have access to model `m`", "n", 3],
    [429, "Your account has exhausted its free trial quota for the [m] model", "n", 3],
  ] as const)
    it(`keeps its keys for others when it rejects one client's request: ${code}`, async (t) => {
      const { ask, asked } = await start(t, (each) => {
        const isLarge = each.body["max_tokens"] === 64_000;
        status(isLarge ? code : 200, isLarge ? { error: { message } } : FINE)(each);
      });
      assert.notEqual((await ask("m", { max_tokens: 64_000 })).status, 200);
      assert.equal((await ask(other)).status, 200);
      assert.equal(asked.length, count);
    });

  it("is called again if a key fails in the middle of a held reply", async (t) => {
    const call = { index: 0, id: "call_1", function: { name: "f", arguments: "{}" } };
    const failing = [chunk({ tool_calls: [call] }), { error: { message: "slow", code: 429 } }];
    const good = [chunk({ content: "Hi." }), chunk({}, "stop")];
    const answer = (asked: Asked) => stream(bearerOf(asked) === EVIL ? failing : good)(asked);
    const { ask, asked, status } = await start(t, answer, BOTH, {
      models: { m: { recovery: "hold" } },
      retry: { max_retries: 1, backoff_ms: 1 },
    });
    const tools = [{ type: "function", function: { name: "f" } }];
    const reply = assemble((await readStream(await ask("m", { tools, stream: true }))).chunks);
    assert.deepEqual([reply.message["content"], reply.finish_reason], ["Hi.", "stop"]);
    assert.equal(asked.length, 2);
    assert.equal((await status()).models[0].breaker.failures, 0, "it has another key");
  });

  it("shows what happened to its only key if that fails in the middle of a held reply", async (t) => {
    const failing = [chunk({ reasoning: "Hm." }), { error: { message: "no", code: 401 } }];
    const { ask, status } = await start(t, stream(failing), [{ key: "sk-a" }], {
      models: { m: { reasoning: true, stream_only: true } },
    });
    assert.equal((await json(await ask())).error.code, "model_unavailable");
    assert.equal((await status()).models[0].breaker.state, "open");
  });

  it("is called with another key even if a response's head says that one is exhausted", async (t) => {
    const spent = { "x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "50s" };
    const adaptive = { providers: { pool: { limits: { adaptive: true } } } };
    const { ask } = await start(t, refusing(429, spent), BOTH, adaptive);
    for (let i = 0; i < 2; i += 1) assert.equal((await ask()).status, 200);
  });

  it("has no room when the keys' own limits are used up, and says when; waits for a model's limit do not count", async (t) => {
    const over = { models: { m: { limits: { rpm: 1 } } }, retry: { max_wait_ms: 0 } };
    const { ask } = await start(t, refusing(401), [{ key: GOOD, rpm: 2 }], over);
    const answers = [await ask(), await ask(), await ask("n"), await ask("n")];
    const statuses = answers.map(({ status }) => status);
    assert.deepEqual(statuses, [200, 503, 200, 503]);
    assert.equal((await json(answers[3]!)).error.code, "model_overloaded");
    assert.ok(Number(answers[3]!.headers.get("retry-after")) > 50);
  });
});

it("the setting api_keys replaces api_key, and is rejected with its path", () => {
  const issues = (settings: object) => {
    const providers = { p: { vendor: "openai", ...settings } };
    return issueLines(() => checkConfig({ providers, models: {} }));
  };
  assert.deepEqual(issues({ api_keys: [{ key: "a" }, { key: "b", weight: 2, rpm: 5 }] }), []);
  const beside = "providers.p.api_keys: cannot be used with api_key";
  assert.deepEqual(issues({ api_key: "a", api_keys: [{ key: "b" }] }), [beside]);
  assert.equal(issues({ api_keys: [] }).length, 1);
  assert.equal(issues({ api_keys: [{ key: "a", weight: 0 }] }).length, 1);
});
