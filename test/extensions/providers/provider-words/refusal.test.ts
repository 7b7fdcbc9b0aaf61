// What a provider's refusal means: the rules, errors inside a 200, and when to ask again.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ProviderError } from "../../../../src/core/providers/provider-error.ts";
import {
  refusal,
  throwErrorIn,
} from "../../../../src/extensions/providers/provider-words/index.ts";
import { durationMs } from "../../../../src/extensions/providers/provider-words/wait-times.ts";

const NO_HEADERS = { get: () => null };

describe("an answer other than 200", () => {
  for (const [status, error, code, blame, countsForBreaker] of [
    [400, { message: "bad" }, "upstream_rejected", "client", false],
    [400, { message: "Prompt is too long" }, "context_length_exceeded", "client", false],
    [400, { code: "context_length_exceeded" }, "context_length_exceeded", "client", false],
    [
      400,
      { message: "Provider returned error", metadata: { raw: '{"error":"prompt is too long"}' } },
      "context_length_exceeded",
      "client",
      false,
    ],
    [
      424,
      { message: "no", originalMessage: "Input is too long for requested model." },
      "context_length_exceeded",
      "client",
      false,
    ],
    [
      400,
      { message: "Invalid schema for function 'set_context_length': no" },
      "upstream_rejected",
      "client",
      false,
    ],
    [403, { message: "Content policy" }, "content_filter", "client", false],
    [400, { message: "API key not valid." }, "model_unavailable", "operator", true],
    [400, { message: "My text says API key not valid." }, "upstream_rejected", "client", false],
    [400, { message: "Model Not Exist" }, "model_unavailable", "operator", true],
    [400, { code: "model_decommissioned" }, "model_unavailable", "operator", true],
    [400, { message: "It says Model Not Exist" }, "upstream_rejected", "client", false],
    [400, { message: "x/y is not a valid model ID" }, "model_unavailable", "operator", true],
    [400, { code: "Arrearage" }, "model_unavailable", "operator", true],
    [400, { message: "Content Exists Risk" }, "content_filter", "client", false],
    [400, { message: "Input Tokens Exceeded: x" }, "context_length_exceeded", "client", false],
    [400, { code: "tool_use_failed" }, "upstream_error", "provider", false],
    [500, { message: "Failed to generate JSON" }, "upstream_error", "provider", false],
    [500, { message: "x" }, "upstream_error", "provider", true],
    [424, { message: "x" }, "upstream_error", "provider", false],
    [404, { message: "No such File object: x" }, "upstream_rejected", "client", false],
    [401, { message: "x" }, "model_unavailable", "operator", true],
    [402, { message: "You need fewer max_tokens" }, "model_unavailable", "operator", false],
    [429, { code: "insufficient_quota" }, "model_unavailable", "operator", true],
    [429, { message: "Request too large" }, "model_overloaded", "provider", false],
    [429, { message: "x" }, "model_overloaded", "provider", true],
    [529, { message: "x" }, "model_overloaded", "provider", true],
    [418, { message: "x" }, "model_unavailable", "operator", true],
    [301, { message: "x" }, "upstream_error", "provider", true],
  ] as const)
    it(`${status} with ${JSON.stringify(error)} is ${code}, the ${blame}'s`, () => {
      const read = refusal(status, NO_HEADERS, { error });
      assert.deepEqual(
        [read.code, read.blame, read.countsForBreaker],
        [code, blame, countsForBreaker],
      );
      assert.equal(read.detail.status, status);
    });

  for (const [status, error] of [
    [401, {}],
    [403, {}],
    [400, { code: "api_key_expired" }],
    [400, { status: "API_KEY_INVALID" }],
    [400, { message: "You have reached your specified API usage limits. You will" }],
    [400, { message: "This organization has been disabled." }],
  ] as const)
    it(`${status} with ${JSON.stringify(error)} refuses the key: another one may be tried`, () =>
      assert.equal(refusal(status, NO_HEADERS, { error }).detail.operator, "key"));

  it("403 with a page of HTML is a firewall's", () => {
    const { code, blame, countsForBreaker } = refusal(403, NO_HEADERS, " <!DOCTYPE html><p>No");
    assert.deepEqual([code, blame, countsForBreaker], ["model_unavailable", "operator", false]);
  });

  it("keeps the provider's message in the detail and out of its own", () => {
    const { message, detail } = refusal(500, NO_HEADERS, { error: { message: "sk-secret" } });
    assert.equal(detail.providerMessage, "sk-secret");
    assert.ok(!message.includes("sk-secret"));
  });

  for (const body of [
    { error: "prompt is too long" },
    [{ error: { message: "prompt is too long" } }],
    { object: "error", message: "prompt is too long" },
    { detail: [{ msg: "prompt is too long" }] },
    "prompt is too long",
  ])
    it(`is read in the form ${JSON.stringify(body)}`, () =>
      assert.equal(refusal(400, NO_HEADERS, body).code, "context_length_exceeded"));
});

describe("Retry-After", () => {
  const NOW = Date.parse("2026-01-01T00:00:00Z");
  const waitFor = (header: string | null, body: unknown = {}) =>
    refusal(429, { get: (name) => (name === "retry-after" ? header : null) }, body, NOW).detail
      .retryAfterMs;

  for (const [header, ms] of [
    ["17", 17_000],
    [" 0.5 ", 500],
    ["Thu, 01 Jan 2026 00:00:30 GMT", 30_000],
    ["Wed, 31 Dec 2025 00:00:00 GMT", 0],
    ["soon", undefined],
    ["-1", Math.max(0, Date.parse("-1") - NOW)],
    [null, undefined],
  ] as const)
    it(`${header} is ${ms} ms`, () => assert.equal(waitFor(header), ms));

  it("is Gemini's RetryInfo where there is no header", () => {
    const body = { error: { details: [{ "@type": "x" }, { retryDelay: "17s" }] } };
    assert.deepEqual([waitFor(null, body), waitFor("3", body)], [17_000, 3_000]);
  });
});

describe("a wait that is stated in other words", () => {
  const NOW = Date.parse("2026-01-01T00:00:00Z");
  const waitFor = (headers: Record<string, string>) =>
    refusal(429, { get: (name) => headers[name] ?? null }, {}, NOW).detail.retryAfterMs;

  it("is read from the headers of the vendors, the most precise first", () => {
    assert.equal(waitFor({ "retry-after-ms": "120", "retry-after": "1" }), 120);
    assert.equal(
      waitFor({ "x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "6m0s" }),
      360_000,
    );
    const exhausted = {
      "x-ratelimit-remaining-tokens": "0",
      "x-ratelimit-reset-tokens": "1.5s",
      "x-ratelimit-remaining-requests": "7",
      "x-ratelimit-reset-requests": "1h",
    };
    assert.equal(waitFor(exhausted), 1_500, "only of a limit of which nothing is left");
    assert.equal(
      waitFor({
        "anthropic-ratelimit-input-tokens-remaining": "0",
        "anthropic-ratelimit-input-tokens-reset": "2026-01-01T00:00:20Z",
      }),
      20_000,
    );
    assert.equal(waitFor({ "x-ratelimit-remaining-requests": "0" }), undefined);
    assert.equal(waitFor({ "retry-after-ms": "soon" }), undefined);
  });

  it("has durations in any of the usual forms", () => {
    for (const [text, ms] of [
      ["20ms", 20],
      ["1h2m3s", 3_723_000],
      ["7.66s", 7_660],
      ["3", 3_000],
    ] as const)
      assert.equal(durationMs(text), ms, text);
    for (const text of ["", "s", "1d", "1s2", "-1s"])
      assert.ok(Number.isNaN(durationMs(text)), text);
  });
});

describe("an error inside a 200", () => {
  const errorIn = (json: unknown): ProviderError | undefined => {
    try {
      throwErrorIn(json);
    } catch (error) {
      assert.ok(error instanceof ProviderError);
      return error;
    }
    return undefined;
  };

  const choices = [{ message: { content: "Hi." } }];
  for (const json of [
    {},
    null,
    "x",
    { error: null },
    { error: "" },
    { error: {}, choices },
    { error: { code: 0, message: "" }, choices },
    { object: "chat.completion" },
  ])
    it(`is not seen in ${JSON.stringify(json)}`, () => assert.equal(errorIn(json), undefined));

  for (const [json, status] of [
    [{ error: { code: 429 } }, 429],
    [{ error: {} }, 500],
    [{ error: { code: 429 }, choices }, 429],
    [{ choices: [{ finish_reason: "stop" }], x_groq: { error: "over capacity" } }, 500],
    [{ error: { code: "502" } }, 502],
    [{ error: { code: "RESOURCE", status: "503" } }, 503],
    [{ error: { type: "overloaded_error" } }, 529],
    [{ error: { type: "rate_limit_error" } }, 429],
    [{ error: { type: "authentication_error" } }, 401],
    [{ error: { type: "invalid_request_error" } }, 400],
    [{ error: { code: "content_policy" } }, 400],
    [{ error: { message: "Prompt is too long" } }, 400],
    [{ error: { message: "Incorrect API key" } }, 500],
    [{ error: "something" }, 500],
    [[{ error: { code: 400 } }], 400],
    [{ object: "error", code: 404 }, 404],
    [{ error: { message: "no", http_code: "400" } }, 400],
    [{ error: { code: "1302", message: "High concurrency" } }, 429],
    [{ error: { code: "1305", message: "busy" } }, 529],
    [{ message: "busy", code: 503 }, 503],
    [{ message: "busy", code: "overloaded" }, 529],
  ] as const)
    it(`${JSON.stringify(json)} stands for status ${status}`, () =>
      assert.equal(errorIn(json)?.detail.status, status));

  for (const json of [
    { code: 0, message: "ok" },
    { code: 200, message: "ok" },
    { code: null, message: "ok" },
    { code: 503, message: "" },
    { code: 503, message: "busy", choices },
  ])
    it(`${JSON.stringify(json)} is none`, () => assert.equal(errorIn(json), undefined));

  for (const [error, code] of [
    [{ code: "1301", message: "System detected potentially unsafe content" }, "content_filter"],
    [{ code: "1261", message: "Prompt 超长" }, "context_length_exceeded"],
    [{ code: "1113", message: "in arrears" }, "model_unavailable"],
  ] as const)
    it(`of Zhipu's with code ${error.code} is ${code}, as in status 400`, () => {
      assert.equal(errorIn({ error })?.code, code);
      const status = code === "model_unavailable" ? 429 : 400;
      assert.equal(refusal(status, NO_HEADERS, { error }).code, code);
    });

  for (const [status_code, status_msg, status, code, blame] of [
    [1000, "unknown error", 500, "upstream_error", "provider"],
    [1002, "rate limit", 429, "model_overloaded", "provider"],
    [1004, "not authorized", 401, "model_unavailable", "operator"],
    [1008, "insufficient balance", 402, "model_unavailable", "operator"],
    [1026, "input new_sensitive", 400, "content_filter", "client"],
    [1027, "output new_sensitive", 400, "content_filter", "client"],
    [1039, "token limit", 429, "model_overloaded", "provider"],
    [2013, "invalid params", 400, "upstream_rejected", "client"],
    [2013, "context window exceeds limit", 400, "context_length_exceeded", "client"],
    [2049, "invalid api key", 401, "model_unavailable", "operator"],
    ["1008", "insufficient balance", 402, "model_unavailable", "operator"],
  ] as const)
    it(`in MiniMax's base_resp with ${status_code} (${status_msg}) is ${code}, the ${blame}'s`, () => {
      const read = errorIn({ choices: null, base_resp: { status_code, status_msg } });
      assert.deepEqual([read?.code, read?.blame, read?.detail.status], [code, blame, status]);
      assert.equal(read?.detail.providerMessage, status_msg);
    });

  it("is none in a base_resp of 0", () =>
    assert.equal(errorIn({ base_resp: { status_code: 0, status_msg: "" } }), undefined));

  it("in base_resp is read in an answer other than 200 too", () => {
    const base_resp = { status_code: 1026, status_msg: "input new_sensitive" };
    assert.equal(refusal(400, NO_HEADERS, { base_resp }).code, "content_filter");
  });
});
