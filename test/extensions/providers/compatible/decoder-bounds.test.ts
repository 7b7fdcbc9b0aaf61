// Providers whose replies are made to cost more than they are long: what decoders remember is
// bounded, and each event costs the same.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createAnthropicDialect } from "../../../../src/extensions/providers/anthropic/index.ts";
import type { Decoder, Dialect } from "../../../../src/core/providers/dialect.ts";
import { ProviderError } from "../../../../src/core/providers/provider-error.ts";
import { createGeminiDialect } from "../../../../src/extensions/providers/gemini/index.ts";
import { compatibleDialect } from "../../../../src/extensions/providers/compatible/index.ts";
import { traitsOf } from "../../../../src/config/vendors.ts";
import { createSignatureStore } from "../../../../src/extensions/providers/turns/index.ts";

const decoderOf = (dialect: Dialect, own: object = {}): Decoder =>
  dialect.decoder({
    upstreamModel: "m",
    reasoning: true,
    traits: traitsOf({ vendor: "generic" }, { reasoning: true, ...own }),
  });
const delta = (fields: object, finish_reason: string | null = null) => ({
  choices: [{ index: 0, delta: fields, finish_reason }],
});
const isFault = (error: unknown): boolean =>
  error instanceof ProviderError && error.code === "upstream_error";

describe("the OpenAI-compatible decoder", () => {
  it("some blanks before <think> are still no text", () => {
    const decoder = decoderOf(compatibleDialect, { think_tags: true });
    const parts = [" ".repeat(1_000), "<think>", "Hm.", "</think>", "Yes."].flatMap((content) =>
      decoder.push(delta({ content })),
    );
    assert.deepEqual(
      parts.map((part) => [part.type, "text" in part && part.text]),
      [
        ["reasoning", "Hm."],
        ["text", "Yes."],
      ],
    );
  });

  it("a call whose name does not come: 1,000 are held, and a megabyte of arguments", () => {
    const decoder = decoderOf(compatibleDialect);
    const nameless = (index: number) => delta({ tool_calls: [{ index }] });
    for (let index = 0; index < 1_000; index += 1) decoder.push(nameless(index));
    assert.throws(() => decoder.push(nameless(1_000)), isFault);

    const other = decoderOf(compatibleDialect);
    const more = delta({
      tool_calls: [{ index: 0, function: { arguments: "x".repeat(512 * 1024) } }],
    });
    other.push(more);
    other.push(more);
    assert.throws(() => other.push(more), isFault);
  });

  it("a name that comes after the arguments makes the call whole", () => {
    const decoder = decoderOf(compatibleDialect);
    decoder.push(delta({ tool_calls: [{ index: 0, id: "a", function: { arguments: "{" } }] }));
    const parts = decoder.push(
      delta({ tool_calls: [{ index: 0, function: { name: "f", arguments: "}" } }] }, "tool_calls"),
    );
    assert.deepEqual(parts, [
      { type: "tool_call", call: 0, id: "a", name: "f" },
      { type: "tool_arguments", call: 0, text: "{}" },
      { type: "finish", reason: "tool_calls" },
    ]);
  });
});

describe("the Anthropic decoder", () => {
  const start = (content_block: object) => ({
    type: "content_block_start",
    index: 0,
    content_block,
  });
  const thinking = (text: string) => ({
    type: "content_block_delta",
    index: 0,
    delta: { type: "thinking_delta", thinking: text },
  });
  const use = { type: "tool_use", id: "a", name: "f", input: {} };

  it("forgets thoughts of more than 4 MiB, and keeps those before the next call", () => {
    const signatures = createSignatureStore();
    const decoder = decoderOf(createAnthropicDialect(signatures));
    decoder.push(start({ type: "thinking", thinking: "" }));
    for (let times = 0; times < 5; times += 1) decoder.push(thinking("x".repeat(1024 * 1024)));
    decoder.push(start({ type: "thinking", thinking: "more" }));
    decoder.push(start(use));
    assert.equal(signatures.get("a"), undefined);
    decoder.push(start({ type: "thinking", thinking: "Hm." }));
    decoder.push(start({ ...use, id: "b" }));
    assert.equal(signatures.get("b"), '[{"type":"thinking","thinking":"Hm."}]');
  });
});

describe("the Gemini decoder", () => {
  it("lists no bytes of a token of a megabyte", () => {
    const decoder = decoderOf(createGeminiDialect(createSignatureStore()));
    const reply = (token: string) => ({
      candidates: [
        {
          content: { parts: [{ text: "x" }] },
          logprobsResult: { chosenCandidates: [{ token, logProbability: -1 }] },
        },
      ],
    });
    const bytesOf = (token: string) =>
      decoder
        .push(reply(token))
        .flatMap((part) => (part.type === "text" ? (part.logprobs ?? []) : []))
        .map(({ bytes }) => bytes);
    assert.deepEqual(bytesOf("hi"), [[104, 105]]);
    assert.deepEqual(bytesOf("x".repeat(1024 * 1024)), [null]);
  });
});
