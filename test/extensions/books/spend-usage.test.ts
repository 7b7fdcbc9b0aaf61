// Whose and how much: the usage and the cost in the spend log are the provider's figures at the
// price of the model that served, whatever the client asked for, however many attempts it took; and
// what was refused stands in no book.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { checkConfig } from "../../support/config.ts";
import {
  costOf,
  COUNTED,
  entries,
  only,
  PRICE,
  priced,
  settles,
  spendLines,
  sum,
  type Line,
} from "../../support/books.ts";
import { KEY, merge, readStream, user } from "../../support/gateway.ts";
import {
  chunk,
  completion,
  held,
  speak,
  status,
  stream,
  USAGE,
  usageChunk,
  type Behaviour,
} from "../../support/provider.ts";

/** Answers whole or streamed, with this usage or, if it is undefined, none. */
const using =
  (usage: object | undefined, delta: object = { content: "Fine." }): Behaviour =>
  (asked) =>
    asked.body["stream"]
      ? stream([chunk(delta), chunk({}, "stop"), ...(usage ? [usageChunk(usage)] : [])])(asked)
      : status(200, completion(delta, "stop", { usage }))(asked);

const numbers = ({ usage }: Line) =>
  [
    "prompt_tokens",
    "completion_tokens",
    "total_tokens",
    "prompt_cache_hit_tokens",
    "prompt_cache_miss_tokens",
    "reasoning_tokens",
  ].map((name) => usage[name]);

describe("usage", { concurrency: 4 }, () => {
  const GIVEN: [name: string, usage: object | undefined, expected: number[]][] = [
    ["cached tokens in OpenAI's details", USAGE, [20, 7, 27, 8, 12, 3]],
    [
      "cached tokens as DeepSeek names them",
      {
        prompt_tokens: 20,
        completion_tokens: 7,
        prompt_cache_hit_tokens: 15,
        prompt_cache_miss_tokens: 5,
      },
      [20, 7, 27, 15, 5, 0],
    ],
    [
      "reasoning beside the completion, as xAI counts",
      {
        prompt_tokens: 20,
        completion_tokens: 7,
        total_tokens: 30,
        completion_tokens_details: { reasoning_tokens: 3 },
      },
      [20, 10, 30, 0, 20, 3],
    ],
    [
      "more cached than there were",
      { prompt_tokens: 20, completion_tokens: 7, prompt_tokens_details: { cached_tokens: 99 } },
      [20, 7, 27, 20, 0, 0],
    ],
    [
      "all cached, nothing generated",
      { prompt_tokens: 20, completion_tokens: 0, cached_tokens: 20 },
      [20, 0, 20, 20, 0, 0],
    ],
    [
      "very many",
      { prompt_tokens: 600_000_000, completion_tokens: 400_000_000 },
      [600_000_000, 400_000_000, 1e9, 0, 600_000_000, 0],
    ],
  ];
  for (const [name, usage, expected] of GIVEN) {
    for (const how of [
      {},
      { stream: true },
      { stream: true, stream_options: { include_usage: true } },
    ]) {
      it(`${name}, asked for with ${JSON.stringify(how)}: the provider's figures at their prices`, async (t) => {
        const generated = expected[1]! > 0 ? undefined : {};
        const { dir, ask, provider } = await priced(t, { m: using(usage, generated) });
        await ask(how);
        const { settle } = only(dir);
        assert.deepEqual(numbers(settle), expected);
        assert.deepEqual(
          [settle["usage_source"], settle["status"], settle["cost"]],
          ["provider", "completed", costOf(settle["usage"], PRICE)],
        );
        if ("stream" in how)
          assert.deepEqual(
            provider.asked[0]!.body["stream_options"],
            { include_usage: true },
            "it is always asked for",
          );
      });
    }
  }

  for (const [name, usage] of [
    ["no usage", undefined],
    ["a usage of zeros", { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 }],
    ["a usage that is none", { prompt_tokens: "many" }],
  ] as const) {
    for (const streaming of [false, true]) {
      it(`${name}${streaming ? ", streaming" : ""}: an estimate, marked as one`, async (t) => {
        const { dir, ask } = await priced(t, { m: using(usage) });
        await ask({ stream: streaming });
        const { settle } = only(dir);
        assert.deepEqual(
          [settle["usage_source"], settle["status"], numbers(settle)],
          ["estimated", "completed", [4, 2, 6, 0, 4, 0]],
        );
        assert.equal(settle["cost"], costOf(settle["usage"], PRICE));
      });
    }
  }

  for (const streaming of [false, true]) {
    it(`thinking counts once, shown or hidden${streaming ? ", streaming" : ""}`, async (t) => {
      const { dir, ask } = await priced(t, {
        reported: speak("Four.", { reasoning: "Two and two." }),
        silent: using(undefined, { reasoning_content: "Two and two.", content: "Four." }),
      });
      for (const model of ["reported", "silent"])
        for (const type of ["enabled", "disabled"]) {
          const { text } = await ask({ model, stream: streaming, thinking: { type } });
          assert.equal(text.includes("Two"), type === "enabled");
        }
      const found = settles(dir);
      assert.deepEqual(found.map(numbers), [
        [20, 7, 27, 8, 12, 3],
        [20, 7, 27, 8, 12, 3],
        [4, 5, 9, 0, 4, 3],
        [4, 5, 9, 0, 4, 3],
      ]);
      for (const settle of found)
        assert.equal(
          settle["cost"],
          costOf(settle["usage"], PRICE),
          "reasoning is a part of the output, and is paid as such",
        );
    });
  }
});

describe("price", { concurrency: 4 }, () => {
  it("none: tokens are counted, nothing is owed; none for cached tokens: they cost what others do", async (t) => {
    const { dir, gw, config, ask } = await priced(t, { free: speak("Hi."), plain: speak("Hi.") });
    const plain = { input_cache_miss: 0.28, output: 0.42 };
    const { free, ...models } = (config as { models: Record<string, object> }).models;
    gw.gateway.reload(
      checkConfig(
        {
          ...config,
          models: {
            free: { ...free, price: undefined },
            plain: { ...models["plain"], price: plain },
          },
        },
        {},
      ),
    );
    await ask({ model: "free" });
    await ask({ model: "plain" });
    assert.deepEqual(
      settles(dir).map(({ usage, cost }) => [usage, cost]),
      [
        [COUNTED, "0"],
        [COUNTED, "0.00000854"],
      ],
    );
  });

  it("of the model that served: an alias of three, of which two fail, is one record and one cost", async (t) => {
    const models = {
      a: { price: { input_cache_miss: 1, output: 1 } },
      b: { price: { input_cache_miss: 2, output: 2 } },
      c: { price: { input_cache_miss: 3, output: 3.000003 } },
    };
    const aliases = { team: { models: ["a", "b", "c"] } };
    for (const streaming of [false, true]) {
      const { dir, ask, provider } = await priced(
        t,
        { a: status(500), b: status(429), c: speak("Fine.") },
        { models: merge(models, { c: { price: { input_cache_hit: 0.25 } } }), aliases },
      );
      const answer = await ask({ model: "team", stream: streaming });
      assert.equal(answer.status, 200);
      assert.equal(provider.asked.length, 3);
      const { open, settle } = only(dir);
      assert.deepEqual(
        [
          open["model_requested"],
          settle["model_requested"],
          settle["model_served"],
          settle["status"],
        ],
        ["team", "team", "c", "completed"],
      );
      assert.deepEqual(
        settle["attempts"].map(({ model, provider: name, outcome }: Line) => [
          model,
          name,
          outcome,
        ]),
        [
          ["a", "lab", "upstream_error"],
          ["b", "lab", "model_overloaded"],
          ["c", "lab", "completed"],
        ],
      );
      assert.equal(
        settle["cost"],
        costOf(COUNTED, { input_cache_miss: 3, input_cache_hit: 0.25, output: 3.000003 }),
      );
    }
  });

  it("the same model asked again: one record, one cost, each attempt listed", async (t) => {
    let asked = 0;
    const third: Behaviour = (each) => {
      asked += 1;
      return (asked < 3 ? status(500) : speak("Fine."))(each);
    };
    const { dir, ask } = await priced(
      t,
      { m: third },
      { retry: { max_retries: 2, backoff_ms: 1 } },
    );
    await ask();
    const { settle } = only(dir);
    assert.deepEqual(
      settle["attempts"].map(({ outcome }: Line) => outcome),
      ["upstream_error", "upstream_error", "completed"],
    );
    assert.equal(settle["cost"], costOf(COUNTED, PRICE));
  });

  it("all candidates fail: one record, no model served, nothing owed", async (t) => {
    const { dir, ask } = await priced(
      t,
      { a: status(500), b: status(500) },
      { aliases: { team: { models: ["a", "b"] } } },
    );
    assert.equal((await ask({ model: "team" })).status, 503);
    const { settle } = only(dir);
    assert.deepEqual(
      [
        settle["model_served"],
        settle["provider"],
        settle["attempts"].length,
        settle["cost"],
        settle["usage_source"],
      ],
      [null, null, 2, "0", "none"],
    );
  });

  it("a request in flight keeps the price and the currency that it began with", async (t) => {
    const { behaviour, finish } = held();
    const dear = { input_cache_hit: 1_000, input_cache_miss: 2_000, output: 999_999.999999 };
    const { dir, gw, config, ask } = await priced(t, { m: speak("Hi."), slow: behaviour });
    const slow = await gw.chat({ model: "slow", stream: true, messages: user("Say something.") });
    gw.gateway.reload(
      checkConfig(
        merge(config, { currency: "EUR", models: { slow: { price: dear }, m: { price: dear } } }),
        {},
      ),
    );
    finish();
    assert.ok((await readStream(slow)).done);
    await ask({ model: "m" });
    const [old, renewed] = entries(dir).map(({ settle }) => settle) as [Line, Line];
    assert.deepEqual([old["cost"], old["currency"]], [costOf(old["usage"], PRICE), "USD"]);
    assert.deepEqual([renewed["cost"], renewed["currency"]], [costOf(COUNTED, dear), "EUR"]);
  });

  it("sums to the last digit", async (t) => {
    const { dir, ask } = await priced(
      t,
      { a: speak("Hi."), b: speak("Hi.") },
      {
        models: {
          b: { price: { input_cache_hit: 0, input_cache_miss: 0.000001, output: 1_000_000 } },
        },
      },
    );
    await Promise.all(
      Array.from({ length: 30 }, (_, at) => ask({ model: at % 3 === 0 ? "b" : "a" })),
    );
    assert.equal(sum(settles(dir).map(({ cost }) => cost)), "70.00178000026");
  });
});

describe("what is refused stands in no book", () => {
  it("400, 401, 403, 404, 413, 429: neither opened nor asked of a provider", async (t) => {
    const over = {
      server: { max_body_bytes: 2_000 },
      models: { text: { supports: [] } },
      aliases: { off: { models: ["m"], enabled: false } },
      keys: [
        { account: "acme", key: KEY },
        { account: "narrow", key: "sk-narrow", models: ["text"] },
        { account: "none", key: "sk-none", rpm: 0 },
      ],
    };
    const { dir, ask, gw, provider } = await priced(
      t,
      { m: speak("Hi."), text: speak("Hi.") },
      over,
    );
    const as = (key: string) => ({ authorization: `Bearer ${key}` });
    const refusals: [number, Promise<{ status: number }>][] = [
      [400, ask({ messages: [] })],
      [400, gw.chat("{")],
      [400, ask({ model: "text", response_format: { type: "json_object" } })],
      [401, ask({}, as("sk-wrong"))],
      [401, ask({}, { authorization: "" })],
      [403, ask({ model: "m" }, as("sk-narrow"))],
      [404, ask({ model: "ghost" })],
      [404, ask({ model: "off" })],
      [413, ask({ messages: user("x".repeat(3_000)) })],
      [429, ask({}, as("sk-none"))],
    ];
    for (const [code, answer] of refusals) assert.equal((await answer).status, code);
    await gw.gateway.close(0);
    assert.deepEqual([spendLines(dir), provider.asked.length], [[], 0]);
  });
});
