// The HTTP edge: whatever arrives, the answer carries X-Request-Id and, if it is not 200, the error body of SPEC.md; also
// where Node would answer by itself. WIRE.md 4.2, 4.6 and 5.

import assert from "node:assert/strict";
import { once } from "node:events";
import http from "node:http";
import net from "node:net";
import { describe, it } from "node:test";
import { systemClock } from "../../../src/core/clock.ts";
import { renderError, shuttingDown } from "../../../src/core/error-responses.ts";
import type { Exchange } from "../../../src/core/http/exchange.ts";
import { createServer } from "../../../src/core/http/server.ts";
import { configFor, demo, json, KEY, startGateway, user } from "../../support/gateway.ts";
import { chunkShape, completionShape } from "../../support/shapes.ts";
import { chunk, held, silent, speak, startProvider, stream } from "../../support/provider.ts";
import { parseAnswer, rawRequest, type RawAnswer } from "../../support/raw.ts";
import { waitFor, within } from "../../support/wait.ts";

const GENERATED = /^req_[0-9a-f]{32}$/;

function assertError(answer: RawAnswer, status: number, code: string): void {
  assert.equal(answer.status, status, answer.text);
  assert.equal(answer.headers["content-type"], "application/json");
  const { error } = JSON.parse(answer.body);
  assert.equal(error.code, code);
  for (const field of ["message", "type", "code", "request_id"])
    assert.equal(typeof error[field], "string", field);
  assert.equal(error.request_id, answer.headers["x-request-id"]);
  assert.equal(Number(answer.headers["content-length"]), Buffer.byteLength(answer.body));
}

const close = "Connection: close\r\n";

describe("answers that Node would give by itself", () => {
  const cases: [name: string, bytes: string, status: number, code: string][] = [
    ["no HTTP at all", "hello\r\n\r\n", 400, "malformed_request"],
    [
      "a bad header line",
      "GET /healthz HTTP/1.1\r\nHost: x\r\nbad header\r\n\r\n",
      400,
      "malformed_request",
    ],
    [
      "a control character in a header",
      "GET /healthz HTTP/1.1\r\nHost: x\r\nA: b\u0001c\r\n\r\n",
      400,
      "malformed_request",
    ],
    ["HTTP/1.1 without Host", "GET /healthz HTTP/1.1\r\n\r\n", 400, "malformed_request"],
    [
      "both lengths",
      "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      400,
      "malformed_request",
    ],
    [
      "two lengths",
      "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
      400,
      "malformed_request",
    ],
    [
      "headers over 16 KiB",
      `GET /healthz HTTP/1.1\r\nHost: x\r\nA: ${"a".repeat(20_000)}\r\n\r\n`,
      431,
      "headers_too_large",
    ],
    [
      "a URL over 16 KiB",
      `GET /${"a".repeat(20_000)} HTTP/1.1\r\nHost: x\r\n\r\n`,
      431,
      "headers_too_large",
    ],
    [
      "CONNECT",
      "CONNECT example.com:443 HTTP/1.1\r\nHost: example.com\r\n\r\n",
      405,
      "method_not_allowed",
    ],
    [
      "an unknown expectation",
      `POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nExpect: tea\r\n${close}Content-Length: 0\r\n\r\n`,
      417,
      "expectation_failed",
    ],
    [
      "an upgrade",
      `GET /nowhere HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, close\r\nUpgrade: websocket\r\n\r\n`,
      404,
      "unknown_url",
    ],
    ["the preface of HTTP/2, without a version", "PRI /2.0\r\n\r\n", 400, "malformed_request"],
    ["OPTIONS *", `OPTIONS * HTTP/1.1\r\nHost: x\r\n${close}\r\n`, 404, "unknown_url"],
  ];
  for (const [name, bytes, status, code] of cases) {
    it(name, async (t) => {
      const gateway = await startGateway(t, demo());
      const answer = await rawRequest(gateway.url, bytes);
      assertError(answer, status, code);
      assert.match(answer.headers["x-request-id"]!, GENERATED);
      assert.equal(answer.headers["connection"], "close");
      const record = await gateway.accessOf(answer.headers["x-request-id"]!);
      assert.equal(record["status"], status);
    });
  }

  it("uses the client's id even where the request cannot be parsed", async (t) => {
    const gateway = await startGateway(t, demo());
    const answer = await rawRequest(
      gateway.url,
      "GET /healthz HTTP/1.1\r\nHost: x\r\nX-Request-Id: mine-7\r\nbad header\r\n\r\n",
    );
    assertError(answer, 400, "malformed_request");
    assert.equal(answer.headers["x-request-id"], "mine-7");
  });

  it("a body that breaks off in bad chunks is answered once", async (t) => {
    const gateway = await startGateway(t, demo());
    const head = `POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer sk-demo\r\nX-Request-Id: chunky\r\nTransfer-Encoding: chunked\r\n\r\n`;
    const answer = await rawRequest(gateway.url, `${head}5\r\nabcde\r\nzz\r\n`);
    assertError(answer, 400, "malformed_request");
    assert.equal(answer.headers["x-request-id"], "chunky");
    assert.equal(answer.text.match(/HTTP\/1\.1/g)?.length, 1);
    const record = await gateway.accessOf("chunky");
    assert.equal(record["status"], 400);
    assert.equal(gateway.access.filter((line) => line["request_id"] === "chunky").length, 1);
  });

  it("a refusal waits for what came in the same packet: bad chunks are the answer, nonsense after it ends the connection", async (t) => {
    const gateway = await startGateway(t, demo());
    const chunks = await rawRequest(
      gateway.url,
      "POST /nowhere HTTP/1.1\r\nHost: x\r\nX-Request-Id: both-1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    );
    assertError(chunks, 400, "malformed_request");
    assert.equal((await gateway.accessOf("both-1"))["status"], 400);
    const after = await rawRequest(
      gateway.url,
      "GET /nowhere HTTP/1.1\r\nHost: x\r\nX-Request-Id: both-2\r\n\r\nNONSENSE\r\n\r\n",
    );
    assertError(after, 404, "unknown_url");
    assert.equal(after.headers["connection"], "close");
    assert.equal((await gateway.accessOf("both-2"))["status"], 404);
  });

  it("a head, and a body, that does not arrive in time: 408", async (t) => {
    const gateway = await startGateway(t, demo({ server: { receive_ms: 300 } }));
    assertError(
      await rawRequest(gateway.url, "GET /healthz HTTP/1.1\r\nHost: x\r\n"),
      408,
      "request_timeout",
    );
    const slow = `POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer sk-demo\r\nContent-Length: 100\r\nX-Request-Id: slow-1\r\n\r\n{"mod`;
    const answer = await rawRequest(gateway.url, slow);
    assertError(answer, 408, "request_timeout");
    assert.equal(answer.headers["x-request-id"], "slow-1");
    assert.equal((await gateway.accessOf("slow-1"))["status"], 408);
  });

  it("nonsense after a whole request does not touch that request's answer", async (t) => {
    const provider = await startProvider(t, { m: speak("All is well.") });
    const gateway = await startGateway(t, configFor(provider.url, ["m"]));
    const body = JSON.stringify({ model: "m", messages: user("hi") });
    const bytes = `POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${KEY}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}NONSENSE\r\n\r\n`;
    const answer = await rawRequest(gateway.url, bytes);
    assert.equal(answer.status, 200, answer.text);
    assert.match(answer.body, /All is well\./);
    assert.equal(answer.text.match(/HTTP\/1\.1/g)?.length, 1);
  });

  for (const method of ["GET", "HEAD"]) {
    it(`an answer that began before its request's body came is given to its end, though that body is nonsense: ${method}`, async (t) => {
      const request = `${method} /early HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n`;
      let begun = (): void => undefined;
      const beginning = new Promise<void>((resolve) => (begun = resolve));
      const early = async ({ req, res }: Exchange) => {
        res.writeHead(200, { "Content-Type": "text/plain" });
        res.write("first, ");
        begun();
        await waitFor(() => req.socket.bytesRead === request.length + 4, "the nonsense to be read");
        res.end("last");
      };
      const records: { status: number }[] = [];
      const server = createServer(
        { "/early": { GET: early } },
        { host: "127.0.0.1", port: 0, receiveMs: 60_000 },
        {
          clock: systemClock,
          renderError,
          access: (record) => records.push(record),
          failed: (_, error) => {
            throw error;
          },
        },
      );
      const socket = net.connect(Number(new URL(await server.listen()).port), "127.0.0.1");
      t.after(() => server.close(0, shuttingDown()));
      let text = "";
      socket.on("data", (bytes) => (text += bytes)).write(request);
      await within(beginning, "the answer to begin");
      socket.write("zz\r\n");
      await within(once(socket, "close"), "the connection to end");
      assert.match(text, /^HTTP\/1\.1 200 OK\r\n/);
      assert.equal(
        text.slice(text.indexOf("\r\n\r\n") + 4),
        method === "HEAD" ? "" : "7\r\nfirst, \r\n4\r\nlast\r\n0\r\n\r\n",
      );
      await waitFor(() => records.length > 0, "the access log");
      assert.deepEqual(
        records.map(({ status }) => status),
        [200],
      );
    });
  }

  it("a client that resets in the middle of its request leaves no trace but a log line", async (t) => {
    const gateway = await startGateway(t, demo());
    const socket = net.connect(Number(new URL(gateway.url).port), "127.0.0.1");
    socket.write(
      "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer sk-demo\r\nX-Request-Id: gone-1\r\nContent-Length: 100\r\n\r\n{",
    );
    await within(new Promise((resolve) => socket.once("connect", resolve)), "the connection");
    await waitFor(
      () => socket.bytesWritten > 0 && socket.writableLength === 0,
      "the bytes to leave",
    );
    // The gateway has the head when it answers another request on a connection made after it.
    assert.equal((await fetch(`${gateway.url}/healthz`)).status, 200);
    socket.resetAndDestroy();
    assert.equal((await gateway.accessOf("gone-1"))["status"], 499);
  });
});

describe("connections that carry more than one request", () => {
  const post = (body: string, more = "") =>
    `POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${KEY}\r\nContent-Type: application/json\r\n${more}Content-Length: ${body.length}\r\n\r\n${body}`;
  const ask = (model: string, id: string) =>
    post(JSON.stringify({ model, stream: true, messages: user("hi") }), `X-Request-Id: ${id}\r\n`);

  it("a client that leaves leaves all of its pipelined requests: each is aborted and logged, once", async (t) => {
    const provider = await startProvider(t, { m: stream([chunk({ content: "Once" })], "open") });
    const gateway = await startGateway(t, configFor(provider.url, ["m"]));
    const socket = net.connect(Number(new URL(gateway.url).port), "127.0.0.1");
    const ids = Array.from({ length: 12 }, (_, index) => `pipe-${index}`);
    socket.write(ids.map((id) => ask("m", id)).join(""));
    await provider.nth(ids.length - 1);
    socket.destroy();
    await waitFor(
      () => provider.asked.every((asked) => asked.closed()),
      "all of the provider's connections to close",
    );
    for (const id of ids) assert.equal((await gateway.accessOf(id))["status"], 499);
    assert.equal(gateway.access.length, ids.length);
  });

  it("a client that leaves before its pipelined answers could be given leaves no timer behind", async (t) => {
    const provider = await startProvider(t, {
      m: stream([chunk({ content: "Once" })], "open"),
      whole: speak("Ready."),
    });
    const gateway = await startGateway(t, configFor(provider.url, ["m", "whole"]));
    // The provider's pooled connections and this test's own waits come and go; what must not stay are the requests' deadlines.
    const timers = () =>
      process.getActiveResourcesInfo().filter((resource) => resource === "Timeout").length;
    const before = timers();
    const socket = net.connect(Number(new URL(gateway.url).port), "127.0.0.1");
    const answered = (index: number) =>
      post(
        JSON.stringify({ model: "whole", messages: user("hi") }),
        `X-Request-Id: queued-${index}\r\n`,
      );
    socket.write(
      ask("m", "head") + Array.from({ length: 5 }, (_, index) => answered(index)).join(""),
    );
    await provider.nth(5);
    await waitFor(
      () => provider.asked.slice(1).every(({ res }) => res.writableFinished),
      "the queued answers to be ready",
    );
    socket.destroy();
    for (let index = 0; index < 5; index += 1)
      assert.equal((await gateway.accessOf(`queued-${index}`))["status"], 499);
    await waitFor(() => timers() <= before, "the timers to be gone");
  });

  const nonsense: [name: string, bytes: string][] = [
    [
      "a body in bad chunks",
      `POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${KEY}\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n`,
    ],
    ["no HTTP", "nonsense\r\n\r\n"],
    ["CONNECT", "CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n"],
  ];
  for (const [name, bytes] of nonsense) {
    it(`${name} behind a stream that is running does not get into it`, async (t) => {
      const { behaviour, finish } = held();
      const provider = await startProvider(t, { m: behaviour });
      const gateway = await startGateway(t, configFor(provider.url, ["m"]));
      const socket = net.connect(Number(new URL(gateway.url).port), "127.0.0.1");
      let text = "";
      socket.on("data", (data: Buffer) => (text += data.toString()));
      const closed = new Promise((resolve) => socket.on("close", resolve));
      socket.write(ask("m", "running"));
      await waitFor(() => text.includes("Fi"), "the first event");
      socket.write(bytes);
      // The gateway has read it when it has answered somebody who asked later.
      await (await fetch(`${gateway.url}/healthz`)).text();
      finish();
      await within(closed, "the connection to end after the stream");
      assert.equal(text.match(/HTTP\/1\.1 /g)?.length, 1, text);
      assert.ok(text.includes("data: [DONE]"), text);
      assert.equal((await gateway.accessOf("running"))["status"], 200);
    });
  }

  it("CONNECT by a client that resets at once, many times: nothing but the connection ends", async (t) => {
    const gateway = await startGateway(t, demo());
    for (let i = 0; i < 100; i += 1) {
      const socket = net.connect(Number(new URL(gateway.url).port), "127.0.0.1");
      socket.on("error", () => undefined);
      await within(new Promise((resolve) => socket.once("connect", resolve)), "the connection");
      const closed = new Promise((resolve) => socket.once("close", resolve));
      socket.write(
        `${"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n".repeat(i)}CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n`,
        () => socket.resetAndDestroy(),
      );
      await within(closed, "the reset");
    }
    assert.equal((await fetch(`${gateway.url}/healthz`)).status, 200);
  });

  it("what follows a request that was refused before its body came gets no second answer", async (t) => {
    const gateway = await startGateway(t, demo({ server: { receive_ms: 300 } }));
    const head = "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer wrong\r\n";
    for (const [first, then] of [
      [`${head}Transfer-Encoding: chunked\r\n\r\n`, "ZZ\r\n"],
      [`${head}Content-Length: 100\r\n\r\n{`, ""],
    ]) {
      const socket = net.connect(Number(new URL(gateway.url).port), "127.0.0.1");
      let text = "";
      socket.on("data", (data: Buffer) => (text += data.toString()));
      const closed = new Promise((resolve) => socket.on("close", resolve));
      socket.write(first!);
      await waitFor(() => text.includes("invalid_api_key"), "the refusal");
      if (then) socket.write(then);
      await within(closed, "the connection to close", 10_000);
      assert.equal(text.match(/HTTP\/1\.1 /g)?.length, 1, text);
    }
    assert.deepEqual(
      gateway.access.map((line) => line["status"]),
      [401, 401],
    );
  });

  it("a 413 is in the log as one, although the client hangs up on it", async (t) => {
    const gateway = await startGateway(t, demo({ server: { max_body_bytes: 10 } }));
    const socket = net.connect(Number(new URL(gateway.url).port), "127.0.0.1");
    let text = "";
    socket.on("data", (data: Buffer) => (text += data.toString()));
    socket.write(
      "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer sk-demo\r\nX-Request-Id: large\r\nContent-Length: 100\r\n\r\n{",
    );
    await waitFor(() => text.includes("request_too_large"), "the refusal");
    socket.destroy();
    assert.equal((await gateway.accessOf("large"))["status"], 413);
  });

  it("three thousand small headers: none is lost", async (t) => {
    const gateway = await startGateway(t, demo());
    const answer = await rawRequest(
      gateway.url,
      `GET /healthz HTTP/1.1\r\nHost: x\r\n${"a:\r\n".repeat(3_000)}X-Request-Id: last\r\n${close}\r\n`,
    );
    assert.deepEqual([answer.status, answer.headers["x-request-id"]], [200, "last"]);
  });

  it("100 Continue is not said to HTTP/1.0", async (t) => {
    const gateway = await startGateway(t, demo());
    const body = JSON.stringify({ model: "demo-chat", messages: user("hi") });
    const answer = await rawRequest(
      gateway.url,
      `POST /v1/chat/completions HTTP/1.0\r\nAuthorization: Bearer sk-demo\r\nExpect: 100-continue\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
    assert.equal(answer.status, 200, answer.text.slice(0, 200));
  });

  it("at shutdown a request whose body is still coming is told so", async (t) => {
    const gateway = await startGateway(t, demo());
    const socket = net.connect(Number(new URL(gateway.url).port), "127.0.0.1");
    let text = "";
    socket.on("data", (data: Buffer) => (text += data.toString()));
    socket.write(
      "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer sk-demo\r\nX-Request-Id: half\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{",
    );
    await waitFor(() => socket.bytesWritten > 0, "the bytes to leave");
    await (await fetch(`${gateway.url}/healthz`)).text();
    await within(gateway.gateway.close(0), "the gateway to close");
    await waitFor(() => text.includes("server_overloaded"), "the refusal");
    assert.equal((await gateway.accessOf("half"))["status"], 503);
  });
});

describe("routes", () => {
  it("healthz: 200 without a key, GET and HEAD", async (t) => {
    const gateway = await startGateway(t, demo());
    const response = await fetch(`${gateway.url}/healthz?probe=1`);
    assert.equal(response.status, 200);
    assert.deepEqual(await json(response), { status: "ok" });
    assert.equal(response.headers.get("cache-control"), "no-store");
    assert.match(response.headers.get("x-request-id")!, GENERATED);
    const head = await fetch(`${gateway.url}/healthz`, { method: "HEAD" });
    assert.equal(head.status, 200);
    assert.equal(await head.text(), "");
  });

  it("unknown path 404, wrong method 405 with Allow", async (t) => {
    const gateway = await startGateway(t, demo());
    for (const path of [
      "/",
      "/v1",
      "/v1/chat/completions/",
      "/constructor",
      "/__proto__",
      "//healthz",
    ]) {
      const response = await fetch(gateway.url + path, { method: "POST" });
      assert.equal(response.status, 404, path);
      assert.equal((await json(response)).error.code, "unknown_url");
    }
    const wrong = await fetch(`${gateway.url}/v1/chat/completions`);
    assert.equal(wrong.status, 405);
    assert.equal(wrong.headers.get("allow"), "POST");
    assert.equal((await json(wrong)).error.code, "method_not_allowed");
    const health = await fetch(`${gateway.url}/healthz`, { method: "DELETE" });
    assert.equal(health.status, 405);
    assert.equal(health.headers.get("allow"), "GET, HEAD");
  });

  it("takes the absolute form of a proxy", async (t) => {
    const gateway = await startGateway(t, demo());
    const answer = await rawRequest(
      gateway.url,
      `GET http://gateway.test/healthz?x=1 HTTP/1.1\r\nHost: gateway.test\r\n${close}\r\n`,
    );
    assert.equal(answer.status, 200);
  });

  it("an HTTP/1.0 client needs no Host", async (t) => {
    const gateway = await startGateway(t, demo());
    assert.equal((await rawRequest(gateway.url, "GET /healthz HTTP/1.0\r\n\r\n")).status, 200);
  });

  it("models: the canonical names and enabled aliases that the key may use", async (t) => {
    const config = demo({
      aliases: { "team/off": { models: ["demo-chat"], enabled: false } },
      keys: [
        { account: "demo", key: "sk-demo" },
        { account: "demo", key: "sk-narrow", models: ["auto/chat", "demo-reasoner"] },
      ],
    });
    const gateway = await startGateway(t, config);
    const list = async (key: string) => {
      const response = await fetch(`${gateway.url}/v1/models`, {
        headers: { authorization: `Bearer ${key}` },
      });
      assert.equal(response.status, 200);
      const body = await json(response);
      assert.equal(body.object, "list");
      for (const model of body.data)
        assert.deepEqual(Object.keys(model), [
          "id",
          "object",
          "created",
          "owned_by",
          "context_length",
          "max_output_tokens",
          "capabilities",
        ]);
      return body.data.map((model: { id: string }) => model.id);
    };
    assert.deepEqual(await list("sk-demo"), [
      "demo-chat",
      "demo-reasoner",
      "auto/reasoning",
      "auto/chat",
    ]);
    assert.deepEqual(await list("sk-narrow"), ["demo-reasoner", "auto/chat"]);
    assert.equal((await fetch(`${gateway.url}/v1/models`)).status, 401);
  });

  it("openapi.json: the document, with the schemas that are enforced", async (t) => {
    const gateway = await startGateway(t, demo());
    const response = await fetch(`${gateway.url}/openapi.json`);
    assert.equal(response.status, 200);
    const document = await json(response);
    assert.equal(document.openapi, "3.1.0");
    // What is published of replies is what the tests hold all replies against.
    assert.deepEqual(
      document.components.schemas.ChatCompletion,
      JSON.parse(JSON.stringify(completionShape.schema)),
    );
    assert.deepEqual(
      document.components.schemas.ChatCompletionChunk,
      JSON.parse(JSON.stringify(chunkShape.schema)),
    );
    const request = document.components.schemas.ChatCompletionRequest;
    assert.deepEqual(request.required, ["model", "messages"]);
    const { temperature, n, tools, tool_choice } = request.properties;
    assert.deepEqual([temperature.minimum, temperature.maximum], [0, 2]);
    assert.deepEqual(n, {
      anyOf: [{ type: "integer", maximum: 2 ** 53 - 1, const: 1 }, { type: "null" }],
    });
    for (const { properties } of [tools.items, tool_choice.anyOf[0].anyOf[1]])
      assert.deepEqual(properties.type, { type: "string", const: "function" });
    assert.deepEqual(request.dependentSchemas.stream_options.anyOf[1], {
      properties: { stream: { const: true } },
      required: ["stream"],
    });
    assert.deepEqual(request.dependentSchemas.tool_choice.anyOf[1], {
      properties: { tools: { type: "array", minItems: 1 } },
      required: ["tools"],
    });
    const assistant = request.properties.messages.items.anyOf.find(
      ({ properties }: any) => properties.role.enum[0] === "assistant",
    );
    assert.deepEqual(
      assistant.anyOf.flatMap(({ required }: any) => required),
      ["content", "refusal", "tool_calls"],
    );
    const refs = JSON.stringify(document).match(/#\/components\/schemas\/\w+/g) ?? [];
    assert.ok(refs.length > 5);
    for (const ref of refs) assert.ok(document.components.schemas[ref.split("/").at(-1)!], ref);
  });
});

describe("keys", () => {
  const cases: [name: string, authorization: string | undefined, status: number, code: string][] = [
    ["none", undefined, 401, "missing_api_key"],
    ["another scheme", "Basic c2stZGVtbw==", 401, "missing_api_key"],
    ["an empty key", "Bearer ", 401, "missing_api_key"],
    ["an unknown key", "Bearer sk-demo2", 401, "invalid_api_key"],
    ["a key in other letters", "Bearer SK-DEMO", 401, "invalid_api_key"],
    ["bytes beyond ASCII", "Bearer sk-d\u00e9mo", 401, "invalid_api_key"],
  ];
  for (const [name, authorization, status, code] of cases) {
    it(`${name}: ${status} ${code}`, async (t) => {
      const gateway = await startGateway(t, demo());
      const line = authorization === undefined ? "" : `Authorization: ${authorization}\r\n`;
      const answer = await rawRequest(
        gateway.url,
        Buffer.from(
          `POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n${line}${close}Content-Length: 2\r\n\r\n{}`,
          "latin1",
        ),
      );
      assertError(answer, status, code);
      assert.match(answer.headers["www-authenticate"]!, /^Bearer/);
    });
  }

  it("the scheme's case does not matter, and a sha256 in the configuration is as good as the key", async (t) => {
    const digest = "5e5b9ad3dd0e0a0ae4b3e1a5ba66bb7bbcd4a1e0dd5e6f25bfdd8f9a2c2b4a01";
    const { createHash } = await import("node:crypto");
    const real = createHash("sha256").update("sk-by-digest").digest("hex");
    const gateway = await startGateway(
      t,
      demo({
        keys: [
          { account: "a", sha256: real },
          { account: "b", sha256: digest },
        ],
      }),
    );
    const ask = (authorization: string) =>
      gateway
        .chat({ model: "demo-chat", messages: user("hi") }, { authorization })
        .then((response) => response.status);
    assert.equal(await ask("bEaReR sk-by-digest"), 200);
    assert.equal(await ask(`Bearer ${digest}`), 401);
  });

  it("a model that the key may not use: 403, whether it exists for others or not by alias", async (t) => {
    const gateway = await startGateway(
      t,
      demo({ keys: [{ account: "a", key: KEY, models: ["auto/chat"] }] }),
    );
    const refused = await gateway.chat({ model: "demo-chat", messages: user("hi") });
    assert.equal(refused.status, 403);
    const { error } = await json(refused);
    assert.deepEqual(
      [error.type, error.code, error.param],
      ["permission_error", "model_not_allowed", "model"],
    );
    const allowed = await gateway.chat({ model: "auto/chat", messages: user("hi") });
    assert.equal(allowed.status, 200);
    assert.equal((await json(allowed)).model, "demo-chat");
    assert.equal((await gateway.chat({ model: "nowhere", messages: user("hi") })).status, 404);
  });

  it("no key, whole or in part, in any log or body", async (t) => {
    const provider = await startProvider(t, { m: silent });
    const config = configFor(provider.url, ["m"], { timeouts: { first_token_ms: 50 } });
    const gateway = await startGateway(t, config);
    const bodies: string[] = [];
    for (const key of [KEY, "sk-canary-unknown-key"]) {
      for (const body of [{ model: "m", messages: user("hi") }, { model: 1 }, "{"]) {
        const response = await gateway.chat(body, { authorization: `Bearer ${key}` });
        bodies.push(await response.text(), JSON.stringify([...response.headers]));
      }
    }
    await waitFor(() => gateway.access.length === 6, "six access log lines");
    const everything =
      bodies.join() + JSON.stringify(gateway.access) + JSON.stringify(gateway.diagnostics);
    assert.match(everything, /upstream_timeout/);
    for (const secret of [KEY, "sk-canary", "sk-provider", "provider-secret", "lab/", provider.url])
      assert.ok(!everything.includes(secret), secret);
  });
});

describe("request ids", () => {
  const kept = ["x", "a b c", `req_${"f".repeat(32)}`, "~".repeat(512), '"quoted" <tag> \\ %0d%0a'];
  const replaced = ["", "y".repeat(513), "caf\u00e9", "tab\there"];

  it("a usable one is used and echoed as it came; others are replaced", async (t) => {
    const gateway = await startGateway(t, demo());
    for (const id of kept) {
      const answer = await rawRequest(
        gateway.url,
        `GET /nowhere HTTP/1.1\r\nHost: x\r\nX-Request-Id: ${id}\r\n${close}\r\n`,
      );
      assertError(answer, 404, "unknown_url");
      assert.equal(answer.headers["x-request-id"], id);
      assert.equal((await gateway.accessOf(id))["path"], "/nowhere");
    }
    for (const id of replaced) {
      const answer = await rawRequest(
        gateway.url,
        Buffer.from(
          `GET /healthz HTTP/1.1\r\nHost: x\r\nx-request-id: ${id}\r\n${close}\r\n`,
          "latin1",
        ),
      );
      assert.equal(answer.status, 200);
      assert.match(answer.headers["x-request-id"]!, GENERATED);
    }
  });

  it("of several the first counts; generated ones differ", async (t) => {
    const gateway = await startGateway(t, demo());
    const answer = await rawRequest(
      gateway.url,
      `GET /healthz HTTP/1.1\r\nHost: x\r\nX-Request-Id: one\r\nX-REQUEST-ID: two\r\n${close}\r\n`,
    );
    assert.equal(answer.headers["x-request-id"], "one");
    const ids = new Set<string>();
    for (let i = 0; i < 20; i += 1)
      ids.add((await fetch(`${gateway.url}/healthz`)).headers.get("x-request-id")!);
    assert.equal(ids.size, 20);
  });
});

describe("access log", () => {
  it("one line a response, with the fields of its contract", async (t) => {
    const gateway = await startGateway(t, demo());
    const response = await gateway.chat(
      { model: "auto/chat", messages: user("hi") },
      { authorization: "Bearer sk-demo", "x-request-id": "line-1" },
    );
    assert.equal(response.status, 200);
    await response.text();
    const record = await gateway.accessOf("line-1");
    assert.deepEqual(Object.keys(record), [
      "time",
      "request_id",
      "method",
      "path",
      "status",
      "duration_ms",
      "account",
      "key_id",
      "model",
      "model_requested",
      "provider",
      "prompt_tokens",
      "completion_tokens",
      "cost",
      "currency",
    ]);
    assert.deepEqual(
      [record["method"], record["path"], record["status"], record["account"], record["model"]],
      ["POST", "/v1/chat/completions", 200, "demo", "demo-chat"],
    );
    assert.match(String(record["key_id"]), /^key_[0-9a-f]{16}$/);
    assert.ok(Number(record["duration_ms"]) > 0);
    assert.ok(!Number.isNaN(Date.parse(String(record["time"]))));
    assert.equal(gateway.access.length, 1);
  });
});

describe("connections", () => {
  it("both lengths, in whatever order and spelling: 400, the end of the connection, and nothing of the body is taken for a request", async (t) => {
    const gateway = await startGateway(t, demo());
    const smuggled = "GET /smuggled HTTP/1.1\r\nHost: x\r\nX-Request-Id: smuggled\r\n\r\n";
    const rest = `0\r\n\r\n${smuggled}`;
    const lengths = [
      `Content-Length: ${rest.length}\r\nTransfer-Encoding: chunked\r\n`,
      `Transfer-Encoding: chunked\r\nContent-Length: ${rest.length}\r\n`,
      `transfer-encoding: Chunked\r\ncontent-length: 0\r\n`,
      `Transfer-Encoding: gzip, chunked\r\nContent-Length: 5\r\n`,
      `Content-Length: 5\r\nA: b\r\nTransfer-Encoding:\tchunked\r\n`,
      "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\nContent-Length: 5\r\n",
      "Transfer-Encoding: chunked, identity\r\n",
    ];
    for (const [index, given] of lengths.entries()) {
      const id = `lengths-${index}`;
      const answer = await rawRequest(
        gateway.url,
        `POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nX-Request-Id: ${id}\r\nAuthorization: Bearer sk-demo\r\n${given}\r\n${rest}`,
      );
      assertError(answer, 400, "malformed_request");
      assert.equal(answer.headers["connection"], "close");
      assert.equal(answer.text.match(/HTTP\/1\.1/g)?.length, 1, answer.text);
    }
    assert.equal(
      (await fetch(`${gateway.url}/healthz`, { headers: { "x-request-id": "after" } })).status,
      200,
    );
    await gateway.accessOf("after");
    assert.deepEqual(
      gateway.access.map((line) => line["status"]),
      [...lengths.map(() => 400), 200],
    );
    assert.ok(
      gateway.access.every(
        (line) => line["path"] !== "/smuggled" && line["request_id"] !== "smuggled",
      ),
    );
  });

  it("a thousand idle ones leave a request answered, and end with the gateway", async (t) => {
    const gateway = await startGateway(t, demo());
    const { port } = new URL(gateway.url);
    let answered = 0;
    let closed = 0;
    const sockets = Array.from({ length: 1_000 }, () => {
      const socket = net.connect(Number(port), "127.0.0.1");
      t.after(() => socket.destroy());
      socket.on("error", () => undefined).on("close", () => (closed += 1));
      socket.once("data", () => (answered += 1));
      socket.write("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
      return socket;
    });
    await waitFor(() => answered === sockets.length, "a thousand answers", 30_000);
    assert.equal(closed, 0, "they are kept");
    const response = await gateway.chat(
      { model: "demo-chat", messages: user("hi") },
      { authorization: "Bearer sk-demo" },
    );
    assert.equal(response.status, 200);
    await response.text();
    assert.equal(gateway.gateway.report().inFlight, 0, "who is idle is not in flight");
    sockets[0]!.write("GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    await waitFor(() => closed === 1, "one of them to be served again");
    await within(gateway.gateway.close(0), "the gateway to close", 10_000);
    await waitFor(() => closed === sockets.length, "all of them to be closed");
  });

  it("requests follow each other on one connection, also after errors", async (t) => {
    const gateway = await startGateway(t, demo());
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
    t.after(() => agent.destroy());
    const ask = (path: string) =>
      new Promise<{ status: number; port: number }>((resolve, reject) => {
        const req = http.get(gateway.url + path, { agent }, (res) => {
          const port = res.socket.localPort!;
          res.resume();
          res.on("end", () => resolve({ status: res.statusCode!, port }));
        });
        req.on("error", reject);
      });
    const answers = [
      await ask("/healthz"),
      await ask("/nowhere"),
      await ask("/v1/models"),
      await ask("/healthz"),
    ];
    assert.deepEqual(
      answers.map((answer) => answer.status),
      [200, 404, 401, 200],
    );
    assert.equal(new Set(answers.map((answer) => answer.port)).size, 1);
  });

  it("pipelined requests are answered in their order", async (t) => {
    const gateway = await startGateway(t, demo());
    const one = (id: string, last = false) =>
      `GET /healthz HTTP/1.1\r\nHost: x\r\nX-Request-Id: ${id}\r\n${last ? close : ""}\r\n`;
    const { text } = await rawRequest(gateway.url, one("p1") + one("p2") + one("p3", true));
    const ids = text
      .split("HTTP/1.1 200")
      .slice(1)
      .map((part) => parseAnswer(`HTTP/1.1 200${part}`).headers["x-request-id"]);
    assert.deepEqual(ids, ["p1", "p2", "p3"]);
  });

  it("a body is asked for (100-continue) only from a client whose key is good", async (t) => {
    const gateway = await startGateway(t, demo());
    const body = JSON.stringify({ model: "demo-chat", messages: user("hi") });
    const ask = (key: string) =>
      new Promise<{ status: number; continued: boolean }>((resolve, reject) => {
        let continued = false;
        const req = http.request(`${gateway.url}/v1/chat/completions`, {
          method: "POST",
          headers: {
            expect: "100-continue",
            "content-type": "application/json",
            "content-length": body.length,
            authorization: `Bearer ${key}`,
          },
        });
        req.flushHeaders();
        req.on("continue", () => {
          continued = true;
          req.end(body);
        });
        req.on("response", (res) => {
          res.resume();
          res.on("end", () => {
            req.destroy();
            resolve({ status: res.statusCode!, continued });
          });
        });
        req.on("error", reject);
      });
    assert.deepEqual(await within(ask("sk-demo"), "the answer after 100-continue"), {
      status: 200,
      continued: true,
    });
    assert.deepEqual(await within(ask("sk-other"), "the refusal"), {
      status: 401,
      continued: false,
    });
  });
});
