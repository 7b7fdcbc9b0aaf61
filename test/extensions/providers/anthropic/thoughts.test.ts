// The thoughts of a stream, gathered so that they can be sent back.

import assert from "node:assert/strict";
import { it } from "node:test";
import { createThoughtCollector } from "../../../../src/extensions/providers/anthropic/thoughts.ts";

it("joins the pieces of a thought and its signature, in the order of the blocks", () => {
  const thoughts = createThoughtCollector();
  for (const piece of [
    { type: "thinking_delta", thinking: "before any block" },
    { type: "thinking", thinking: "", signature: "" },
    { type: "thinking_delta", thinking: "H" },
    { type: "thinking_delta", thinking: "m." },
    { type: "text_delta", text: "Yes." },
    { type: "signature_delta", signature: "abc" },
    { type: "redacted_thinking", data: "xyz" },
  ])
    thoughts.read(piece);
  assert.deepEqual(thoughts.take(), [
    { type: "thinking", thinking: "Hm.", signature: "abc" },
    { type: "redacted_thinking", data: "xyz" },
  ]);
});

it("begins anew after each call", () => {
  const thoughts = createThoughtCollector();
  thoughts.read({ type: "redacted_thinking", data: "a" });
  assert.deepEqual(thoughts.take(), [{ type: "redacted_thinking", data: "a" }]);
  assert.deepEqual(thoughts.take(), []);
});

it("tells no thoughts from thoughts that are too many to be kept", () => {
  const thoughts = createThoughtCollector();
  assert.deepEqual(thoughts.take(), []);
  thoughts.read({ type: "thinking", thinking: "x".repeat(5 * 1024 * 1024) });
  assert.equal(thoughts.take(), undefined);
  assert.deepEqual(thoughts.take(), []);
});
