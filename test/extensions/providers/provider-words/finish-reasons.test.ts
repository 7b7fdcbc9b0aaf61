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
    ["end_turn", "stop"],
    ["a word that nobody knows", "stop"],
    ["MAX_TOKENS", "length"],
    ["tool_use", "tool_calls"],
    ["MODEL_ARMOR", "content_filter"],
    ["PROHIBITED_CONTENT", "content_filter"],
    ["network_error", "failed"],
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
