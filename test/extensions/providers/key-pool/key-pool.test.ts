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

/** A pool by a clock that the test moves. `random`: draws the keys. */
function poolOf(keys: readonly PoolKey[], random: () => number) {
  const clock = createFakeClock();
  const restOf = sharedRests({ clock, on: () => undefined }, "test");
  const services = { clock, gates: createGates(clock), restOf, random };
  return { clock, pool: createKeyPool("p", keys, services) };
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
    const last = await pool.take("m", new Set());
    assert.ok(typeof last !== "number");
    last.used(100);
    assert.deepEqual(await taken(pool, 1), [60_000]);
    clock.advance(59_999);
    assert.deepEqual(await taken(pool, 1), [1]);
    clock.advance(1);
    assert.deepEqual(await taken(pool, 3), ["aaaa", "aaaa", "bbbb"]);
  });

  it("leaves out those that rest, or that a request has tried", async () => {
    const keys = ["aaaa", "bbbb"].map((key) => ({ key, weight: 1 }));
    const { clock, pool } = poolOf(keys, () => 0);
    const first = await pool.take("m", new Set());
    assert.ok(typeof first !== "number");
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

  it("says when all that were tried can be used again at once", async () => {
    const { pool } = poolOf([{ key: "key-aaaa", weight: 1 }], () => 0);
    const only = await pool.take("m", new Set());
    assert.ok(typeof only !== "number");
    only.exhausted(0);
    assert.deepEqual(await taken(pool, 1, new Set(["key-aaaa"])), [0]);
  });

  it("gives back a request for which no provider was asked", async () => {
    const { pool } = poolOf([{ key: "key-aaaa", weight: 1, rpm: 1 }], () => 0);
    const only = await pool.take("m", new Set());
    assert.ok(typeof only !== "number");
    only.unused();
    assert.deepEqual(await taken(pool, 2), ["aaaa", 60_000]);
  });
});

const KEYS = ["sk-secret-good", "sk-secret-evil"];

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
  return { provider, data, ...(await startGateway(t, merge(base, over) as object)) };
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
    for (const model of ["m", "m", "n"])
      assert.equal((await chat({ model, messages: user("hi") })).status, 200);
    assert.deepEqual(
      provider.asked.map(({ headers, body }) => [headers.authorization, body["model"]]),
      [
        [`Bearer ${KEYS[1]}`, "m"],
        [`Bearer ${KEYS[0]}`, "m"],
        [`Bearer ${KEYS[0]}`, "m"],
        [`Bearer ${KEYS[1]}`, "n"],
        [`Bearer ${KEYS[0]}`, "n"],
      ],
    );
  });

  it("says when the first key can be used again where all are exhausted", async (t) => {
    const { chat } = await start(
      t,
      (asked) => {
        const wait = String(asked.headers.authorization).endsWith("-1") ? "20" : "40";
        status(429, { error: {} }, { "retry-after": wait })(asked);
      },
      [{ key: "sk-1" }, { key: "sk-2" }],
    );
    for (let i = 0; i < 2; i += 1) {
      const answer = await chat({ model: "m", messages: user("hi") });
      assert.equal((await json(answer)).error.code, "model_overloaded");
      const seconds = Number(answer.headers.get("retry-after"));
      assert.ok(seconds > 10 && seconds <= 20, `${seconds}`);
    }
  });

  it("opens the breaker as a refused key only if all of them are", async (t) => {
    const { chat, provider } = await start(t, refusing(401), [{ key: "sk-a" }, { key: "sk-b" }]);
    const answer = await chat({ model: "m", messages: user("hi") });
    assert.equal((await json(answer)).error.code, "model_unavailable");
    assert.equal(provider.asked.length, 2);
    assert.equal((await chat({ model: "m", messages: user("hi") })).status, 503);
    assert.equal(provider.asked.length, 2);
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
      const { chat, provider } = await start(t, answer, bothOf(KEYS[0]!, KEYS[1]!));
      const large = { model: "m", max_tokens: 64_000, messages: user("hi") };
      assert.notEqual((await chat(large)).status, 200);
      assert.equal((await chat({ model: "m", messages: user("hi") })).status, 200);
      assert.equal(provider.asked.length, 2);
    });

  it("is asked anew when a key fails in the middle of a reply that is held back", async (t) => {
    const call = { index: 0, id: "call_1", function: { name: "f", arguments: "{}" } };
    const answer = (asked: Asked, key: string): void => {
      const failing = [chunk({ tool_calls: [call] }), { error: { message: "slow", code: 429 } }];
      const good = [chunk({ content: "Hi." }), chunk({}, "stop")];
      stream(key === KEYS[1] ? failing : good)(asked);
    };
    const { chat, provider, gateway } = await start(t, answer, bothOf(KEYS[1]!, KEYS[0]!), {
      models: { m: { recovery: "hold" } },
      retry: { max_retries: 1, backoff_ms: 1 },
    });
    const tools = [{ type: "function", function: { name: "f" } }];
    const asked = { model: "m", messages: user("hi"), tools, stream: true };
    const reply = assemble((await readStream(await chat(asked))).chunks);
    assert.deepEqual([reply.message["content"], reply.finish_reason], ["Hi.", "stop"]);
    assert.equal(provider.asked.length, 2);
    const look = await fetch(`${gateway.adminAddress()}/status`);
    const { models } = (await look.json()) as { models: { breaker: { failures: number } }[] };
    assert.equal(models[0]!.breaker.failures, 0, "it has another key");
  });

  it("shows what became of its only key when that fails in the middle of such a reply", async (t) => {
    const failing = [chunk({ reasoning: "Hm." }), { error: { message: "no", code: 401 } }];
    const { chat, gateway } = await start(t, stream(failing), [{ key: "sk-a" }], {
      models: { m: { reasoning: true, stream_only: true } },
    });
    const answer = await chat({ model: "m", messages: user("hi") });
    assert.equal((await json(answer)).error.code, "model_unavailable");
    const state = (await (await fetch(`${gateway.adminAddress()}/status`)).json()) as any;
    assert.equal(state.models[0].breaker.state, "open");
  });

  it("is asked with another key although the head of an answer says that one is spent", async (t) => {
    const spent = { "x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "50s" };
    const { chat } = await start(t, refusing(429, spent), bothOf(KEYS[1]!, KEYS[0]!), {
      providers: { pool: { limits: { adaptive: true } } },
    });
    for (let i = 0; i < 2; i += 1)
      assert.equal((await chat({ model: "m", messages: user("hi") })).status, 200);
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
