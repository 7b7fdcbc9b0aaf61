// Finish reasons in every provider's vocabulary.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  finishPart,
  finishReasonOf,
} from "../../../../src/extensions/providers/provider-words/index.ts";
import { ProviderError } from "../../../../src/core/providers/provider-error.ts";

describe("a finish reason", () => {
  for (const [word, outcome] of [
    ["stop", "stop"],
    ["eos", "stop"],
    ["end_turn", "stop"],
    ["stop_sequence", "stop"],
    ["pause_turn", "stop"],
    ["STOP", "stop"],
    ["OTHER", "stop"],
    ["a word that nobody knows", "stop"],
    ["length", "length"],
    ["max_tokens", "length"],
    ["model_length", "length"],
    ["model_context_window_exceeded", "length"],
    ["MAX_TOKENS", "length"],
    ["tool_calls", "tool_calls"],
    ["function_call", "tool_calls"],
    ["tool_use", "tool_calls"],
    ["content_filter", "content_filter"],
    ["sensitive", "content_filter"],
    ["refusal", "content_filter"],
    ["SAFETY", "content_filter"],
    ["RECITATION", "content_filter"],
    ["BLOCKLIST", "content_filter"],
    ["SPII", "content_filter"],
    ["LANGUAGE", "content_filter"],
    ["PROHIBITED_CONTENT", "content_filter"],
    ["IMAGE_SAFETY", "content_filter"],
    ["IMAGE_PROHIBITED_CONTENT", "content_filter"],
    ["IMAGE_RECITATION", "content_filter"],
    ["MODEL_ARMOR", "content_filter"],
    ["insufficient_system_resource", "failed"],
    ["network_error", "failed"],
    ["abort", "failed_on_content"],
    ["error", "failed_on_content"],
    ["function_call_filter", "failed_on_content"],
    ["MALFORMED_FUNCTION_CALL", "failed_on_content"],
    ["UNEXPECTED_TOOL_CALL", "failed_on_content"],
    ["TOO_MANY_TOOL_CALLS", "failed_on_content"],
    ["MALFORMED_RESPONSE", "failed_on_content"],
    ["MISSING_THOUGHT_SIGNATURE", "failed_on_content"],
    ["FINISH_REASON_UNSPECIFIED", "unfinished"],
    ["", "unfinished"],
    [null, "unfinished"],
    [7, "unfinished"],
    ["function_call_filter: MALFORMED_FUNCTION_CALL", "failed_on_content"],
    ["content_filter: X", "content_filter"],
    [":length", "stop"],
    ["constructor", "stop"],
  ] as const)
    it(`of ${JSON.stringify(word)} means ${outcome}`, () =>
      assert.equal(finishReasonOf(word), outcome));
});

describe("the finish part", () => {
  it("is missing while the reply goes on", () => assert.deepEqual(finishPart(null), []));

  it("has the reason once the reply ends", () =>
    assert.deepEqual(finishPart("length"), [{ type: "finish", reason: "length" }]));

  for (const [word, fromContent] of [
    ["insufficient_system_resource", false],
    ["error", true],
  ] as const)
    it(`is a ProviderError for ${word}, ${fromContent ? "not " : ""}counted by the breaker`, () =>
      assert.throws(
        () => finishPart(word),
        (error) =>
          error instanceof ProviderError &&
          error.code === "upstream_error" &&
          error.countsForBreaker === !fromContent,
      ));
});
