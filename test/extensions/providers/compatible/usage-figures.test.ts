// Which of a provider's figures are billed, through a gateway: early ones, ones that come in the same
// event as an error, and estimates of media. Which count: core/ledger/meter.test.ts.

import assert from "node:assert/strict";
import { it } from "node:test";
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

/** What is settled: the outcome, where the figures are from, and the tokens of prompt and reply. */
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

it("a candidate without room for the images is passed over", async (t) => {
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
