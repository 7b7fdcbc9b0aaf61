// The spans of chat requests, parsed by the strict reader of the protocol: one per request, one per
// attempt, what they contain, and what they never contain.

import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { createRequestSpans } from "../../../../src/extensions/operations/telemetry/request-spans.ts";
import { systemClock } from "../../../../src/core/clock.ts";
import { configFor, observedBy, startGateway, user } from "../../../support/gateway.ts";
import { readSpans, type ReadSpan } from "../../../support/otlp-reader.ts";
import {
  speak,
  status,
  stream,
  chunk,
  USAGE,
  type Behaviours,
  startProvider,
} from "../../../support/provider.ts";
import { createEnvelope } from "../../../../src/extensions/operations/telemetry/otlp.ts";
import { waitFor } from "../../../support/wait.ts";

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT = "00f067aa0ba902b7";
const VALID = `00-${TRACE}-${PARENT}-01`;
const [SERVER, CLIENT] = [2, 3]; // the kinds of spans
const ERROR = 2; // a span's status

const envelope = createEnvelope({ "service.name": "test" });

/** The attributes in both spans of a request that the model `m` has served. */
const SERVED = {
  "gen_ai.operation.name": "chat",
  "gen_ai.provider.name": "lab",
  "gen_ai.request.model": "m",
  "gen_ai.response.model": "m",
  "gen_ai.response.finish_reasons": ["stop"],
  "http.request.method": "POST",
  "http.response.status_code": 200,
  "chat_gateway.request_id": "my-request",
  "chat_gateway.account": "acme",
};
/** Those that only the span of the attempt has. */
const USED = {
  "gen_ai.usage.input_tokens": USAGE.prompt_tokens,
  "gen_ai.usage.output_tokens": USAGE.completion_tokens,
  "gen_ai.usage.cache_read.input_tokens": USAGE.prompt_tokens_details.cached_tokens,
  "gen_ai.usage.reasoning.output_tokens": USAGE.completion_tokens_details.reasoning_tokens,
};
const LAB = { baseUrl: "https://lab.example:8443/v1", redact: (text: string) => text };
const BAD = { ...LAB, baseUrl: "https://lab.example/v1" };

async function bench(t: TestContext, behaviours: Behaviours, over: object = {}) {
  const provider = await startProvider(t, behaviours);
  const texts: string[] = [];
  const models = ["m", "bad", "slow"];
  const trace = createRequestSpans({
    clock: systemClock,
    emit: (span) => texts.push(span),
    models: () => new Map(models.map((name) => [name, { provider: name === "bad" ? BAD : LAB }])),
  });
  const gateway = await startGateway(t, configFor(provider.url, models, over), observedBy(trace));
  return {
    provider,
    gateway,
    texts,
    async ask(body: object = {}, headers: Record<string, string> = {}) {
      const before = texts.length;
      await (await gateway.chat({ model: "m", messages: user("hi"), ...body }, headers)).text();
      await waitFor(() => texts.length > before, "its spans");
      const spans = readSpans(envelope(texts.slice(before)));
      return { spans, request: spans[0]!, attempts: spans.slice(1) };
    },
  };
}

const isChild = (request: ReadSpan, span: ReadSpan): boolean =>
  span.parentSpanId === request.spanId && span.traceId === request.traceId;

describe("the span of a request", () => {
  it("states who requested what, who served it, what it cost and how it ended", async (t) => {
    const { ask } = await bench(t, speak("Fine."));
    const { request, attempts } = await ask({}, { "x-request-id": "my-request" });
    const { kind, name, parentSpanId, resource } = request;
    assert.deepEqual([kind, name, request.status], [SERVER, "POST /v1/chat/completions", 0]);
    assert.deepEqual([parentSpanId, resource["service.name"]], ["", "test"]);
    const { "chat_gateway.key_id": keyId, ...rest } = request.attributes;
    assert.match(String(keyId), /^key_/);
    assert.deepEqual(rest, {
      ...SERVED,
      "http.route": "/v1/chat/completions",
      "url.path": "/v1/chat/completions",
      "url.scheme": "http",
      "chat_gateway.cost": "0",
      "chat_gateway.currency": "USD",
    });
    assert.equal(attempts.length, 1);
  });

  const cut = stream([chunk({ content: "Fi" })], "cut");
  for (const [code, http, failed, behaviour, body, headers] of [
    ["invalid_api_key", 401, [0], speak("Fine."), {}, { authorization: "Bearer sk-nobody" }],
    ["model_not_found", 404, [0], speak("Fine."), { model: "nowhere" }, {}],
    ["invalid_type", 400, [0], speak("Fine."), { messages: 1 }, {}],
    ["upstream_error", 503, [ERROR, ERROR], status(500), {}, {}],
    // The client saw status 200 of the stream that broke.
    ["upstream_error", 200, [ERROR, ERROR], cut, { stream: true }, {}],
  ] as const)
    it(`of ${code} with status ${http} ${failed[0] === ERROR ? "has" : "has no"} error status`, async (t) => {
      const { ask } = await bench(t, behaviour);
      const { spans, request } = await ask(body, headers);
      assert.equal(request.attributes["error.type"], code);
      assert.equal(request.attributes["http.response.status_code"], http);
      assert.deepEqual(spans.map((span) => span.status).join(), failed.join());
      const usages = spans.filter(({ attributes }) => "gen_ai.usage.output_tokens" in attributes);
      assert.deepEqual(usages, http === 200 ? spans.slice(1) : []);
    });

  it("truncates long values from clients, and repairs invalid text", async (t) => {
    const { ask } = await bench(t, speak("Fine."));
    const { request } = await ask({ model: `\ud800${"x".repeat(5_000)}` });
    assert.equal(request.attributes["gen_ai.request.model"], `\ufffd${"x".repeat(511)}`);
  });
});

describe("the span of an attempt", () => {
  it("is a child of its request's span, and names the tried model", async (t) => {
    const { ask } = await bench(t, speak("Fine."));
    const { request, attempts } = await ask({}, { "x-request-id": "my-request" });
    const [attempt] = attempts as [ReadSpan];
    assert.ok(isChild(request, attempt));
    assert.deepEqual([attempt.kind, attempt.name, attempt.status], [CLIENT, "chat m", 0]);
    assert.deepEqual(attempt.attributes, {
      ...SERVED,
      ...USED,
      "server.address": "lab.example",
      "server.port": 8443,
      "chat_gateway.key_id": request.attributes["chat_gateway.key_id"],
    });
    assert.ok(attempt.start >= request.start && attempt.end <= request.end);
  });

  it("exists for each attempt of a fallback, and only the serving one has usage", async (t) => {
    const aliases = { any: { models: ["bad", "m"] } };
    const { ask } = await bench(t, { bad: status(500), m: speak("Fine.") }, { aliases });
    const { request, attempts } = await ask({ model: "any", stream: true });
    assert.equal(request.attributes["gen_ai.request.model"], "any");
    assert.equal(request.attributes["gen_ai.response.model"], "m");
    assert.ok(attempts.every((attempt) => isChild(request, attempt)));
    assert.deepEqual(
      attempts.map(({ name, attributes, events }) => [
        name,
        attributes["server.port"],
        attributes["http.response.status_code"],
        attributes["error.type"],
        attributes["gen_ai.usage.output_tokens"],
        events.map((each) => each.name),
      ]),
      [
        ["chat bad", 443, 500, "upstream_error", undefined, []],
        ["chat m", 8443, 200, undefined, USAGE.completion_tokens, ["first_token"]],
      ],
    );
  });

  it("has the id sent to its provider, also after retries", async (t) => {
    const over = { retry: { max_retries: 2, backoff_ms: 1 } };
    const { ask, provider } = await bench(t, status(500), over);
    const { request, attempts } = await ask();
    const told = provider.asked.map(({ headers }) => String(headers["traceparent"]));
    const ids = attempts.map(({ spanId }) => `00-${request.traceId}-${spanId}-01`);
    assert.deepEqual(told, ids);
    assert.equal(new Set(told).size, 3);
  });
});

it("no span has content: neither messages, nor replies, nor a provider's messages about them", async (t) => {
  const words = { error: { message: "canary-refusal: you said canary-question" } };
  const { ask, texts } = await bench(t, { m: speak("canary-reply"), bad: status(400, words) });
  const body = {
    messages: user("canary-question"),
    tools: [{ type: "function", function: { name: "canary-tool", parameters: {} } }],
    user: "canary-user",
  };
  for (const model of ["m", "bad"]) await ask({ ...body, model });
  await ask({ ...body, messages: [{ role: "canary-role", content: "canary-question" }] });
  assert.ok(texts.length >= 5);
  assert.doesNotMatch(texts.join(), /canary|sk-/);
});

describe("a trace begun by the client", () => {
  it("includes the request, even a rejected one, and is passed on with its state", async (t) => {
    const { ask, provider } = await bench(t, speak("Fine."));
    const headers = { traceparent: VALID, tracestate: "vendor=opaque" };
    const { request, attempts } = await ask({}, headers);
    const refused = await ask({ model: "nowhere" }, { traceparent: VALID });
    for (const { traceId, parentSpanId, flags } of [request, refused.request])
      assert.deepEqual([traceId, parentSpanId, flags], [TRACE, PARENT, 0x301]);
    assert.equal(attempts[0]!.flags, 0x101, "its parent is not remote");
    assert.equal(request.traceState, "vendor=opaque");
    const { traceparent, tracestate } = provider.asked[0]!.headers;
    const told = [`00-${TRACE}-${attempts[0]!.spanId}-01`, "vendor=opaque"];
    assert.deepEqual([traceparent, tracestate], told);
  });

  it("that is not recorded gets no span, and is passed on with the same flags", async (t) => {
    const { gateway, provider, texts } = await bench(t, speak("Fine."));
    const headers = { traceparent: `00-${TRACE}-${PARENT}-00`, tracestate: "a=1" };
    await (await gateway.chat({ model: "m", messages: user("hi") }, headers)).text();
    await waitFor(() => gateway.access.length === 1, "the end of the request");
    const told = provider.asked[0]!.headers;
    assert.match(String(told["traceparent"]), new RegExp(`^00-${TRACE}-[0-9a-f]{16}-00$`));
    assert.notEqual(told["traceparent"], headers.traceparent, "the parent is the gateway");
    assert.deepEqual([told["tracestate"], texts], ["a=1", []]);
  });
});
