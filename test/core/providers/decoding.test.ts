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
  it("without a finish reason is finished", () =>
    assert.deepEqual(wholeReply(dialectThatReads([TEXT]), {}, TARGET), [
      TEXT,
      { type: "finish", reason: "stop" },
    ]));

  it("keeps its own finish reason", () => {
    const parts: Part[] = [TEXT, { type: "finish", reason: "length" }];
    assert.deepEqual(wholeReply(dialectThatReads(parts), {}, TARGET), parts);
  });

  for (const [name, parts, counts] of [
    ["counts for the breaker without usage", [], true],
    ["does not count if the provider counted tokens", [{ type: "usage", usage: USAGE }], false],
  ] as const)
    it(`that is none is a ProviderError: it ${name}`, () =>
      assert.throws(
        () => wholeReply(dialectThatReads([...parts], false), {}, TARGET),
        (error) => error instanceof ProviderError && error.countsForBreaker === counts,
      ));
});

describe("usage", () => {
  it("is the last part of an event that states it", () => {
    const { push } = withUsage(() => USAGE, { push: () => [TEXT] });
    assert.deepEqual(push({}), [TEXT, { type: "usage", usage: USAGE }]);
  });

  it("is no part of an event that does not", () =>
    assert.deepEqual(withUsage(() => undefined, { push: () => [TEXT] }).push({}), [TEXT]));

  it("goes with the error of an event that is one", () => {
    const push = () => {
      throw new ProviderError("upstream_error", "no");
    };
    assert.throws(
      () => withUsage(() => USAGE, { push }).push({}),
      (error) => error instanceof ProviderError && error.usage === USAGE,
    );
  });
});

it("a text part is missing for an empty text only: what is no text is written as JSON", () => {
  assert.deepEqual(textPart("text", "a"), [{ type: "text", text: "a" }]);
  for (const none of ["", null, undefined]) assert.deepEqual(textPart("text", none), []);
  for (const json of [7, false, {}, { a: [1] }])
    assert.deepEqual(textPart("text", json), [{ type: "text", text: JSON.stringify(json) }]);
});
