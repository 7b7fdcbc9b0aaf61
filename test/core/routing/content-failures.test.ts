// The content of one request must not open a model's breaker for other clients: failures that a
// request's content can cause, which the breaker does not count, in all their forms; then the
// faults that it does count, and how network errors are mapped.

import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { ProviderError } from "../../../src/core/providers/provider-error.ts";
import { fromNetwork } from "../../../src/core/routing/attempt-errors.ts";
import { ConnectTimeout } from "../../../src/core/upstream/transport.ts";
import {
  type Behaviour,
  chunk,
  completion,
  endless,
  rawStream,
  speak,
  status,
  stream,
  USAGE,
} from "../../support/provider.ts";
import { vendorBench } from "./two-providers.ts";

const HTML = { "content-type": "text/html" };
const error = (message: string, more: object = {}) => ({ error: { message, ...more } });
const toolUseFailed = error("Tool choice is required, but model did not call a tool", {
  type: "invalid_request_error",
  code: "tool_use_failed",
  failed_generation: "maybe",
});

/** The same behaviour, whole and streamed. */
const either =
  (whole: unknown, events: readonly unknown[]): Behaviour =>
  (asked) =>
    (asked.body["stream"] ? stream(events, "eof") : status(200, whole))(asked);

/** A model that behaves like `bad` for requests that contain "bad". */
const bench = (t: TestContext, vendor: string, bad: Behaviour, over = {}) =>
  vendorBench(
    t,
    vendor,
    (asked) => (JSON.stringify(asked.body).includes('"bad"') ? bad : speak("Fine."))(asked),
    over,
  );

const FAILED = "503 upstream_error";
const CLOSED = "503 model_unavailable";

/** By `VENDOR: WHAT`. provider-words/refusal.test.ts tests which errors these are. */
const NOT_COUNTED: Readonly<Record<string, Behaviour>> = {
  "groq: tool_use_failed as a 400": status(400, toolUseFailed),
  "groq: tool_use_failed inside a 200": either(toolUseFailed, [
    chunk({ role: "assistant", content: "" }),
    toolUseFailed,
  ]),
  "openrouter: finish_reason error": either(completion({ content: "" }, "error"), [
    chunk({}, "error"),
  ]),
  "openai: usage, and no choice": status(200, { choices: [], usage: USAGE }),
};

const COUNTED: Readonly<Record<string, Behaviour>> = {
  "openai: a page with status 200": status(200, "<html>", HTML),
  "openai: half a JSON": status(200, '{"choices":[{'),
  "openai: JSON that is not a reply": status(200, {}),
  "generic: an event without end": endless("text/event-stream", Buffer.alloc(1_048_576, "x")),
};
const vendorOf = (name: string): string => name.split(": ")[0]!;

describe("a failure that one request's content causes", { concurrency: 2 }, () => {
  for (const [name, bad] of Object.entries(NOT_COUNTED)) {
    it(`${name}: another candidate is tried, and the breaker stays closed`, async (t) => {
      const { gateway, ask, breaker, asked, others } = await bench(t, vendorOf(name), bad);
      for (const streaming of [false, true, false, true, false])
        assert.equal(await ask("m", "bad", streaming), FAILED);
      assert.equal(await ask("both", "bad"), "200 next");
      assert.deepEqual([asked.length, others.length], [6, 1], "every request reached the provider");
      assert.deepEqual(breaker(), ["closed", 0]);
      for (const { blame = "provider" } of gateway.diagnostics) assert.equal(blame, "provider");
      assert.equal(await ask("m", "good"), "200 m", "another client is served");
    });
  }

  for (const [name, bad] of Object.entries(COUNTED)) {
    it(`${name} is a fault of the provider, so it counts`, async (t) => {
      const { ask, asked, breaker } = await bench(t, vendorOf(name), bad);
      for (let count = 0; count < 2; count += 1) assert.equal(await ask("m", "bad", true), FAILED);
      assert.equal(breaker()[0], "open");
      assert.equal(await ask("m", "good"), CLOSED);
      assert.ok(asked.length <= 2);
    });
  }

  const tooLong = { code: 400, message: "the request exceeds the available context size" };
  const blind = error("Model does not support images. Please use a model that does.");
  for (const [vendor, bad, outcome] of [
    [
      "llama.cpp",
      rawStream(`error: ${JSON.stringify(tooLong)}\n\n`),
      "400 context_length_exceeded",
    ],
    ["lmstudio", status(200, blind), "400 upstream_rejected"],
    ["generic", status(403, "<html>", HTML), CLOSED],
  ] as const)
    it(`${outcome} of ${vendor} does not count, and another candidate is tried`, async (t) => {
      const { ask, breaker } = await bench(t, vendor, bad);
      for (let count = 0; count < 3; count += 1) assert.equal(await ask("m", "bad", true), outcome);
      assert.equal(await ask("both", "bad"), "200 next");
      assert.deepEqual(breaker(), ["closed", 0]);
    });

  it("the same model is tried again within max_retries, because another generation may succeed", async (t) => {
    let count = 0;
    const bad: Behaviour = (asked) => {
      count += 1;
      return (count === 1 ? status(400, toolUseFailed) : speak("Fine."))(asked);
    };
    const { ask, others } = await bench(t, "groq", bad, {
      retry: { max_retries: 1, backoff_ms: 1 },
    });
    assert.equal(await ask("both", "bad"), "200 m");
    assert.deepEqual([count, others.length], [2, 0]);
  });

  it("a probe that meets one leaves the breaker open, and the next request is the probe", async (t) => {
    const clock = { now: 0 };
    const answers = [status(403, error("no")), status(400, toolUseFailed), speak("Fine.")];
    const { ask, asked, breaker } = await bench(t, "groq", (each) => answers.shift()!(each), {
      time: { monotonic: () => clock.now },
    });
    assert.equal(await ask("m", "bad"), CLOSED);
    assert.equal(await ask("m", "bad"), CLOSED, "it is open, and nobody is asked");
    assert.equal(asked.length, 1);
    clock.now += 10_000;
    assert.equal(await ask("both", "bad"), "200 next");
    assert.equal(breaker()[0], "open", "neither closed nor reopened");
    assert.equal(await ask("m", "bad"), "200 m", "at the same moment");
    assert.equal(breaker()[0], "closed");
    assert.equal(asked.length, 3);
  });
});

const withCode = (code: string) => Object.assign(new Error("failed"), { code });
const ofFetch = (cause?: Error) => new TypeError("fetch failed", { cause });
const [REFUSED, RESET] = [withCode("ECONNREFUSED"), withCode("ECONNRESET")];
const NO_HTTP = Object.assign(new Error("an answer that is not HTTP/1"), { code: "EPROTO" });
const CONNECTION = "the connection failed: ";
const UNAVAILABLE = ["model_unavailable", `${CONNECTION}ECONNREFUSED`] as const;

describe("an error of the network", () => {
  for (const [name, error, code, message] of [
    ...["ECONNREFUSED", "ENOTFOUND", "CERT_HAS_EXPIRED", "ERR_SSL_WRONG_VERSION_NUMBER"].map(
      (code) => [code, withCode(code), "model_unavailable", CONNECTION + code] as const,
    ),
    ["no file for a socket", withCode("EMFILE"), "upstream_error", `${CONNECTION}EMFILE`],
    ["no port", withCode("EADDRNOTAVAIL"), "upstream_error", `${CONNECTION}EADDRNOTAVAIL`],
    ["a reset connection", RESET, "upstream_error", `${CONNECTION}ECONNRESET`],
    ["no HTTP", NO_HTTP, "upstream_error", `${CONNECTION}an answer that is not HTTP/1`],
    ["an error that fetch wraps", ofFetch(REFUSED), ...UNAVAILABLE],
    ["fetch without a code", ofFetch(), "upstream_error", `${CONNECTION}fetch failed`],
    ["a cause of fetch", ofFetch(new Error("bad port")), "upstream_error", `${CONNECTION}bad port`],
    ["the first of several addresses", new AggregateError([REFUSED, RESET]), ...UNAVAILABLE],
    ["a slow connection", new ConnectTimeout("none"), "upstream_timeout", "none"],
    ["a bound that was exceeded", new RangeError("too large"), "upstream_error", "too large"],
  ] as const)
    it(`becomes ${code}: ${name}`, () => {
      const result = fromNetwork(error);
      assert.ok(result instanceof ProviderError);
      assert.deepEqual([result.code, result.message, result.cause], [code, message, error]);
      assert.equal(result.countsForBreaker, !/EMFILE|EADDRNOTAVAIL/.test(message));
    });

  it("is a broken reply if the response had begun, even if TLS reports an unreadable version", () => {
    const error = fromNetwork(withCode("ERR_SSL_WRONG_VERSION_NUMBER"), true);
    assert.equal((error as ProviderError).code, "upstream_error");
  });

  it("is not changed if it is a bug, a ProviderError, or not an Error", () => {
    for (const error of [
      new TypeError("x is undefined"),
      Object.assign(new TypeError("wrong argument"), { code: "ERR_INVALID_ARG_TYPE" }),
      new ProviderError("upstream_error", "a"),
      "text",
    ])
      assert.equal(fromNetwork(error), error);
  });
});
