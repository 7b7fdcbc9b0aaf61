// Edits of a client's own request that clear thoughts, where the model does not think.

import assert from "node:assert/strict";
import { it } from "node:test";
import { chatRequest } from "../../../../src/core/openai/request.ts";
import { nativeBody } from "../../../../src/extensions/providers/anthropic/request.ts";
import { user } from "../../../support/gateway.ts";
import { targetOf } from "../dialect-bench.ts";

const TARGET = targetOf({ vendor: "anthropic" }, { reasoning: true });
const clearing = { type: "clear_thinking_20251015", keep: "all" };
const other = { type: "clear_tool_uses_20250919" };

for (const [type, edits, kept] of [
  ["disabled", [clearing, other], { edits: [other] }],
  ["disabled", [clearing], undefined],
  ["adaptive", [clearing, other], { edits: [clearing, other] }],
] as const)
  it(`thinking ${type}, ${edits.length} edits`, () => {
    const chat = { ...chatRequest({ model: "x", messages: user("hi") }), tool_choice: undefined };
    const own = { thinking: { type }, context_management: { edits } };
    const body = nativeBody(own, chat, TARGET) as Record<string, unknown>;
    assert.deepEqual(body["context_management"], kept);
  });
