// Which of a provider's figures are billed, through a gateway, in all three formats: early ones, empty
// ones, and ones that come in the same event as an error. Which count: core/ledger/meter.test.ts.

import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { costOf, PRICE } from "../../../support/books.ts";
import { configFor, json, user } from "../../../support/gateway.ts";
import { createMemoryGateway, memoryProvider } from "../../../support/memory.ts";
import {
  chunk,
  event,
  rawStream,
  speak,
  stream,
  usageChunk,
  type Behaviour,
} from "../../../support/provider.ts";
import { say, start, STOP } from "../anthropic/events.ts";

const THINKING = { openai: "thinking", anthropic: "adaptive", gemini: "level" } as const;
type Dialect = keyof typeof THINKING;
/**
 * What is settled of one request to a provider of this format that answers so: the outcome, where the
 * figures are from, and the tokens of prompt and reply.
 */
async function billed(
  t: TestContext,
  dialect: Dialect,
  behaviour: Behaviour,
  request: object = { stream: true },
): Promise<string> {
  const provider = memoryProvider(t, behaviour);
  const gw = createMemoryGateway(
    configFor(provider.url, ["m"], {
      providers: { lab: { dialect, thinking: THINKING[dialect] } },
      models: { m: { price: PRICE, reasoning: false, supports: ["images"] } },
    }),
  );
  await (await gw.chat({ model: "m", messages: user("Say something."), ...request })).text();
  assert.equal(gw.settled.length, 1);
  const { status: outcome, usageSource, usage, cost } = gw.settled[0]!;
  assert.equal(cost, costOf(usage, PRICE));
  return `${outcome}, ${usageSource}: ${usage.prompt_tokens} + ${usage.completion_tokens}`;
}

// What each format says, in the same words.

const TEXT = "x".repeat(400);
/** The figures as each format names them. */
const named = {
  openai: (prompt: unknown, output: unknown) => ({
    prompt_tokens: prompt,
    completion_tokens: output,
  }),
  anthropic: (prompt: unknown, output: unknown) => ({
    input_tokens: prompt,
    output_tokens: output,
  }),
  gemini: (prompt: unknown, output: unknown) => ({
    promptTokenCount: prompt,
    candidatesTokenCount: output,
  }),
};
const said = (text: string, usageMetadata?: object, finishReason?: string) => ({
  candidates: [{ content: { role: "model", parts: [{ text }] }, finishReason }],
  usageMetadata,
});
const BLOCK = { type: "content_block_delta", index: 0, delta: say(TEXT) };
const begun = (prompt: number) => start([], named.anthropic(prompt, 1));
const sse = (...events: object[]): Behaviour => rawStream(events.map(event).join(""));

function bills(dialect: Dialect, cases: readonly [string, Behaviour, string][]): void {
  for (const [name, behaviour, expected] of cases)
    it(`${dialect}, ${name}: ${expected}`, async (t) =>
      assert.equal(await billed(t, dialect, behaviour), expected));
}

describe("figures that came before the last text", () => {
  const ON_DEMAND = { trafficType: "ON_DEMAND" };
  bills("anthropic", [
    ["message_start's, then a cut", sse(begun(20), BLOCK), "failed, estimated: 20 + 100"],
    [
      "message_start's, and a message_delta without usage",
      sse(begun(20), BLOCK, { type: "message_delta", delta: { stop_reason: "end_turn" } }, STOP),
      "completed, estimated: 20 + 100",
    ],
  ]);
  const PROMPT = { promptTokenCount: 20, totalTokenCount: 20, ...ON_DEMAND };
  bills("gemini", [
    ["a prompt count with the text", sse(said(TEXT, PROMPT)), "failed, estimated: 20 + 100"],
    [
      "a full count, then a usage that says nothing",
      sse(said(TEXT, named.gemini(20, 90)), said("", ON_DEMAND, "STOP")),
      "completed, provider: 20 + 90",
    ],
  ]);
});

describe("an event that is an error and has usage", () => {
  const FIGURES = usageChunk(named.openai(43, 10));
  const BOTH = { error: { code: 500, message: "it broke" }, ...FIGURES };
  const SPOKEN = chunk({ content: TEXT });
  const ENDED = chunk({ content: TEXT }, "stop");
  const MORE = usageChunk(named.openai(43, 12));
  const OVERLOADED = {
    type: "error",
    error: { type: "overloaded_error", message: "no" },
    usage: named.anthropic(20, 8),
  };
  const UNAVAILABLE = {
    error: { code: 503, status: "UNAVAILABLE", message: "no" },
    usageMetadata: named.gemini(20, 8),
  };
  bills("openai", [
    ["after text", stream([SPOKEN, BOTH]), "failed, provider: 43 + 10"],
    ["before any text, which costs nothing", stream([BOTH]), "failed, none: 0 + 0"],
    [
      "after a finish, and more behind it",
      stream([ENDED, BOTH, MORE]),
      "completed, provider: 43 + 12",
    ],
  ]);
  bills("anthropic", [
    ["after text", sse(begun(20), BLOCK, OVERLOADED), "failed, provider: 20 + 8"],
  ]);
  bills("gemini", [["after text", sse(said(TEXT), UNAVAILABLE), "failed, provider: 20 + 8"]]);
});

describe("media in an estimate", () => {
  const image = (url: string) => ({ type: "image_url", image_url: { url } });

  for (const [dialect, behaviour, each] of [
    ["openai", stream([chunk({ content: TEXT })], "cut"), 255],
    ["anthropic", sse(start([], {}), BLOCK), 350],
    ["gemini", sse(said(TEXT)), 258],
  ] as const)
    it(`24 images are billed by the rule of ${dialect} where the provider gives no figures`, async (t) => {
      const head = Buffer.from("\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x02\0\0\0\x02\0", "latin1");
      const images = Array(24).fill(image(`data:image/png;base64,${head.toString("base64")}`));
      const messages = [{ role: "user", content: [{ type: "text", text: "1234" }, ...images] }];
      const bill = await billed(t, dialect, behaviour, { stream: true, messages });
      assert.equal(bill, `failed, estimated: ${1 + 24 * each} + 100`);
    });

  it("a candidate without room for the images is passed over", async (t) => {
    const provider = memoryProvider(t, speak("Fine."));
    const model = { supports: ["images"], reasoning: false };
    const over = {
      models: { m: { ...model, context_tokens: 2_000 }, n: { ...model, context_tokens: 200_000 } },
      aliases: { team: { models: ["m", "n"] } },
    };
    const gw = createMemoryGateway(configFor(provider.url, ["m", "n"], over));
    for (const [images, served] of [
      [1, "m"],
      [24, "n"],
    ] as const) {
      const content = Array(images).fill(image("https://example.com/some.png"));
      const messages = [{ role: "user", content }];
      assert.equal((await json(await gw.chat({ model: "team", messages }))).model, served);
    }
  });
});
