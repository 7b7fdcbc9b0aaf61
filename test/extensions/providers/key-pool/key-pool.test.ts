// Providers with several keys: which one a request takes, what happens to one that is refused or
// exhausted, and what of it is told to whom.

import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import {
  createKeyPool,
  type KeyPool,
  type PoolKey,
} from "../../../../src/extensions/providers/key-pool/pool.ts";
import { createGates } from "../../../../src/extensions/routing/gates/index.ts";
import { sharedRests } from "../../../../src/extensions/routing/rests/index.ts";
import { checkConfig } from "../../../support/config.ts";
import { folder } from "../../../support/folder.ts";
import { createFakeClock } from "../../../support/fake-clock.ts";
import {
  assemble,
  configFor,
  json,
  merge,
  readStream,
  startGateway,
  user,
} from "../../../support/gateway.ts";
import {
  chunk,
  completion,
  startProvider,
  status,
  stream,
  type Asked,
} from "../../../support/provider.ts";
import { settled } from "../../../support/books.ts";
import { issueLines } from "../../../support/token-service.ts";

/** The ends of the keys that so many requests to the model "m" take. */
async function taken(
  pool: KeyPool,
  count: number,
  tried: ReadonlySet<string> = new Set(),
): Promise<unknown[]> {
  const ends: unknown[] = [];
  for (let i = 0; i < count; i += 1) {
    const key = await pool.take("m", tried);
    ends.push(typeof key === "number" ? key : key.end);
  }
  return ends;
}

/** The key that the next request takes: there is one. */
async function takenKey(pool: KeyPool) {
  const key = await pool.take("m", new Set());
  assert.ok(typeof key !== "number");
  return key;
}

/** A pool by a clock that the test moves. `random`: draws the keys. */
function poolOf(keys: readonly PoolKey[], random: () => number) {
  const clock = createFakeClock();
  const restOf = sharedRests({ clock, on: () => undefined }, "test");
  const services = { gates: createGates(clock), restOf, random };
  const reloaded = (others: readonly PoolKey[]) => createKeyPool("p", others, services);
  return { clock, pool: reloaded(keys), reloaded };
}

describe("a pool of keys", () => {
  it("draws them by their weights", async () => {
    const points = [0, 0.74, 0.75, 0.99];
    const keys = [
      { key: "key-aaaa", weight: 3 },
      { key: "key-bbbb", weight: 1 },
    ];
    const { pool } = poolOf(keys, () => points.shift()!);
    assert.deepEqual(await taken(pool, 4), ["aaaa", "aaaa", "bbbb", "bbbb"]);
  });

  it("takes another one when the requests or tokens of a minute are used up", async () => {
    const keys = [
      { key: "key-aaaa", weight: 1, rpm: 2 },
      { key: "key-bbbb", weight: 1, tpm: 100 },
    ];
    const { clock, pool } = poolOf(keys, () => 0);
    assert.deepEqual(await taken(pool, 3), ["aaaa", "aaaa", "bbbb"]);
    (await takenKey(pool)).used(100);
    assert.deepEqual(await taken(pool, 1), [60_000]);
    clock.advance(59_999);
    assert.deepEqual(await taken(pool, 1), [1]);
    clock.advance(1);
    assert.deepEqual(await taken(pool, 3), ["aaaa", "aaaa", "bbbb"]);
  });

  it("leaves out those that rest, or that a request has tried", async () => {
    const keys = ["aaaa", "bbbb"].map((key) => ({ key, weight: 1 }));
    const { clock, pool } = poolOf(keys, () => 0);
    const first = await takenKey(pool);
    first.exhausted(5_000);
    assert.deepEqual(await taken(pool, 1), ["bbbb"]);
    assert.deepEqual(await taken(pool, 1, new Set(["bbbb"])), [5_000]);
    assert.deepEqual(pool.rests(["m"]), { aaaa: 5_000, bbbb: 0 });
    assert.deepEqual(pool.rests(["other"]), { aaaa: 0, bbbb: 0 }, "only this model has to wait");
    first.refused();
    assert.deepEqual(pool.rests(["other"]), { aaaa: 60_000, bbbb: 0 });
    clock.advance(60_000);
    assert.deepEqual(await taken(pool, 1), ["aaaa"]);
  });

  it("states the rests of two keys that end alike", async () => {
    const keys = ["a-last", "b-last"].map((key) => ({ key, weight: 1 }));
    const { pool } = poolOf(keys, () => 0);
    (await takenKey(pool)).refused();
    assert.deepEqual(pool.rests(["m"]), { last: 60_000, "last (2)": 0 });
  });

  it("knows a key again that has another place after a reload", async () => {
    const [first, second] = ["aaaa", "bbbb"].map((key) => ({ key, weight: 1, rpm: 2 }));
    const { pool, reloaded } = poolOf([first!, second!], () => 0);
    assert.deepEqual(await taken(pool, 3), ["aaaa", "aaaa", "bbbb"]);
    assert.deepEqual(await taken(reloaded([second!]), 2), ["bbbb", 60_000]);
  });

  it("says when all that were tried can be used again at once", async () => {
    const { pool } = poolOf([{ key: "key-aaaa", weight: 1 }], () => 0);
    assert.deepEqual(await taken(pool, 1, new Set(["key-aaaa"])), [0]);
  });
});

const KEYS = ["sk-secret-good", "sk-secret-evil"] as const;

async function start(
  t: TestContext,
  answer: (asked: Asked, key: string) => void,
  keys: object[],
  over: object = {},
) {
  t.mock.method(Math, "random", () => 0);
  const provider = await startProvider(t, (asked) =>
    answer(asked, String(asked.headers.authorization).replace("Bearer ", "")),
  );
  const data = folder();
  const base = configFor(provider.url, [], {
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
  const running = await startGateway(t, merge(base, over) as object);
  const ask = (model = "m", more: object = {}) =>
    running.chat({ model, messages: user("hi"), ...more });
  /** The keys that the provider was asked with, and for which models. */
  const asked = () =>
    provider.asked.map(({ headers, body }) => [
      String(headers.authorization).replace("Bearer ", ""),
      body["model"],
    ]);
  const status = async (): Promise<Record<string, any>> =>
    await json(await fetch(`${running.gateway.adminAddress()}/status`));
  const reload = (changed: object) =>
    running.gateway.reload(checkConfig(merge(merge(base, over), changed)));
  return { provider, asked, data, ask, status, reload, diagnostics: running.diagnostics };
}

const refusing =
  (code: number, headers: Record<string, string> = {}) =>
  (asked: Asked, key: string): void => {
    const isGood = key === KEYS[0];
    const body = isGood ? completion({ content: "Hi." }) : { error: { message: `bad key ${key}` } };
    status(isGood ? 200 : code, body, { "content-type": "application/json", ...headers })(asked);
  };

describe("a provider with several keys", () => {
  const [GOOD, EVIL] = KEYS;
  const BOTH = [{ key: EVIL }, { key: GOOD }];

  it("is asked with another key when one is refused, which rests from then on; keys are named by their ends", async (t) => {
    const { ask, asked, data, status, diagnostics } = await start(t, refusing(401), BOTH);
    for (let i = 0; i < 2; i += 1) assert.equal((await ask()).status, 200);
    assert.deepEqual(
      asked().map(([key]) => key),
      [EVIL, GOOD, GOOD],
    );
    const state = await status();
    assert.ok(state["provider_keys"].pool.evil > 50_000);
    assert.equal(state["provider_keys"].pool.good, 0);
    const [line] = await settled(data);
    assert.deepEqual(
      line!["attempts"].map(({ outcome, key }: Record<string, string>) => [outcome, key]),
      [
        ["model_unavailable", "evil"],
        ["completed", "good"],
      ],
    );
    const told = JSON.stringify([diagnostics, state, line]);
    for (const key of KEYS) assert.ok(!told.includes(key));
    const [failed] = diagnostics.filter(({ event }) => event === "attempt_failed");
    const { level, key, provider_status, provider_message } = failed!;
    assert.deepEqual(
      { level, key, provider_status, provider_message },
      { level: "error", key: "evil", provider_status: 401, provider_message: "bad key [redacted]" },
    );
  });

  it("says when the first key can be used again where all are exhausted", async (t) => {
    const answer = (asked: Asked, key: string) =>
      status(429, { error: {} }, { "retry-after": key === EVIL ? "40" : "20" })(asked);
    const { ask } = await start(t, answer, BOTH);
    for (let i = 0; i < 2; i += 1) {
      const answer = await ask();
      assert.equal((await json(answer)).error.code, "model_overloaded");
      const seconds = Number(answer.headers.get("retry-after"));
      assert.ok(seconds > 10 && seconds <= 20, `${seconds}`);
    }
  });

  it("is asked at once with a key that a reload adds, however long the others have to rest", async (t) => {
    const { ask, reload } = await start(t, refusing(429, { "retry-after": "900" }), [
      { key: EVIL },
    ]);
    assert.equal((await ask()).status, 503);
    reload({ providers: { pool: { api_keys: BOTH } } });
    assert.equal((await ask()).status, 200);
  });

  it("opens the breaker as a refused key only if all of them are", async (t) => {
    const { ask, provider, diagnostics } = await start(t, refusing(401), [
      { key: "sk-a" },
      { key: "sk-b" },
    ]);
    for (let i = 0; i < 2; i += 1)
      assert.equal((await json(await ask())).error.code, "model_unavailable");
    assert.equal(provider.asked.length, 2);
    const keys = diagnostics.map(({ level, key }) => [level, key]);
    const both = [
      ["error", "sk-a"],
      ["error", "sk-b"],
    ];
    assert.deepEqual(keys.slice(0, 2).sort(), both);
  });

  const TOO_LARGE = "Request too large for gpt-4.1 on tokens per min (TPM): Limit 30000";
  const AFFORD = "This request requires more credits, or fewer max_tokens";
  for (const [code, message] of [
    [429, TOO_LARGE],
    [402, AFFORD],
  ] as const)
    it(`keeps its keys for others when it refuses what one client asks for: ${code}`, async (t) => {
      const answer = (asked: Asked): void => {
        const isLarge = asked.body["max_tokens"] === 64_000;
        const body = isLarge ? { error: { message } } : completion({ content: "Hi." });
        status(isLarge ? code : 200, body)(asked);
      };
      const { ask, provider } = await start(t, answer, BOTH);
      assert.notEqual((await ask("m", { max_tokens: 64_000 })).status, 200);
      assert.equal((await ask()).status, 200);
      assert.equal(provider.asked.length, 2);
    });

  it("is asked anew when a key fails in the middle of a reply that is held back", async (t) => {
    const call = { index: 0, id: "call_1", function: { name: "f", arguments: "{}" } };
    const answer = (asked: Asked, key: string): void => {
      const failing = [chunk({ tool_calls: [call] }), { error: { message: "slow", code: 429 } }];
      const good = [chunk({ content: "Hi." }), chunk({}, "stop")];
      stream(key === EVIL ? failing : good)(asked);
    };
    const { ask, provider, status } = await start(t, answer, BOTH, {
      models: { m: { recovery: "hold" } },
      retry: { max_retries: 1, backoff_ms: 1 },
    });
    const tools = [{ type: "function", function: { name: "f" } }];
    const reply = assemble((await readStream(await ask("m", { tools, stream: true }))).chunks);
    assert.deepEqual([reply.message["content"], reply.finish_reason], ["Hi.", "stop"]);
    assert.equal(provider.asked.length, 2);
    const { models } = await status();
    assert.equal(models[0].breaker.failures, 0, "it has another key");
  });

  it("shows what became of its only key when that fails in the middle of such a reply", async (t) => {
    const failing = [chunk({ reasoning: "Hm." }), { error: { message: "no", code: 401 } }];
    const { ask, status } = await start(t, stream(failing), [{ key: "sk-a" }], {
      models: { m: { reasoning: true, stream_only: true } },
    });
    assert.equal((await json(await ask())).error.code, "model_unavailable");
    assert.equal((await status())["models"][0].breaker.state, "open");
  });

  it("is asked with another key although the head of an answer says that one is spent", async (t) => {
    const spent = { "x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "50s" };
    const { ask } = await start(t, refusing(429, spent), BOTH, {
      providers: { pool: { limits: { adaptive: true } } },
    });
    for (let i = 0; i < 2; i += 1) assert.equal((await ask()).status, 200);
  });

  it("has no room when the keys' own limits are used up, and says when", async (t) => {
    const { ask } = await start(t, refusing(401), [{ key: GOOD, rpm: 1 }]);
    assert.equal((await ask()).status, 200);
    const answer = await ask("n");
    assert.equal((await json(answer)).error.code, "model_overloaded");
    assert.ok(Number(answer.headers.get("retry-after")) > 50);
  });

  it("counts in a key's own limit no attempt that the limit of the model has held up", async (t) => {
    const { ask } = await start(t, refusing(401), [{ key: GOOD, rpm: 2 }], {
      models: { m: { limits: { rpm: 1 } } },
      retry: { max_wait_ms: 0 },
    });
    const statuses: number[] = [];
    for (const model of ["m", "m", "n"]) statuses.push((await ask(model)).status);
    assert.deepEqual(statuses, [200, 503, 200]);
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
