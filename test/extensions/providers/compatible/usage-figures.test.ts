// Which of a provider's figures are billed, through a gateway: early ones, those in the same event
// as an error, and estimates of media. core/ledger/meter.test.ts tests which ones count. Then the
// meaning of vendors' figures: tokens in several places and under several names, and log
// probabilities.

import assert from "node:assert/strict";
import { it, describe } from "node:test";
import type { Settlement } from "../../../../src/core/ledger/ledger.ts";
import { costOf, PRICE } from "../../../support/books.ts";
import { configFor, json, observedBy, startGateway, user } from "../../../support/gateway.ts";
import {
  chunk,
  event,
  rawStream,
  speak,
  stream,
  usageChunk,
  startProvider,
} from "../../../support/provider.ts";
import { ended, say, start, STOP } from "../anthropic/events.ts";
import { tokenLogprob } from "../../../../src/core/openai/parts.ts";
import { makeUsage } from "../../../../src/core/openai/usage.ts";
import { splitLogprobs } from "../../../../src/extensions/providers/compatible/decoder.ts";
import { choice, decoderWith, streamed } from "./events.ts";

const THINKING = { openai: "thinking", anthropic: "adaptive", gemini: "level" } as const;
const TEXT = "x".repeat(400);
const sse = (...events: object[]) => rawStream(events.map(event).join(""));
const figures = (prompt: number, output: number) => ({
  prompt_tokens: prompt,
  completion_tokens: output,
});
const SPOKEN = chunk({ content: TEXT });
const FAILED = { error: { code: 500, message: "it broke" }, ...usageChunk(figures(43, 10)) };
const BLOCK = { type: "content_block_delta", index: 0, delta: say(TEXT) };
const BEGUN = start([], { input_tokens: 20, output_tokens: 1 });
const OVERLOADED = { type: "error", error: { type: "overloaded_error", message: "no" } };
const said = (usageMetadata?: object) => ({
  candidates: [{ content: { role: "model", parts: [{ text: TEXT }] } }],
  usageMetadata,
});
const UNAVAILABLE = { error: { code: 503, status: "UNAVAILABLE", message: "no" } };
const FULL = { promptTokenCount: 20, candidatesTokenCount: 90 };
const LAST = {
  candidates: [{ finishReason: "STOP" }],
  usageMetadata: { trafficType: "ON_DEMAND" },
};

const HEAD = Buffer.from("\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x02\0\0\0\x02\0", "latin1");
const imageAt = (url: string) => ({ type: "image_url", image_url: { url } });
const IMAGES = Array(24).fill(imageAt(`data:image/png;base64,${HEAD.toString("base64")}`));
const WORDS = user("Say something.");
const SHOWN = [{ role: "user", content: [{ type: "text", text: "1234" }, ...IMAGES] }];

/** What is settled: the outcome, the source of the figures, and the tokens of prompt and reply. */
const BILLS = [
  ["openai", "an error after text", stream([SPOKEN, FAILED]), "failed, provider: 43 + 10"],
  ["openai", "an error before any text", stream([FAILED]), "failed, none: 0 + 0"],
  [
    "openai",
    "an error after a finish, and more behind it",
    stream([chunk({ content: TEXT }, "stop"), FAILED, usageChunk(figures(43, 12))]),
    "completed, provider: 43 + 12",
  ],
  [
    "anthropic",
    "an error after text",
    sse(BEGUN, BLOCK, { ...OVERLOADED, usage: { input_tokens: 20, output_tokens: 8 } }),
    "failed, provider: 20 + 8",
  ],
  [
    "anthropic",
    "an early figure, and an end without figures",
    sse(BEGUN, BLOCK, { ...ended(), usage: undefined }, STOP),
    "completed, estimated: 20 + 100",
  ],
  [
    "gemini",
    "an error after text",
    sse(said(), { ...UNAVAILABLE, usageMetadata: { ...FULL, candidatesTokenCount: 8 } }),
    "failed, provider: 20 + 8",
  ],
  [
    "gemini",
    "full figures, then a usage that says nothing",
    sse(said(FULL), LAST),
    "completed, provider: 20 + 90",
  ],
  ["openai", "24 images", stream([SPOKEN], "cut"), `failed, estimated: ${1 + 24 * 255} + 100`],
  ["anthropic", "24 images", sse(start([], {}), BLOCK), `failed, estimated: ${1 + 24 * 350} + 100`],
  ["gemini", "24 images", sse(said()), `failed, estimated: ${1 + 24 * 258} + 100`],
] as const;

for (const [dialect, name, behaviour, expected] of BILLS)
  it(`figures of ${dialect}, ${name}: ${expected}`, async (t) => {
    const provider = await startProvider(t, behaviour);
    const settled: Settlement[] = [];
    const gw = await startGateway(
      t,
      configFor(provider.url, ["m"], {
        providers: { lab: { dialect, thinking: THINKING[dialect] } },
        models: { m: { price: PRICE, reasoning: false, supports: ["images"] } },
      }),
      observedBy(() => ({ settled: (_opening, settlement) => settled.push(settlement) })),
    );
    const messages = name === "24 images" ? SHOWN : WORDS;
    await (await gw.chat({ model: "m", messages, stream: true })).text();
    assert.equal(settled.length, 1);
    const { status: outcome, usageSource, usage, cost } = settled[0]!;
    assert.equal(cost, costOf(usage, PRICE));
    const { prompt_tokens, completion_tokens } = usage;
    assert.equal(`${outcome}, ${usageSource}: ${prompt_tokens} + ${completion_tokens}`, expected);
  });

it("a candidate without room for the images is skipped", async (t) => {
  const provider = await startProvider(t, speak("Fine."));
  const model = { supports: ["images"], reasoning: false };
  const over = {
    models: { m: { ...model, context_tokens: 2_000 }, n: { ...model, context_tokens: 200_000 } },
    aliases: { team: { models: ["m", "n"] } },
  };
  const gw = await startGateway(t, configFor(provider.url, ["m", "n"], over));
  for (const [images, served] of [
    [1, "m"],
    [24, "n"],
  ] as const) {
    const content = Array(images).fill(imageAt("https://example.com/some.png"));
    const messages = [{ role: "user", content }];
    assert.equal((await json(await gw.chat({ model: "team", messages }))).model, served);
  }
});

const USAGE = { prompt_tokens: 20, completion_tokens: 7, total_tokens: 27 };

describe("token counts", () => {
  const details = (cached_tokens: number, more: object = {}) => ({
    prompt_tokens_details: { cached_tokens, ...more },
  });
  const thought = (reasoning_tokens: number) => ({
    completion_tokens_details: { reasoning_tokens },
  });
  const HIT = { cacheHit: 8 };
  const WROTE = { cache_write_tokens: 2 };
  const HOUR = { cache_creation_token_details: { ephemeral_1h_input_tokens: 3 } };
  const CREATED = { cache_creation_tokens: 4, ...HOUR };
  const ACCEPTED = { completion_tokens_details: { accepted_prediction_tokens: 2 } };
  const NO_DETAILS = { prompt_tokens_details: null, completion_tokens_details: null };
  type Counts = Partial<Parameters<typeof makeUsage>[0]>;
  const CASES: [vendor: string, stated: object, counts: Counts][] = [
    ["openai", { ...details(8, WROTE), ...thought(3) }, { ...HIT, reasoning: 3, cacheWrite: 2 }],
    ["openai", { total_tokens: 89 }, {}],
    ["deepseek", { prompt_cache_hit_tokens: 8, prompt_cache_miss_tokens: 12 }, HIT],
    ["mistral", { num_cached_tokens: 8, ...details(5) }, { cacheHit: 8 }],
    ["mistral", { prompt_token_details: { cached_tokens: 8 } }, { cacheHit: 8 }],
    ["moonshot", { cached_tokens: 8 }, { cacheHit: 8 }],
    ["xai", { total_tokens: 30, ...thought(3) }, { completion: 10, reasoning: 3 }],
    ["gemini-openai", { total_tokens: 89 }, { completion: 69, reasoning: 62 }],
    ["gemini-openai", { total_tokens: 89, ...thought(3) }, { completion: 69, reasoning: 65 }],
    ["gemini-openai", { total_tokens: 30, ...thought(3) }, { completion: 10, reasoning: 3 }],
    ["gemini-openai", { total_tokens: 20 }, {}],
    ["qwen", details(8, { cache_creation_input_tokens: 4 }), { cacheHit: 8, cacheWrite: 4 }],
    ["qwen", details(8, CREATED), { ...HIT, cacheWrite: 4, cacheWrite1h: 3 }],
    // Details that exceed the total.
    ["openrouter", details(8, { cache_write_tokens: 13 }), { cacheHit: 8, cacheWrite: 12 }],
    ["generic", { cached_tokens: 21, ...thought(8) }, { cacheHit: 20, reasoning: 7 }],
    ["vllm", NO_DETAILS, {}],
    ["sglang", { ...NO_DETAILS, reasoning_tokens: 3 }, { reasoning: 3 }],
    ["sglang", { reasoning_tokens: 3, ...ACCEPTED }, { reasoning: 3 }],
    ["generic", { prompt_tokens: "20", completion_tokens: "7" }, {}],
  ];
  for (const [vendor, stated, counts] of CASES)
    it(`${vendor}: ${JSON.stringify(stated)}`, () => {
      const { usage } = streamed([{ choices: [], usage: { ...USAGE, ...stated } }], { vendor });
      const expected = { prompt: 20, completion: 7, cacheHit: 0, reasoning: 0, ...counts };
      assert.deepEqual(usage, makeUsage(expected));
    });

  it("are also read from x_groq", () =>
    assert.deepEqual(decoderWith().push({ usage: null, x_groq: { usage: USAGE } }), [
      { type: "usage", usage: { prompt: 20, completion: 7, cacheHit: 0, reasoning: 0 } },
    ]));

  it("that are all zero count as absent", () => {
    const usage = { prompt_tokens: 0, completion_tokens: 0 };
    assert.deepEqual(decoderWith().push({ usage }), []);
  });
});

describe("log probabilities", () => {
  const tokens = ["Hm", ".", "Ö", "k"].map((token) => tokenLogprob({ token, logprob: -1 }));

  it("in one list are split by the bytes of the text, from its end", () => {
    const end = tokenLogprob({ token: "<|im_end|>", logprob: -1 });
    for (const content of [tokens, [...tokens, end]]) {
      const { reasoning, text } = splitLogprobs({ content }, "Hm.", "Ök");
      assert.deepEqual([reasoning, text], [content.slice(0, 2), content.slice(2)]);
    }
  });

  it("show none of the reasoning's if the last token is a part of a character, or has no bytes", () => {
    const end = { token: "<|im_end|>", logprob: -1, bytes: [] };
    const halves = [
      { token: "\\xf0\\x9f", logprob: -1, bytes: [0xf0, 0x9f] },
      { token: "\\x98\\x80", logprob: -1, bytes: [0x98, 0x80] },
    ];
    for (const written of [halves, [...halves, end]]) {
      const { text } = splitLogprobs({ content: [...tokens, ...written] }, "Hm.Ök", "\u{1f600}");
      assert.deepEqual(text, written);
    }
  });

  it("of a whole reply are split in the same way between thinking and text", () => {
    const message = { reasoning: "Hm.", content: "Ök" };
    const parts = decoderWith().push(choice({ message, logprobs: { content: tokens } }, "stop"));
    assert.deepEqual(parts.slice(0, 2), [
      { type: "reasoning", text: "Hm.", logprobs: tokens.slice(0, 2) },
      { type: "text", text: "Ök", logprobs: tokens.slice(2) },
    ]);
  });

  it("in separate lists, or without reasoning, stay unchanged", () => {
    const apart = { content: tokens, reasoning_content: tokens.slice(0, 1) };
    assert.deepEqual(splitLogprobs(apart, "Hm.", "Ök"), {
      text: tokens,
      reasoning: tokens.slice(0, 1),
    });
    assert.equal(splitLogprobs({ content: tokens }, "", "HmÖk").text, tokens);
  });
});
