// What goes out to a provider, and what each of its faults becomes for a client who named the
// model: wire.md "Provider errors".

import assert from "node:assert/strict";
import net from "node:net";
import type { AddressInfo } from "node:net";
import { before, describe, it, type TestContext } from "node:test";
import { gzipSync } from "node:zlib";
import type { Fetch } from "../../../src/core/upstream/fetch.ts";
import { VERSION } from "../../../src/core/version.ts";
import {
  POOLED_ONLY,
  configFor,
  json,
  startGateway,
  user,
  type RunningGateway,
} from "../../support/gateway.ts";
import {
  completion,
  reset,
  silent,
  speak,
  startProvider,
  status,
  type Behaviour,
  type Provider,
} from "../../support/provider.ts";
import { suiteScope } from "../../support/scope.ts";
import { waitFor, within } from "../../support/wait.ts";

const JSON_TYPE = { "content-type": "application/json" };
const error = (message: string, more: object = {}) => ({ error: { message, ...more } });

const json429 = (retryAfter: string): Behaviour =>
  status(429, {}, { ...JSON_TYPE, "retry-after": retryAfter });
const PAST = new Date(Date.now() - 1000).toUTCString();

/** Behaviours by their names. */
type Behaviours = Readonly<Record<string, Behaviour>>;

const TOO_LONG: Behaviours = {
  "400 with a context that is too long": status(
    400,
    error("This model's maximum context length is 10 tokens", { code: "context_length_exceeded" }),
  ),
  "400 of llama.cpp": status(400, error("x", { type: "exceed_context_size_error", code: 400 })),
  "413 prompt is too long": status(413, error("prompt is too long: 9 tokens > 8 maximum")),
  "400 of 100 KB": status(400, error(`maximum context length is 10 ${"x".repeat(100_000)}`)),
  "200 with a flat error": status(200, {
    object: "error",
    message: "maximum context length",
    code: 400,
  }),
};

const REJECTED: Behaviours = {
  "400 otherwise": status(400, error("unknown field foo")),
  "400 that speaks of sensitive letters and safety": status(
    400,
    error("'safety_identifier' is unknown; names are case-sensitive"),
  ),
  "422 in FastAPI's form": status(422, { detail: [{ loc: ["body"], msg: "bad" }] }),
};

const UNAVAILABLE: Behaviours = {
  "400 for the provider's key": status(400, error("No.", { code: "API_KEY_INVALID" })),
  "400 for it, in a list": status(400, [
    error("API key not valid. Please pass a valid API key.", { status: "INVALID_ARGUMENT" }),
  ]),
  "401": status(401, error("Incorrect API key provided: sk-provider-secret")),
  "402": status(402, error("Insufficient Balance")),
  "403": status(403),
  "404": status(404, "not found", { "content-type": "text/plain" }),
};

const FAILED: Behaviours = {
  "500": status(500),
  "502 with a page": status(502, "<html>", { "content-type": "text/html" }),
  "504": status(504),
  "a redirect": status(307, {}, { ...JSON_TYPE, location: "http://127.0.0.1:1/steal" }),
  "101": ({ socket }) => {
    socket.write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n");
  },
  "204": status(204, ""),
  "200 with a page": status(200, "<html>hello</html>", { "content-type": "text/html" }),
  "200 without a content type": status(200, "{}", {}),
  "200 with half a JSON": status(200, '{"choices":[{"mess'),
  "200 with a bare error": status(200, { error: "no" }),
  "200 without choices": status(200, { choices: [] }),
  "200 with a choice that is empty": status(200, { choices: [{}] }),
  "200 that is a list": status(200, []),
  "200 compressed although identity was asked for": (asked) =>
    status(200, "", { ...JSON_TYPE, "content-encoding": "gzip" })({
      ...asked,
      res: Object.assign(asked.res, { end: asked.res.end.bind(asked.res, gzipSync("{}")) }),
    }),
  "a failed finish_reason": status(200, completion({}, "insufficient_system_resource")),
  "a reset before the headers": reset,
  "a reset in the middle of the body": ({ res, socket }) => {
    res.writeHead(200, { ...JSON_TYPE, "content-length": "100" });
    res.write("{", () => socket.resetAndDestroy());
  },
  "no HTTP": ({ socket }) => {
    socket.end("nonsense\r\n\r\n");
  },
  "headers without end": ({ socket }) => {
    socket.write(`HTTP/1.1 200 OK\r\n${"x-filler: aaaaaaaaaaaaaaaa\r\n".repeat(3_000)}`);
  },
};

const OVERLOADED = Object.fromEntries(
  [408, 409, 425, 429, 503, 529].map((code) => [code, status(code)]),
);

type Fault = readonly [
  name: string,
  behaviour: Behaviour,
  status: number,
  code: string,
  param: string | null,
  retryAfter?: string | undefined,
];
const faults = (
  behaviours: Behaviours,
  status: number,
  code: string,
  ...[param, retryAfter]: readonly [param: string | null, retryAfter?: string]
): Fault[] =>
  Object.entries(behaviours).map(([name, behaviour]) => [
    name,
    behaviour,
    status,
    code,
    param,
    retryAfter,
  ]);

const FILTERED = status(400, error("The response was filtered", { code: "content_filter" }));
const INSIDE = status(200, error("no", { code: 429 }));
const overloaded = (name: string, behaviour: Behaviour, retryAfter: string) =>
  faults({ [name]: behaviour }, 503, "model_overloaded", "model", retryAfter);
const FAULTS: readonly Fault[] = [
  ...faults(TOO_LONG, 400, "context_length_exceeded", "messages"),
  ...faults({ "400 by a content filter": FILTERED }, 400, "content_filter", "messages"),
  ...faults(REJECTED, 400, "upstream_rejected", null),
  ...faults(UNAVAILABLE, 503, "model_unavailable", "model"),
  ...faults(OVERLOADED, 503, "model_overloaded", "model", "5"),
  ...overloaded("429 with Retry-After", json429("17"), "17"),
  ...overloaded("429 with a long Retry-After", json429("3600"), "60"),
  ...overloaded("429 with a date", json429(PAST), "1"),
  ...overloaded("429 with nonsense", json429("soon"), "5"),
  ...faults({ "200 with an error": INSIDE }, 503, "model_overloaded", "model"),
  ...faults(FAILED, 503, "upstream_error", "model"),
];

async function answered(
  t: TestContext,
  behaviour: Behaviour,
  over: object = {},
  request: object = {},
) {
  const provider = await startProvider(t, { m: behaviour, ok: speak("Fine.") });
  const gateway = await startGateway(t, configFor(provider.url, ["m", "ok"], over));
  const response = await within(
    gateway.chat({ model: "m", messages: user("hi"), ...request }),
    "the answer",
  );
  return { provider, gateway, response };
}

describe("faults of a provider, for a client who named the model", () => {
  const scope = suiteScope();
  let current: Behaviour = reset;
  let provider: Provider;
  let gateway: RunningGateway;
  before(async () => {
    provider = await startProvider(scope, { m: (asked) => current(asked), ok: speak("Fine.") });
    // A fault on a pooled connection would be taken for a stale connection.
    provider.server.maxRequestsPerSocket = 1;
    // Some faults close a model to the next request, so each test asks a model of its own.
    const models = Object.fromEntries(
      FAULTS.flatMap((_, index) =>
        [`whole-${index}`, `streamed-${index}`].map((name) => [
          name,
          { provider: "lab", upstream_model: "m" },
        ]),
      ),
    );
    gateway = await startGateway(scope, configFor(provider.url, ["ok"], { models }));
  });
  for (const [index, row] of FAULTS.entries()) {
    const [name, behaviour, code, errorCode, param, retryAfter] = row;
    for (const streaming of [false, true]) {
      const model = `${streaming ? "streamed" : "whole"}-${index}`;
      it(`${name}${streaming ? ", streaming" : ""}: ${code} ${errorCode}`, async () => {
        current = behaviour;
        provider.asked.length = 0;
        gateway.diagnostics.length = 0;
        const request = { model, messages: user("hi"), stream: streaming };
        const response = await within(gateway.chat(request), "the answer");
        assert.equal(response.status, code);
        const text = await response.text();
        const body = JSON.parse(text).error;
        assert.deepEqual([body.code, body.param], [errorCode, param]);
        assert.equal(
          body.type,
          code === 503 ? "service_unavailable_error" : "invalid_request_error",
        );
        assert.equal(body.request_id, response.headers.get("x-request-id"));
        if (retryAfter !== undefined) assert.equal(response.headers.get("retry-after"), retryAfter);
        if (errorCode === "model_overloaded")
          assert.ok(
            body.message.includes(`Retry after ${response.headers.get("retry-after")} seconds`),
          );
        assert.ok(!/sk-provider|127\.0\.0\.1|\blab\b/.test(text), text);
        const line = await waitFor(
          () => gateway.diagnostics.find((each) => each["event"] === "attempt_failed"),
          "the diagnostic line",
        );
        assert.deepEqual(
          [line["model"], line["provider"], line["code"]],
          [model, "lab", errorCode],
        );
        assert.ok(!JSON.stringify(gateway.diagnostics).includes("sk-provider"));
        assert.equal(provider.asked.length, 1);
        assert.equal((await gateway.chat({ model: "ok", messages: user("hi") })).status, 200);
      });
    }
  }

  it("nobody at the address: model_unavailable", async (t) => {
    const free = net.createServer();
    await new Promise<void>((resolve) => free.listen(0, "127.0.0.1", resolve));
    const { port } = free.address() as AddressInfo;
    await new Promise((resolve) => free.close(resolve));
    const gateway = await startGateway(t, configFor(`http://127.0.0.1:${port}`, ["m"]));
    const response = await gateway.chat({ model: "m", messages: user("hi") });
    assert.equal(response.status, 503);
    assert.equal((await json(response)).error.code, "model_unavailable");
  });

  for (const mediaType of ["text/html", "application/json"]) {
    it(`a 200 of ${mediaType} that is refused is not read on`, async (t) => {
      const begins: Behaviour = ({ res }) => {
        res.writeHead(200, {
          "content-type": mediaType,
          ...(mediaType === "application/json" && { "content-encoding": "gzip" }),
        });
        res.write("<html>");
      };
      const { response, provider } = await answered(t, begins);
      assert.equal(response.status, 503);
      await waitFor(() => provider.asked[0]!.closed(), "the provider's connection to close");
    });
  }

  it("an error of our own is a bare 500, and its detail goes to the log", async (t) => {
    const broken: Fetch = () =>
      Promise.reject(new TypeError("a bug that names sk-provider-secret"));
    const gateway = await startGateway(t, configFor("http://127.0.0.1:1", ["m"]), {
      fetch: broken,
    });
    for (const streaming of [false, true]) {
      const response = await gateway.chat({ model: "m", stream: streaming, messages: user("hi") });
      assert.equal(response.status, 500);
      assert.equal(response.headers.get("x-should-retry"), "false");
      const { error } = await json(response);
      assert.deepEqual([error.type, error.code], ["server_error", "internal_error"]);
      assert.ok(!error.message.includes("bug"));
    }
    await waitFor(
      () => gateway.diagnostics.find((line) => String(line["detail"]).includes("a bug that names")),
      "the diagnostic line",
    );
  });
});

describe("deadlines", () => {
  it("comments do not put off the first token's deadline", async (t) => {
    const chatty: Behaviour = ({ res }) => {
      res.writeHead(200, { "content-type": "text/event-stream" });
      const beat = setInterval(() => res.write(": keep-alive\n\n"), 20);
      res.on("close", () => clearInterval(beat));
    };
    const { response } = await answered(
      t,
      chatty,
      { timeouts: { first_token_ms: 200 } },
      { stream: true },
    );
    assert.equal((await json(response)).error.code, "upstream_timeout");
  });

  it("a whole reply that stops in the middle: idle_ms", async (t) => {
    const half: Behaviour = ({ res }) => {
      res.writeHead(200, JSON_TYPE);
      res.write("{");
    };
    const { response } = await answered(t, half, { timeouts: { idle_ms: 100 } });
    assert.equal((await json(response)).error.code, "upstream_timeout");
  });

  it("a provider's own timeouts override the general ones", async (t) => {
    for (const timeouts of [{ first_token_ms: 50 }, { total_ms: 50 }]) {
      const { response } = await answered(t, silent, { providers: { lab: { timeouts } } });
      assert.equal((await json(response)).error.code, "upstream_timeout");
    }
  });
});

describe("what goes out", () => {
  it(
    "carries the provider's key, asks for identity, and nothing of the client's headers",
    POOLED_ONLY,
    async (t) => {
      const { provider } = await answered(t, speak("Hi."));
      const { headers, path } = provider.asked[0]!;
      assert.equal(path, "/chat/completions");
      assert.equal(headers["authorization"], "Bearer sk-provider-secret");
      assert.equal(headers["accept-encoding"], "identity");
      assert.equal(headers["user-agent"], `chat-gateway/${VERSION}`);
      assert.equal(headers["x-request-id"], undefined);
      assert.deepEqual(Object.keys(headers).sort(), [
        "accept",
        "accept-encoding",
        "authorization",
        "connection",
        "content-length",
        "content-type",
        "host",
        "user-agent",
      ]);
    },
  );
});
