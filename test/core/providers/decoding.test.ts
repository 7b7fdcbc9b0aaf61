// What the decoders of all formats have in common.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { serverSentEvents } from "../../../src/core/http/event-reader.ts";
import type { Part } from "../../../src/core/openai/parts.ts";
import type { UsageReport } from "../../../src/core/openai/usage.ts";
import { textPart, wholeReply, withUsage } from "../../../src/core/providers/decoding.ts";
import type { Dialect, Target } from "../../../src/core/providers/dialect.ts";
import { ProviderError } from "../../../src/core/providers/provider-error.ts";

const USAGE: UsageReport = { prompt: 1, completion: 2, cacheHit: 0, reasoning: 0 };
const TEXT: Part = { type: "text", text: "Hi." };
const TARGET = {} as Target;

const dialectThatReads = (parts: Part[], isReply = true): Dialect => ({
  framing: serverSentEvents,
  request: () => ({ path: "", body: {} }),
  isReply: () => isReply,
  decoder: () => ({ push: () => parts }),
  refusal: (status) => new ProviderError("upstream_error", `status ${status}`),
});

describe("a whole reply", () => {
  const finish = (reason: "stop" | "length"): Part => ({ type: "finish", reason });
  it("without a finish reason is finished; else it keeps its own", () => {
    for (const [parts, expected] of [
      [[TEXT], [TEXT, finish("stop")]],
      [
        [TEXT, finish("length")],
        [TEXT, finish("length")],
      ],
    ])
      assert.deepEqual(wholeReply(dialectThatReads(parts!), {}, TARGET), expected);
  });

  it("that is none counts for the breaker unless the provider counted tokens", () => {
    for (const [parts, counts] of [
      [[], true],
      [[{ type: "usage", usage: USAGE }], false],
    ] as const)
      assert.throws(
        () => wholeReply(dialectThatReads([...parts], false), {}, TARGET),
        (error) => error instanceof ProviderError && error.countsForBreaker === counts,
      );
  });
});

it("usage is the last part of an event that states it, and goes with the error of one that is one", () => {
  const push = () => [TEXT];
  const usage = { type: "usage", usage: USAGE };
  assert.deepEqual(withUsage(() => USAGE, { push }).push({}), [TEXT, usage]);
  assert.deepEqual(withUsage(() => undefined, { push }).push({}), [TEXT]);
  const failing = () => {
    throw new ProviderError("upstream_error", "no");
  };
  assert.throws(
    () => withUsage(() => USAGE, { push: failing }).push({}),
    (error) => error instanceof ProviderError && error.usage === USAGE,
  );
});

it("a text part is missing for an empty text only: what is no text is written as JSON", () => {
  assert.deepEqual(textPart("text", "a"), [{ type: "text", text: "a" }]);
  for (const none of ["", null, undefined]) assert.deepEqual(textPart("text", none), []);
  for (const json of [7, false, {}, { a: [1] }])
    assert.deepEqual(textPart("text", json), [{ type: "text", text: JSON.stringify(json) }]);
});
