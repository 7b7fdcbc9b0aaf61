// Finish reasons in every provider's vocabulary, and the tool call ids that clients get.

import assert from "node:assert/strict";
import { it } from "node:test";
import {
  finishReasonOf,
  isUsableId,
  statedId,
  usableId,
} from "../../../../src/extensions/providers/provider-words/index.ts";

const WORDS: Readonly<Record<string, readonly unknown[]>> = {
  stop: [
    ...["stop", "eos", "end_turn", "stop_sequence", "pause_turn", "STOP", "OTHER"],
    ...["a word that nobody knows", ":length", "constructor"],
  ],
  length: [
    ...["length", "max_tokens", "model_length", "model_context_window_exceeded", "MAX_TOKENS"],
    "CONTINUATION",
  ],
  tool_calls: ["tool_calls", "function_call", "tool_use"],
  content_filter: [
    ...["content_filter", "sensitive", "refusal", "SAFETY", "RECITATION", "BLOCKLIST", "SPII"],
    ...["LANGUAGE", "PROHIBITED_CONTENT", "IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT"],
    ...["IMAGE_RECITATION", "MODEL_ARMOR", "ESCALATION", "content_filter: X"],
    ...["guardrail_intervened", "content_filtered"],
  ],
  failed: ["insufficient_system_resource", "network_error"],
  failed_on_content: [
    ...["abort", "error", "function_call_filter", "MALFORMED_FUNCTION_CALL"],
    ...["UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MALFORMED_RESPONSE"],
    ...["MISSING_THOUGHT_SIGNATURE", "function_call_filter: MALFORMED_FUNCTION_CALL"],
    ...["malformed_tool_use", "malformed_model_output"],
  ],
  unfinished: ["FINISH_REASON_UNSPECIFIED", "", null, 7],
};

for (const [outcome, words] of Object.entries(WORDS))
  for (const word of words)
    it(`a finish reason of ${JSON.stringify(word)} means ${outcome}`, () =>
      assert.equal(finishReasonOf(word), outcome));

it("a usable id contains the provider's, if there is room", () => {
  for (const id of ["functions.get_weather:0", "call_0", "functions.mcp__github__create_issue:0"]) {
    assert.ok(isUsableId(usableId(id)));
    assert.equal(statedId(usableId(id)), id);
  }
  for (const id of ["", "x".repeat(41), "a b", "\u0000"]) {
    assert.ok(isUsableId(usableId(id)));
    assert.equal(statedId(usableId(id)) === id, false);
  }
});

it("an id that only looks generated is the provider's own", () => {
  const ids = ["toolu_0000_A", "toolu_0000_AA", "toolu_0000___w", `toolu_0000_${"A".repeat(100)}`];
  const ofClouds = ["toolu_vrtx_011BXcGyAzyzYMsyVRtvLMbh", "toolu_bdrk_01NzHkRtYiSHJ5bdJGUyKQ6o"];
  for (const id of [...ids, ...ofClouds, "toolu_01A09q90qw90lq917835lq9", "call_1"])
    assert.equal(statedId(id), id);
});
