// A request whose stream breaks: how often it is continued, by which models, how each model is
// called, and what ends it.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { withPrefill } from "../../../../src/extensions/routing/recovery/continue.ts";
import { configFor, startGateway, startWith, user } from "../../../support/gateway.ts";
import {
  askScene,
  beginningIn,
  broken,
  goesOn,
  inTurn,
  overOnceBegun,
  REST,
  sayText,
  seen,
  SHOWN,
  texts,
  WHOLE,
} from "../../../support/recovered.ts";
import {
  chunk,
  held as open,
  startProvider,
  status,
  stream,
  type Behaviour,
} from "../../../support/provider.ts";
import { timersOnCall } from "../../../support/unhurried-clock.ts";
import { waitFor } from "../../../support/wait.ts";
import { post } from "../../apis/post.ts";

const continuing = (more: object = {}) => ({
  models: { m: { prefill: "plain", recovery: "continue", ...more } },
});
const LIST = {
  models: { m: { prefill: "plain" }, n: { prefill: "plain" } },
  aliases: { x: { models: ["m", "n"], recovery: "continue" } },
};

/** Sends two more words in each call, and breaks off. */
const twoWords: Behaviour = (asked) => {
  const left = WHOLE.slice(beginningIn(asked)?.["content"].length ?? 0);
  broken(texts(/^\s*\S+\s+\S+/.exec(left)?.[0] ?? left))(asked);
};

/** The usage and cost of each attempt. */
const sharesOf = ({ settlement }: Awaited<ReturnType<typeof askScene>>): any[] =>
  settlement.attempts.map(({ share }: { readonly share?: object }) => share);

describe("max_recoveries", () => {
  const CASES: readonly [bound: number | undefined, text: string, attempts: number][] = [
    [0, "The quick", 1],
    [1, "The quick brown fox", 2],
    [undefined, "The quick brown fox jumps over", 3],
    [10, "The quick brown fox jumps over the lazy dog.", 6],
  ];
  for (const [bound, text, attempts] of CASES)
    it(`${bound ?? "default"}: a continuation that breaks again`, async (t) => {
      const config = { ...continuing(), retry: { max_recoveries: bound } };
      const scene = await askScene(t, { models: { m: twoWords }, config });
      const got = seen(scene.answer);
      assert.deepEqual([got.text, got.error], [text, "upstream_error"]);
      assert.equal(scene.attempts.length, attempts);
      assert.equal(scene.settlement.recovery, bound === 0 ? undefined : "failed");
      assert.equal(got.joints.length, Math.min(attempts - 1, 4));
    });
});

describe("who continues", () => {
  const refuses = status(500, { error: { message: "no" } });
  const rejects = status(400, { error: { message: "prefill is not supported" } });

  it("the next candidate of an alias, at its own price and under its own name", async (t) => {
    const models = { m: inTurn(broken(texts(SHOWN)), refuses), n: goesOn };
    const scene = await askScene(t, { models, config: LIST, model: "x" });
    const got = seen(scene.answer);
    assert.deepEqual([got.text, got.models], [WHOLE, ["m", "n"]]);
    assert.deepEqual(scene.attempts, ["m upstream_error", "m upstream_error", "n completed"]);
    const { cost, modelServed } = scene.settlement;
    assert.deepEqual([cost, modelServed], ["0.000349", "n"]);
    const shares = sharesOf(scene);
    const costs = shares.map((share) => share?.cost);
    assert.deepEqual(costs, ["0.000009", undefined, "0.00034"]);
    // Each attempt has the figures that its cost is computed from.
    for (const share of shares.filter(Boolean)) {
      const { input_cache_miss: miss, input_cache_hit: hit = miss, output } = share.prices;
      const { prompt_cache_hit_tokens: hits, prompt_cache_miss_tokens: misses } = share;
      assert.equal(hits + misses, share.prompt_tokens);
      const cost = hits * hit + misses * miss + share.completion_tokens * output;
      assert.equal(cost.toFixed(6), (Number(share.cost) * 1e6).toFixed(6));
    }
  });

  it("a model requested by its own name, and no other: the client gets the error that broke the stream", async (t) => {
    const config = { models: { ...continuing().models, n: { prefill: "plain" } } };
    for (const refusal of [refuses, rejects]) {
      const models = { m: inTurn(broken(texts(SHOWN)), refusal), n: goesOn };
      const { answer, provider, settlement } = await askScene(t, { models, config });
      const got = seen(answer);
      assert.deepEqual([got.text, got.error, got.models], [SHOWN, "upstream_error", ["m"]]);
      assert.ok(provider.asked.every(({ body }) => body["model"] === "m"));
      assert.equal(settlement.recovery, "failed");
    }
  });

  it("no one if a safe continuation is not certain: the client gets the error that broke the stream", async (t) => {
    const says = { role: "assistant", content: "So:" };
    const messages = [{ role: "user", content: "hi" }, says];
    const CASES: readonly [shown: readonly object[], code: number, request: object][] = [
      [texts(SHOWN), 200, { messages }],
      [[{ content: "\n" }], 200, {}],
      [[{ reasoning_content: "Hm." }], 503, {}],
    ];
    for (const [before, code, request] of CASES) {
      const models = { m: inTurn(broken(before), goesOn) };
      const scene = await askScene(t, { models, config: continuing(), request });
      const { answer, provider, settlement } = scene;
      if (code === 200) assert.equal(seen(answer).error, "upstream_error");
      assert.deepEqual([answer.status, settlement.errorCode], [code, "upstream_error"]);
      assert.deepEqual([provider.asked.length, settlement.recovery], [1, undefined]);
    }
  });
});

describe("how a model is called", () => {
  const beginning = { role: "assistant", content: SHOWN };
  const FINAL = { continue_final_message: true, add_generation_prompt: false };
  const WIRE: Readonly<Record<string, readonly [message: object, body: object]>> = {
    plain: [beginning, {}],
    prefix: [{ ...beginning, prefix: true }, {}],
    partial: [{ ...beginning, partial: true }, {}],
    continue_final_message: [beginning, FINAL],
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
      const messages = [...first!["messages"], message];
      assert.deepEqual(second, { ...first, ...more, messages });
    });

  it("with instructions of the Messages API in their places", async (t) => {
    const provider = await startProvider(t, { m: broken(texts(SHOWN)), n: status(500) });
    const native = { dialect: "anthropic", base_url: provider.url, api_key: "sk-n" };
    const models = { m: {}, n: { provider: "native", prefill: "plain" } };
    const over = { ...LIST, apis: ["messages"], providers: { native }, models };
    const gateway = await startGateway(t, configFor(provider.url, ["m"], over));
    const instruction = { role: "system", content: "Stop." };
    const messages = [{ role: "user", content: "hi" }, instruction];
    const body = { model: "x", max_tokens: 100, stream: true, messages };
    await (await post(`${gateway.url}/v1/messages`, body)).text();
    const [asked, ...begun] = provider.asked.at(-1)!.body["messages"];
    const said = [...asked.content, ...begun].map(({ text, content }) => text ?? content[0].text);
    const instructed = "(What follows is an instruction of the system.)\nStop.";
    assert.deepEqual(said, ["hi", instructed, SHOWN]);
  });

  it("for the remaining tokens, and without thinking", async (t) => {
    const models = { m: inTurn(broken(texts(SHOWN)), goesOn) };
    const request = { max_tokens: 100 };
    const { provider } = await askScene(t, { models, config: continuing(), request });
    const limits = provider.asked.map(({ body }) => body["max_tokens"]);
    assert.deepEqual(limits, [100, 96]);
    const chat = { messages: [], maxTokens: 100, wantsThinking: true, effort: "high" };
    const [some, all] = [4, 200].map((used) => withPrefill(chat as never, SHOWN, used));
    const { maxTokens, wantsThinking, effort } = some!;
    assert.deepEqual([maxTokens, wantsThinking, effort], [96, false, undefined]);
    assert.equal(all!.maxTokens, 1);
  });
});

describe("a recovery", () => {
  const repeats = (said: string) => ({ m: inTurn(broken(texts(SHOWN)), sayText(said)) });

  it("drops a repetition, and bills everything that the model sent", async (t) => {
    const scene = await askScene(t, { models: repeats(WHOLE), config: continuing() });
    const { text, joints, usage } = seen(scene.answer);
    const { recovery } = scene.settlement;
    assert.deepEqual([text, joints, recovery], [WHOLE, [SHOWN], "continued"]);
    const tokens = sharesOf(scene).map(({ completion_tokens }) => completion_tokens);
    assert.deepEqual([...tokens, usage.completion_tokens], [4, 7, 11]);
  });

  it("is rejected if the other answer cannot be joined, and the breaker counts only the break", async (t) => {
    const config = { ...continuing(), breaker: { failures: 2 } };
    const models = repeats("The quick red cat sleeps.");
    const { answer, gateway } = await askScene(t, { models, config });
    const got = seen(answer);
    assert.deepEqual([got.text, got.error], [SHOWN, "upstream_error"]);
    assert.deepEqual(gateway.breakerOf("m"), ["closed", 1]);
  });

  it("calls no model whose breaker the break has opened", async (t) => {
    const config = { ...continuing(), breaker: { failures: 1 } };
    const { answer, provider } = await askScene(t, { models: repeats(REST), config });
    assert.equal(seen(answer).error, "upstream_error");
    assert.equal(provider.asked.length, 1);
  });

  it("ends with the request's total time, which does not count as a silent provider", async (t) => {
    const says = stream([chunk({ content: "The" })], "open");
    const models = { m: inTurn(broken(texts(SHOWN)), says) };
    const { timeouts, time } = overOnceBegun(2);
    const config = { ...continuing(), timeouts };
    const scene = await askScene(t, { models, config, time });
    const got = seen(scene.answer);
    assert.deepEqual([got.text, got.error], [SHOWN, "upstream_timeout"]);
    assert.deepEqual(scene.gateway.breakerOf("m"), ["closed", 1], "the break alone counts");
    assert.deepEqual(scene.attempts, ["m upstream_error", "m upstream_timeout"]);
    const costs = sharesOf(scene).map((share) => share?.cost);
    assert.deepEqual(costs, ["0.000009", undefined]);
  });

  it("is silent in between: first_token_ms applies to the continuation too", async (t) => {
    const time = timersOnCall(123_456);
    const models = { m: inTurn(broken(texts(SHOWN)), time.fire) };
    const config = { ...continuing(), timeouts: { first_token_ms: 123_456 } };
    const { answer, attempts } = await askScene(t, { models, config, time });
    assert.equal(seen(answer).error, "upstream_error");
    assert.deepEqual(attempts, ["m upstream_error", "m upstream_timeout"]);
  });
});

describe("the shown text", () => {
  it("includes sealed reasoning, which is billed, but none that the client does not get", async (t) => {
    const hidden = { max_tokens: 9, thinking: { type: "adaptive", display: "omitted" } };
    for (const [path, fields, attempts, reasoning] of [
      ["responses", { include: ["reasoning.encrypted_content"] }, 1],
      ["responses", {}, 2],
      ["messages", hidden, 1],
      ["messages", hidden, 2, false],
      ["chat/completions", { thinking: { type: "enabled" } }, 2, false],
    ] as const) {
      const thinks = broken([{ reasoning_content: "Let me think." }, ...texts(SHOWN)]);
      const over = { ...continuing({ reasoning }), apis: ["messages", "responses"] };
      const gateway = await startWith(t, { m: inTurn(thinks, goesOn) }, over);
      const body = { model: "m", input: "hi", messages: user("hi"), stream: true, ...fields };
      const text = await (await post(`${gateway.url}/v1/${path}`, body)).text();
      assert.equal(gateway.provider.asked.length, attempts);
      const end =
        attempts === 1 ? /event: (response\.failed|error)\n/ : /(completed|_stop|DONE])\n/;
      assert.match(text, end);
      // The usage only states how many tokens of thoughts there were.
      if (attempts === 2) assert.doesNotMatch(text.replace("thinking_tokens", ""), /think/);
      await waitFor(() => gateway.access.length > 0, "the access log's line");
      if (attempts === 1) assert.ok(Number(gateway.access[0]!["completion_tokens"]) > 0);
    }
  });
});

describe("recovery hold", () => {
  const held = { models: { m: { recovery: "hold" } } };

  it("shows only keep-alive comments until the provider has finished", async (t) => {
    const { behaviour, finish } = open();
    const config = { ...held, server: { keep_alive_ms: 20 } };
    const gateway = await startWith(t, { m: behaviour }, config);
    const { body } = await gateway.chat({ model: "m", stream: true, messages: user("hi") });
    let text = "";
    for await (const piece of body!.pipeThrough(new TextDecoderStream())) {
      text += piece;
      if (text.startsWith(": keep-alive\n\n".repeat(2))) finish();
    }
    assert.match(text, /^(: keep-alive\n\n){2,}data: /);
    assert.doesNotMatch(text.slice(text.indexOf("data: ")), /keep-alive/);
  });

  it("holds at most server.max_reply_bytes, even if one piece ends the reply", async (t) => {
    const retry = { max_retries: 2, backoff_ms: 1 };
    const config = { ...held, server: { max_reply_bytes: 4_096 }, retry };
    for (const [characters, status, code] of [
      [2_000, 200, undefined],
      [5_000, 503, "upstream_error"],
    ] as const) {
      const models = { m: sayText("x".repeat(characters)) };
      const { answer, settlement, provider } = await askScene(t, { models, config });
      assert.deepEqual([answer.status, settlement.errorCode ?? undefined], [status, code]);
      assert.equal(provider.asked.length, 1, "a retry would be as long, and be billed");
    }
  });

  it("does not count a long reply as silence when the request's time is over", async (t) => {
    const models = { m: stream([chunk({ content: "On and on" })], "open") };
    const { timeouts, time } = overOnceBegun(1);
    const config = { ...held, breaker: { failures: 1 }, timeouts };
    const { settlement, gateway } = await askScene(t, { models, config, time });
    assert.equal(settlement.errorCode, "upstream_timeout");
    assert.deepEqual(gateway.breakerOf("m"), ["closed", 0]);
  });
});
