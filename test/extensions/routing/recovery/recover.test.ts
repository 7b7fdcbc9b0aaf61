// A request whose stream breaks: how often it is continued, by which models, how each model
// is asked, and what ends it.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { configFor, startGateway, user } from "../../../support/gateway.ts";
import {
  askScene,
  beginningIn,
  broken,
  goesOn,
  inTurn,
  REST,
  sayText,
  seen,
  SHOWN,
  texts,
  WHOLE,
} from "../../../support/recovered.ts";
import {
  chunk,
  held as heldModel,
  silent,
  startProvider,
  status,
  stream,
  type Behaviour,
} from "../../../support/provider.ts";
import { waitFor } from "../../../support/wait.ts";
import { post } from "../../apis/post.ts";

const continuing = (more: object = {}) => ({
  models: { m: { prefill: "plain", recovery: "continue", ...more } },
});
const LIST = {
  models: { m: { prefill: "plain" }, n: { prefill: "plain" } },
  aliases: { x: { models: ["m", "n"], recovery: "continue" } },
};

/** Says two more words each time that it is asked, and breaks off. */
const twoWords: Behaviour = (asked) => {
  const left = WHOLE.slice(beginningIn(asked)?.["content"].length ?? 0);
  broken(texts(/^\s*\S+\s+\S+/.exec(left)?.[0] ?? left))(asked);
};

/** What an attempt has of the usage and the cost. */
const shareOf = ({ share }: { readonly share?: object }): any => share;

describe("max_recoveries", () => {
  const CASES: readonly [bound: number | undefined, text: string, attempts: number][] = [
    [0, "The quick", 1],
    [1, "The quick brown fox", 2],
    [undefined, "The quick brown fox jumps over", 3],
    [10, "The quick brown fox jumps over the lazy dog.", 6],
  ];
  for (const [bound, text, attempts] of CASES)
    it(`${bound ?? "default"}: a continuation that breaks again`, async (t) => {
      const { answer, settlement } = await askScene(t, {
        models: { m: twoWords },
        config: { ...continuing(), retry: { max_recoveries: bound } },
      });
      const got = seen(answer);
      assert.deepEqual([got.text, got.error], [text, "upstream_error"]);
      assert.equal(settlement.attempts.length, attempts);
      assert.equal(settlement.recovery, bound === 0 ? undefined : "failed");
      assert.equal(got.joints.length, Math.min(attempts - 1, 4));
    });
});

describe("who goes on", () => {
  const refuses = status(500, { error: { message: "no" } });
  const rejects = status(400, { error: { message: "prefill is not supported" } });

  it("the next candidate of an alias, at its own price, under its own name", async (t) => {
    const { answer, settlement } = await askScene(t, {
      models: { m: inTurn(broken(texts(SHOWN)), refuses), n: goesOn },
      config: LIST,
      model: "x",
    });
    const got = seen(answer);
    assert.deepEqual([got.text, got.models], [WHOLE, ["m", "n"]]);
    assert.deepEqual(
      settlement.attempts.map((attempt) => [
        attempt.model,
        attempt.outcome,
        shareOf(attempt)?.cost,
      ]),
      [
        ["m", "upstream_error", "0.000009"],
        ["m", "upstream_error", undefined],
        ["n", "completed", "0.00034"],
      ],
    );
    assert.equal(settlement.cost, "0.000349");
    assert.equal(settlement.modelServed, "n");
    // Each attempt has what its cost follows from.
    for (const share of settlement.attempts.map(shareOf).filter(Boolean)) {
      const { input_cache_miss: miss, output } = share.prices;
      const { prompt_cache_hit_tokens: hits, prompt_cache_miss_tokens: misses } = share;
      assert.equal(hits + misses, share.prompt_tokens);
      const { input_cache_hit: hit = miss } = share.prices;
      const cost = hits * hit + misses * miss + share.completion_tokens * output;
      assert.equal(cost.toFixed(6), (Number(share.cost) * 1e6).toFixed(6));
    }
  });

  it("another that breaks too: the record names the first one, with its prices", async (t) => {
    const { answer, settlement } = await askScene(t, {
      models: { m: inTurn(broken(texts(SHOWN)), refuses), n: twoWords },
      config: { ...LIST, retry: { max_recoveries: 1 } },
      model: "x",
    });
    assert.equal(seen(answer).error, "upstream_error");
    const prices = settlement.attempts.flatMap((attempt) => shareOf(attempt)?.prices ?? []);
    assert.equal(prices.length, 2);
    assert.notDeepEqual(prices[0], prices[1]);
    assert.deepEqual([settlement.modelServed, settlement.price], ["m", prices[0]]);
  });

  it("a model that is named itself, and no other: the client gets what broke the stream", async (t) => {
    for (const refusal of [refuses, rejects]) {
      const { answer, provider, settlement } = await askScene(t, {
        models: { m: inTurn(broken(texts(SHOWN)), refusal), n: goesOn },
        config: { models: { ...continuing().models, n: { prefill: "plain" } } },
      });
      const got = seen(answer);
      assert.deepEqual([got.text, got.error, got.models], [SHOWN, "upstream_error", ["m"]]);
      assert.ok(provider.asked.every(({ body }) => body["model"] === "m"));
      assert.equal(settlement.recovery, "failed");
    }
  });

  it("no one, where that is not certain: the client gets what broke the stream", async (t) => {
    const messages = [
      { role: "user", content: "hi" },
      { role: "assistant", content: "So:" },
    ];
    const hidden = [{ reasoning_content: "Hm." }];
    const CASES: readonly [shown: readonly object[], more: object, request: object][] = [
      [texts(SHOWN), { prefill: "none" }, {}],
      [texts(SHOWN), {}, { messages }],
      [[{ content: "\n" }], {}, {}],
      [hidden, {}, {}],
    ];
    for (const [before, more, request] of CASES) {
      const { answer, provider, settlement } = await askScene(t, {
        models: { m: inTurn(broken(before), goesOn) },
        config: { ...continuing(more), retry: { max_retries: 0 } },
        request,
      });
      if (before === hidden) assert.equal(answer.status, 503);
      else assert.equal(seen(answer).error, "upstream_error");
      assert.deepEqual([provider.asked.length, settlement.recovery], [1, undefined]);
    }
  });
});

describe("how a model is asked", () => {
  const beginning = { role: "assistant", content: SHOWN };
  const WIRE: Readonly<Record<string, readonly [message: object, body: object]>> = {
    plain: [beginning, {}],
    prefix: [{ ...beginning, prefix: true }, {}],
    partial: [{ ...beginning, partial: true }, {}],
    continue_final_message: [
      beginning,
      { continue_final_message: true, add_generation_prompt: false },
    ],
  };
  for (const [prefill, [message, more]] of Object.entries(WIRE))
    it(prefill, async (t) => {
      const { answer, provider } = await askScene(t, {
        models: { m: inTurn(broken(texts(`${SHOWN} `)), sayText(REST)) },
        config: continuing({ prefill, extra: { top_k: 5 } }),
        request: { temperature: 0.5 },
      });
      const got = seen(answer);
      assert.deepEqual([got.text, got.joints], [WHOLE, [`${SHOWN} `]]);
      const [first, second] = provider.asked.map(({ body }) => body);
      assert.deepEqual(second, {
        ...first,
        ...more,
        messages: [...first!["messages"], message],
      });
    });

  it("with instructions of the Messages API in their places", async (t) => {
    const provider = await startProvider(t, { m: broken(texts(SHOWN)), n: status(500, {}) });
    const gateway = await startGateway(
      t,
      configFor(provider.url, ["m"], {
        ...LIST,
        apis: ["messages"],
        providers: { native: { dialect: "anthropic", base_url: provider.url, api_key: "sk-n" } },
        models: { m: {}, n: { provider: "native", prefill: "plain" } },
      }),
    );
    const messages = [
      { role: "user", content: "hi" },
      { role: "system", content: "Stop." },
    ];
    const body = { model: "x", max_tokens: 100, stream: true, messages };
    await (await post(`${gateway.url}/v1/messages`, body)).text();
    const [asked, ...begun] = provider.asked.at(-1)!.body["messages"];
    assert.deepEqual(
      [...asked.content, ...begun].map(({ text, content }) => text ?? content[0].text),
      ["hi", "(What follows is an instruction of the system.)\nStop.", SHOWN],
    );
  });

  it("for so many tokens as are left, and without thinking", async (t) => {
    const { provider } = await askScene(t, {
      models: { m: inTurn(broken(texts(SHOWN)), goesOn) },
      config: continuing(),
      request: { max_tokens: 100 },
    });
    assert.deepEqual(
      provider.asked.map(({ body }) => body["max_tokens"]),
      [100, 96],
    );
  });
});

describe("a recovery", () => {
  it("drops a repetition, and bills all that the model said", async (t) => {
    const { answer, settlement } = await askScene(t, {
      models: { m: inTurn(broken(texts(SHOWN)), sayText(WHOLE)) },
      config: continuing(),
    });
    const got = seen(answer);
    assert.deepEqual([got.text, got.joints, settlement.recovery], [WHOLE, [SHOWN], "continued"]);
    assert.deepEqual(
      settlement.attempts.map((attempt) => shareOf(attempt).completion_tokens),
      [4, 7],
    );
    assert.equal(got.usage.completion_tokens, 11);
  });

  it("is refused where the other answer cannot be joined; the breaker counts the break alone", async (t) => {
    const { gateway, answer } = await askScene(t, {
      models: { m: inTurn(broken(texts(SHOWN)), sayText("The quick red cat sleeps.")) },
      config: { ...continuing(), breaker: { failures: 2 } },
    });
    const got = seen(answer);
    assert.deepEqual([got.text, got.error], [SHOWN, "upstream_error"]);
    assert.deepEqual(gateway.breakerOf("m"), ["closed", 1]);
  });

  it("asks nobody whose breaker the break has opened", async (t) => {
    const { answer, provider } = await askScene(t, {
      models: { m: broken(texts(SHOWN)) },
      config: { ...continuing(), breaker: { failures: 1 } },
    });
    assert.equal(seen(answer).error, "upstream_error");
    assert.equal(provider.asked.length, 1);
  });

  it("ends with the request's own time, and is no silence of the provider", async (t) => {
    const says: Behaviour = stream([chunk({ content: "The" })], "open");
    const models = { m: inTurn(broken(texts(SHOWN)), says) };
    const config = { ...continuing(), timeouts: { total_ms: 200 } };
    const { answer, settlement, gateway } = await askScene(t, { models, config });
    const got = seen(answer);
    assert.deepEqual([got.text, got.error], [SHOWN, "upstream_timeout"]);
    assert.deepEqual(gateway.breakerOf("m"), ["closed", 1], "the break alone counts");
    assert.deepEqual(
      settlement.attempts.map((attempt) => [attempt.outcome, shareOf(attempt)?.cost]),
      [
        ["upstream_error", "0.000009"],
        ["upstream_timeout", undefined],
      ],
    );
  });

  it("is silent in between: first_token_ms holds for the continuation too", async (t) => {
    const { answer, settlement } = await askScene(t, {
      models: { m: inTurn(broken(texts(SHOWN)), silent) },
      config: { ...continuing(), timeouts: { first_token_ms: 60, idle_ms: 60 } },
    });
    assert.equal(seen(answer).error, "upstream_error");
    assert.deepEqual(
      settlement.attempts.map(({ outcome }) => outcome),
      ["upstream_error", "upstream_timeout"],
    );
  });
});

describe("what was shown", () => {
  it("is no thinking that the client does not see, of a model without reasoning", async (t) => {
    const { answer } = await askScene(t, {
      models: { m: inTurn(broken([{ reasoning_content: "Hm." }, ...texts(SHOWN)]), goesOn) },
      config: continuing({ reasoning: false }),
      request: { thinking: { type: "enabled" } },
    });
    const got = seen(answer);
    assert.deepEqual([got.text, got.reasoning, got.error], [WHOLE, "", undefined]);
  });

  it("is reasoning in sealed form: it is not continued, and it is billed", async (t) => {
    for (const [include, attempts] of [
      [["reasoning.encrypted_content"], 1],
      [[], 2],
    ] as const) {
      const thinks = broken([{ reasoning_content: "Let me think." }, ...texts(SHOWN)]);
      const provider = await startProvider(t, { m: inTurn(thinks, goesOn) });
      const over = { ...continuing(), apis: ["responses"] };
      const gateway = await startGateway(t, configFor(provider.url, ["m"], over));
      const body = { model: "m", input: "hi", stream: true, include };
      const answer = await post(`${gateway.url}/v1/responses`, body);
      const text = await answer.text();
      assert.equal(provider.asked.length, attempts);
      assert.match(text, attempts === 1 ? /response\.failed/ : /response\.completed/);
      await waitFor(() => gateway.access.length > 0, "the access log's line");
      if (attempts === 1) assert.ok(Number(gateway.access[0]!["completion_tokens"]) > 0);
    }
  });
});

describe("recovery hold", () => {
  const held = { models: { m: { recovery: "hold" } } };

  it("shows keep-alive comments and nothing else before the provider has finished", async (t) => {
    const model = heldModel();
    const { url } = await startProvider(t, model.behaviour);
    const config = { ...held, server: { keep_alive_ms: 20 } };
    const gateway = await startGateway(t, configFor(url, ["m"], config));
    const { body } = await gateway.chat({ model: "m", stream: true, messages: user("hi") });
    let text = "";
    for await (const piece of body!.pipeThrough(new TextDecoderStream())) {
      text += piece;
      if (text.startsWith(": keep-alive\n\n".repeat(2))) model.finish();
    }
    assert.match(text, /^(: keep-alive\n\n){2,}data: /);
    assert.doesNotMatch(text.slice(text.indexOf("data: ")), /keep-alive/);
  });

  it("holds no more than server.max_reply_bytes, be it finished in one piece", async (t) => {
    for (const [characters, code] of [
      [2_000, undefined],
      [5_000, "upstream_error"],
    ] as const) {
      const { answer, settlement, provider } = await askScene(t, {
        models: { m: sayText("x".repeat(characters)) },
        config: {
          ...held,
          server: { max_reply_bytes: 4_096 },
          retry: { max_retries: 2, backoff_ms: 1 },
        },
      });
      assert.equal(settlement.errorCode ?? undefined, code);
      assert.equal(answer.status, code ? 503 : 200);
      assert.equal(provider.asked.length, 1, "a retry would say as much, and be billed");
    }
  });

  it("does not take a long reply for a silent one when the request's time is over", async (t) => {
    const models = { m: stream([chunk({ content: "On and on" })], "open") };
    const config = { ...held, breaker: { failures: 1 }, timeouts: { total_ms: 200 } };
    const { settlement, gateway } = await askScene(t, { models, config });
    assert.equal(settlement.errorCode, "upstream_timeout");
    assert.deepEqual(gateway.breakerOf("m"), ["closed", 0]);
  });
});
