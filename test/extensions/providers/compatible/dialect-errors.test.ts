// Arbitrary JSON of a provider, and bugs of the dialects: neither ends a request that another
// candidate can serve, and a bug is reported to the operator as one.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { compatibleDialect } from "../../../../src/extensions/providers/compatible/index.ts";
import { createAnthropicDialect } from "../../../../src/extensions/providers/anthropic/index.ts";
import { createGeminiDialect } from "../../../../src/extensions/providers/gemini/index.ts";
import { createSignatureStore } from "../../../../src/extensions/providers/turns/index.ts";
import { guarded } from "../../../../src/core/routing/attempt-errors.ts";
import { ApiError } from "../../../../src/core/openai/errors.ts";
import { wholeReply } from "../../../../src/core/providers/decoding.ts";
import type { Dialect, Target } from "../../../../src/core/providers/dialect.ts";
import { errorOf, replyOf, targetOf } from "../dialect-bench.ts";
import { vendorBench } from "../../../core/routing/two-providers.ts";
import type { RunningGateway } from "../../../support/gateway.ts";
import { chunk, completion, speak, stream } from "../../../support/provider.ts";

/** Values that a field may have instead of the expected text or number. */
const STRANGE: readonly unknown[] = [
  { toString: 1, valueOf: 1 },
  { toJSON: 1 },
  [[{ toString: null }]],
  null,
  true,
  -1,
];
const DIALECTS: Readonly<Record<string, () => Dialect>> = {
  openai: () => compatibleDialect,
  anthropic: () => createAnthropicDialect(createSignatureStore()),
  gemini: () => createGeminiDialect(createSignatureStore()),
};
const TARGET = targetOf({ vendor: "generic" }, { reasoning: true });
const NO_HEADERS = { get: () => null };

describe("arbitrary JSON of a provider", () => {
  for (const [name, create] of Object.entries(DIALECTS))
    it(`${name}: an error with anything in its fields is a ProviderError`, () => {
      for (const value of STRANGE)
        for (const body of [
          { error: { code: value, message: "no" } },
          { error: { status: value, type: value, message: value } },
          [{ error: { code: value } }],
          { object: "error", code: value, message: value },
          { error: { message: { detail: value }, detail: value } },
        ]) {
          const dialect = create();
          assert.equal(dialect.refusal(500, NO_HEADERS, body).code, "upstream_error");
          errorOf(() => dialect.decoder(TARGET).push(body));
        }
    });

  it("has a status only as a number or three digits", () => {
    const { push } = compatibleDialect.decoder(TARGET);
    const told = (code: unknown) => errorOf(() => push({ error: { code, message: "x" } })).detail;
    for (const code of [429, "429"]) assert.equal(told(code).status, 429);
    for (const code of [" 429", "0x1AD", 429.5, 600, 399, [429], { valueOf: 429 }])
      assert.equal(told(code).status, 500, String(code));
  });

  const toolUse = (block: object) => ({
    type: "message",
    content: [{ type: "tool_use", name: "f", input: {}, ...block }],
    stop_reason: "tool_use",
  });
  const functionCall = (called: object | null, more: object = {}) => ({
    candidates: [{ content: { parts: [{ functionCall: called, ...more }] }, finishReason: "STOP" }],
  });
  const nameless = { function: { name: { toString: 1 }, arguments: "{}" } };
  for (const [name, vendor, body, made] of [
    ["an id that is an object", "anthropic", toolUse({ id: { toString: 1 } }), "call"],
    ["no id", "anthropic", toolUse({}), "call"],
    ["a name that is an object", "anthropic", toolUse({ name: { toString: 1 } }), "error"],
    ["no name", "anthropic", toolUse({ name: undefined }), "error"],
    ["a name that is an object", "gemini", functionCall({ name: { toString: 1 } }), "error"],
    ["an empty name", "gemini", functionCall({ name: "", args: {} }), "error"],
    ["null beside text", "gemini", functionCall(null, { text: "Hi." }), "text"],
    ["a name that is an object", "openai", completion({ tool_calls: [nameless] }), "error"],
  ] as const)
    it(`${vendor}: a tool call with ${name}`, () => {
      const read = () => replyOf(wholeReply(DIALECTS[vendor]!(), body, TARGET));
      if (made === "error") {
        const { code, countsForBreaker } = errorOf(read);
        assert.deepEqual([code, countsForBreaker], ["upstream_error", false]);
      } else if (made === "text") assert.equal(read().text, "Hi.");
      else assert.deepEqual(read().calls, [["generated", "f", "{}"]]);
    });
});

// No bug can be provoked over the wire without being known, so these tests plant one in the
// dialect.
describe("a bug of a dialect", () => {
  const boom = (): never => {
    throw new TypeError("Cannot read properties of undefined");
  };
  const { request, decoder, isReply } = compatibleDialect;
  const bugsIn = ({ diagnostics }: RunningGateway) =>
    diagnostics.filter((line) => line["event"] === "internal_error");
  const isM = ({ upstreamModel }: Target) => upstreamModel === "m";
  /** Functions of the dialect that fail only for the model "m" or its reply. */
  const BROKEN: [part: string, method: "request" | "decoder" | "isReply", fails: unknown][] = [
    ["request", "request", (chat: never, to: Target) => (isM(to) ? boom() : request(chat, to))],
    ["decoder", "decoder", (to: Target) => (isM(to) ? { push: boom } : decoder(to))],
    ["decoder's beginning", "decoder", (to: Target) => (isM(to) ? boom() : decoder(to))],
    ["isReply", "isReply", (body: unknown) => (isFine(body) ? boom() : isReply(body))],
  ];
  const isFine = (body: unknown) => JSON.stringify(body).includes("Fine.");

  for (const [part, method, fails] of BROKEN)
    it(`in its ${part}: the next candidate serves, the operator is told, and no failure is counted`, async (t) => {
      t.mock.method(compatibleDialect, method, fails as never);
      const retry = { max_retries: 1, backoff_ms: 1 };
      const { ask, asked, gateway, breaker } = await vendorBench(t, "generic", speak("Fine."), {
        retry,
      });
      const streaming = part !== "isReply"; // only called for whole replies
      for (let count = 0; count < 3; count += 1)
        assert.equal(await ask("both", "hi", streaming && count === 1), "200 next");
      assert.equal(await ask("m", "hi", streaming), "503 upstream_error");
      // A request that cannot be built is not sent and not retried.
      const [requests, reports] = part === "request" ? [0, 4] : [8, 8];
      const lines = bugsIn(gateway);
      assert.deepEqual([asked.length, lines.length], [requests, reports]);
      assert.deepEqual([lines[0]!["level"], lines[0]!["model"]], ["error", "m"]);
      assert.match(String(lines[0]!["detail"]), /^TypeError: Cannot read.*\n\s+at /);
      assert.equal(breaker()[0], "closed");
    });

  it("after text: an error in the stream", async (t) => {
    t.mock.method(compatibleDialect, "decoder", (target: Target) => {
      const own = decoder(target);
      const isBoom = (event: unknown) => JSON.stringify(event).includes("boom");
      return { push: (event: unknown) => (isBoom(event) ? boom() : own.push(event)) };
    });
    const said = stream([chunk({ content: "Once" }), chunk({ content: "boom" })]);
    const { ask, gateway } = await vendorBench(t, "generic", said);
    assert.equal(await ask("both", "hi", true), "200 upstream_error");
    assert.equal(bugsIn(gateway).length, 1);
  });

  it("is not a client error, nor nesting too deep for this Node", () => {
    const throwing = (error: Error) => () => {
      throw error;
    };
    const report = () => assert.fail("reported as a bug");
    const thrown = (error: Error) => () => guarded(report, throwing(error));
    const meant = new ApiError("invalid_value", "x", { param: "messages" });
    assert.throws(thrown(meant), meant);
    const { code, countsForBreaker } = errorOf(thrown(new RangeError("too deep")));
    assert.deepEqual([code, countsForBreaker], ["upstream_error", false]);
  });
});
