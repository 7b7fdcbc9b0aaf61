// What the figures of vendors count: tokens, in several places and under several names, and log
// probabilities.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { tokenLogprob } from "../../../../src/core/openai/parts.ts";
import { makeUsage } from "../../../../src/core/openai/usage.ts";
import { splitLogprobs } from "../../../../src/extensions/providers/compatible/decoder.ts";
import { choice, decoderWith, streamed } from "./events.ts";

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
    // Parts that are more than the whole.
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

  it("are read from x_groq, too", () =>
    assert.deepEqual(decoderWith().push({ usage: null, x_groq: { usage: USAGE } }), [
      { type: "usage", usage: { prompt: 20, completion: 7, cacheHit: 0, reasoning: 0 } },
    ]));

  it("that are nothing but zeros are none", () => {
    const usage = { prompt_tokens: 0, completion_tokens: 0 };
    assert.deepEqual(decoderWith().push({ usage }), []);
  });
});

describe("log probabilities", () => {
  const tokens = ["Hm", ".", "Ö", "k"].map((token) => tokenLogprob({ token, logprob: -1 }));

  it("listed together are split by the bytes of the text, from its end", () => {
    const { reasoning, text } = splitLogprobs({ content: tokens }, "Hm.", "Ök");
    assert.deepEqual([reasoning, text], [tokens.slice(0, 2), tokens.slice(2)]);
  });

  it("of a whole reply are split so between its thoughts and its text", () => {
    const message = { reasoning: "Hm.", content: "Ök" };
    const parts = decoderWith().push(choice({ message, logprobs: { content: tokens } }, "stop"));
    assert.deepEqual(parts.slice(0, 2), [
      { type: "reasoning", text: "Hm.", logprobs: tokens.slice(0, 2) },
      { type: "text", text: "Ök", logprobs: tokens.slice(2) },
    ]);
  });

  it("listed apart, or without reasoning, stay as they are", () => {
    const apart = { content: tokens, reasoning_content: tokens.slice(0, 1) };
    assert.deepEqual(splitLogprobs(apart, "Hm.", "Ök"), {
      text: tokens,
      reasoning: tokens.slice(0, 1),
    });
    assert.equal(splitLogprobs({ content: tokens }, "", "HmÖk").text, tokens);
  });
});
