// Connections and their exchanges: the order in which they end, who is notified, and what the
// access log says.

import assert from "node:assert/strict";
import http from "node:http";
import { describe, it } from "node:test";
import type { Exchange, Handler } from "../../../src/core/http/exchange.ts";
import { sendJson } from "../../../src/core/http/responses.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { demo, KEY, startWith, startGateway, user } from "../../support/gateway.ts";
import { chunk, held, speak, stream } from "../../support/provider.ts";
import { assertError, rawRequest } from "../../support/raw.ts";
import { waitFor, within } from "../../support/wait.ts";
import { bytesOf, chatBytes, connect, serve } from "./wire.ts";

const HEALTH = bytesOf("GET /healthz");
const CONNECT = "CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n";
const AT_ONCE = { timeouts: { leave_ms: 0 } };

describe("connections that carry more than one request", () => {
  const begun = stream([chunk({ content: "Once" })], "open");
  const ask = (model: string, id: string, stream = true) =>
    chatBytes(KEY, JSON.stringify({ model, stream, messages: user("hi") }), [
      `X-Request-Id: ${id}`,
    ]);

  it("a client that leaves aborts all its pipelined requests, and each is logged once", async (t) => {
    const { provider, ...gateway } = await startWith(t, { m: begun }, AT_ONCE);
    const ids = Array.from({ length: 12 }, (_, index) => `pipe-${index}`);
    const { socket } = connect(t, gateway.url, ids.map((id) => ask("m", id)).join(""));
    await provider.nth(ids.length - 1);
    socket.destroy();
    await waitFor(
      () => provider.asked.every((asked) => asked.closed()),
      "all of the provider's connections to close",
    );
    for (const id of ids) assert.equal((await gateway.accessOf(id))["status"], 499);
    assert.equal(gateway.access.length, ids.length);
  });

  it("a client that leaves before its pipelined responses are sent leaves no timers behind", async (t) => {
    const behaviours = { m: begun, whole: speak("Ready.") };
    const { provider, ...gateway } = await startWith(t, behaviours, AT_ONCE);
    // Timers of the provider's pooled connections and of this test's own waits come and go. The
    // requests' deadlines must not remain.
    const timers = () =>
      process.getActiveResourcesInfo().filter((resource) => resource === "Timeout").length;
    const before = timers();
    const queued = Array.from({ length: 5 }, (_, index) => `queued-${index}`);
    const answers = queued.map((id) => ask("whole", id, false)).join("");
    const { socket } = connect(t, gateway.url, ask("m", "head") + answers);
    await provider.nth(5);
    await waitFor(
      () => provider.asked.slice(1).every(({ res }) => res.writableFinished),
      "the queued answers to be ready",
    );
    socket.destroy();
    for (const id of queued) assert.equal((await gateway.accessOf(id))["status"], 499);
    await waitFor(() => timers() <= before, "the timers to be gone");
  });

  it("a deadline set after the client has left starts no timer that retains the request", async (t) => {
    const clock = createFakeClock();
    const exchanges: Exchange[] = [];
    const wait: Handler = (exchange) => {
      exchanges.push(exchange);
    };
    const { url } = await serve(t, { "/wait": { GET: wait } }, {}, clock);
    const { socket } = connect(t, url, bytesOf("GET /wait"));
    await waitFor(() => exchanges.length === 1, "the request");
    socket.destroy();
    await waitFor(() => exchanges[0]!.cancel.aborted, "the client's leaving to be noticed");
    exchanges[0]!.expire(900_000, () => new Error("too late"));
    assert.equal(clock.pending(), 0);
  });

  it("a client that does not read the end of an aborted response is cut off after a second", async (t) => {
    const clock = createFakeClock();
    const exchanges: Exchange[] = [];
    const handler: Handler = (exchange) => {
      exchange.res.write("x".repeat(32 * 1024 * 1024));
      exchanges.push(exchange);
    };
    const { url } = await serve(t, { "/large": { GET: handler } }, {}, clock);
    const { socket } = connect(t, url, bytesOf("GET /large"));
    socket.pause();
    await waitFor(() => exchanges.length === 1, "the request");
    const [{ res, abort }] = exchanges as [Exchange];
    abort(new Error("over"));
    clock.advance(999);
    assert.equal(res.destroyed, false);
    clock.advance(1);
    assert.equal(res.destroyed, true);
  });

  it("Node's server closes idle connections late, and slow requests early", async (t) => {
    const given: http.ServerOptions[] = [];
    const create = (options: http.ServerOptions) => {
      given.push(options);
      return http.createServer(options);
    };
    for (const receive_ms of [60_000, 600_000, 300])
      await serve(t, {}, { receive_ms, secure: { create } });
    const times = given.map((options) => [
      options.keepAliveTimeout,
      options.headersTimeout,
      options.requestTimeout,
      options.connectionsCheckingInterval,
    ]);
    assert.deepEqual(times, [
      [75_000, 60_000, 60_000, 5_000],
      [75_000, 60_000, 600_000, 5_000],
      [75_000, 300, 300, 150],
    ]);
  });

  it("all requests in progress are answered at shutdown, not only the first", async (t) => {
    const { behaviour, finish } = held();
    const behaviours = { m: behaviour, whole: speak("Ready.") };
    const { provider, ...gateway } = await startWith(t, behaviours);
    const requests = ask("m", "first", false) + ask("whole", "second", false);
    const { text, responses, closed } = connect(t, gateway.url, requests);
    await provider.nth(1);
    const stopped = gateway.gateway.close(60_000);
    finish();
    await within(closed, "the connection to close");
    await within(stopped, "the gateway to close");
    assert.equal(responses(), 2, text());
    for (const id of ["first", "second"]) assert.equal((await gateway.accessOf(id))["status"], 200);
  });

  it("a response that its client has not read completely is not cut at shutdown", async (t) => {
    const body = "x".repeat(32 * 1024 * 1024);
    let answered = false;
    const handler: Handler = ({ res }) => {
      sendJson(res, 200, body);
      answered = true;
    };
    const { url, close } = await serve(t, { "/large": { GET: handler } });
    const { socket, text, closed } = connect(t, url, bytesOf("GET /large"));
    socket.pause();
    await waitFor(() => answered, "the response to be ready");
    const stopped = close(60_000);
    socket.resume();
    await within(closed, "the connection to close");
    await within(stopped, "the server to close");
    assert.ok(text().endsWith(body), `${text().length} characters`);
  });

  it("at shutdown an idle connection closes at once, one that is receiving a request does not", async (t) => {
    let finish: (() => void) | undefined;
    const done: Handler = ({ res }) => sendJson(res, 200, {});
    const wait: Handler = ({ res }) => {
      finish = () => sendJson(res, 200, {});
    };
    const routes = { "/wait": { GET: wait }, "/done": { GET: done, POST: done } };
    const { url, close } = await serve(t, routes);
    connect(t, url, bytesOf("GET /wait"));
    const idle = connect(t, url, bytesOf("GET /done"));
    const arriving = connect(t, url, bytesOf("POST /done", ["Content-Length: 4"], "ab"));
    await waitFor(
      () => finish && idle.responses() === 1 && arriving.responses() === 1,
      "two responses, and a request without one",
    );
    const stopped = close(60_000);
    await within(idle.closed, "the idle connection to close");
    arriving.socket.write(`cd${bytesOf("GET /done")}`);
    await waitFor(() => arriving.responses() === 2, "the answer to the next request");
    finish!();
    await within(stopped, "the server to close");
  });

  for (const [name, bytes] of [
    ["a body in bad chunks", chatBytes(KEY, "ZZ\r\n", ["Transfer-Encoding: chunked"])],
    ["no HTTP", "nonsense\r\n\r\n"],
    ["CONNECT", CONNECT],
  ] as const) {
    it(`${name} after a running stream is not mixed into the stream`, async (t) => {
      const { behaviour, finish } = held();
      const gateway = await startWith(t, { m: behaviour });
      const { socket, text, responses, closed } = connect(t, gateway.url, ask("m", "running"));
      await waitFor(() => text().includes("Fi"), "the first event");
      socket.write(bytes);
      // Once it has answered a later request, the gateway has read the bytes.
      await (await fetch(`${gateway.url}/healthz`)).text();
      finish();
      await within(closed, "the connection to end after the stream");
      assert.equal(responses(), 1, text());
      assert.ok(text().includes("data: [DONE]"), text());
      assert.equal((await gateway.accessOf("running"))["status"], 200);
    });
  }

  it("CONNECT by clients that reset at once, many times, ends only their connections", async (t) => {
    const gateway = await startGateway(t, demo());
    for (let i = 0; i < 50; i += 1) {
      const { socket, closed } = connect(t, gateway.url, "");
      await within(new Promise((resolve) => socket.once("connect", resolve)), "the connection");
      socket.write(HEALTH.repeat(2 * i) + CONNECT, () => socket.resetAndDestroy());
      await within(closed, "the reset");
    }
    assert.equal((await fetch(`${gateway.url}/healthz`)).status, 200);
  });

  it("data after a request that was rejected before its body gets no second response", async (t) => {
    const gateway = await startGateway(t, demo({ server: { receive_ms: 300 } }));
    for (const [first, then] of [
      [chatBytes("wrong", "", ["Transfer-Encoding: chunked"]), "ZZ\r\n"],
      [chatBytes("wrong", "{", ["Content-Length: 100"]), ""],
    ] as const) {
      const { socket, text, responses, closed } = connect(t, gateway.url, first);
      await waitFor(() => text().includes("invalid_api_key"), "the refusal");
      if (then) socket.write(then);
      await within(closed, "the connection to close", 10_000);
      assert.equal(responses(), 1, text());
    }
    assert.deepEqual(
      gateway.access.map((line) => line["status"]),
      [401, 401],
    );
  });
});

describe("a request whose body is still arriving", () => {
  const half = (id: string) =>
    chatBytes("sk-demo", "{", [`X-Request-Id: ${id}`, "Content-Length: 100"]);

  it("is logged as 413, even if its client hangs up on the response", async (t) => {
    const gateway = await startGateway(t, demo({ server: { max_body_bytes: 10 } }));
    const { socket, text } = connect(t, gateway.url, half("large"));
    await waitFor(() => text().includes("request_too_large"), "the refusal");
    socket.destroy();
    assert.equal((await gateway.accessOf("large"))["status"], 413);
  });

  it("gets the whole error response before the connection closes, even if the client keeps sending", async (t) => {
    const gateway = await startGateway(t, demo());
    for (const [id, more] of [
      ["closing", "Connection: close"],
      ["expecting", "Expect: 100-continue"],
      ["many", Array.from({ length: 205 }, (_, at) => `x-${at}: 1`).join("\r\n")],
    ] as const) {
      const lines = [`X-Request-Id: ${id}`, "Content-Length: 4000000", more];
      const { socket, text, closed } = connect(t, gateway.url, chatBytes("wrong", "{", lines));
      const errors: Error[] = [];
      socket.on("error", (error) => errors.push(error));
      await waitFor(() => text().endsWith("}"), "the refusal");
      socket.write(" ".repeat(3_999_999));
      await within(closed, "the connection to close");
      assert.deepEqual(errors, []);
      assert.match(text(), /^HTTP\/1\.1 4(01|31) /);
      assert.notEqual((await gateway.accessOf(id))["status"], 499);
    }
  });

  it("gets 503 at shutdown", async (t) => {
    const gateway = await startGateway(t, demo());
    const { socket, text } = connect(t, gateway.url, half("half"));
    await waitFor(() => socket.bytesWritten > 0, "the bytes to leave");
    await (await fetch(`${gateway.url}/healthz`)).text();
    await within(gateway.gateway.close(0), "the gateway to close");
    await waitFor(() => text().includes("server_overloaded"), "the refusal");
    assert.equal((await gateway.accessOf("half"))["status"], 503);
  });

  it("gets 100 Continue only if its key is valid", async (t) => {
    const gateway = await startGateway(t, demo());
    const body = JSON.stringify({ model: "demo-chat", messages: user("hi") });
    const fields = ["Expect: 100-continue", `Content-Length: ${body.length}`, "Connection: close"];
    const good = connect(t, gateway.url, chatBytes("sk-demo", "", fields));
    await waitFor(() => good.text().startsWith("HTTP/1.1 100 Continue\r\n\r\n"), "the permission");
    good.socket.write(body);
    await within(good.closed, "the answer");
    assert.match(good.text(), /^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 /);
    const other = connect(t, gateway.url, chatBytes("sk-other", "", fields));
    await within(other.closed, "the refusal");
    assert.match(other.text(), /^HTTP\/1\.1 401 /);
  });
});

it("both lengths, in any order and spelling: 400 and a closed connection, with no body read as a request", async (t) => {
  const gateway = await startGateway(t, demo());
  const rest = `0\r\n\r\n${bytesOf("GET /smuggled", ["X-Request-Id: smuggled"])}`;
  const lengths = [
    [`Content-Length: ${rest.length}`, "Transfer-Encoding: chunked"],
    ["Transfer-Encoding: chunked", `Content-Length: ${rest.length}`],
    ["transfer-encoding: Chunked", "content-length: 0"],
    ["Transfer-Encoding: gzip, chunked", "Content-Length: 5"],
    ["Content-Length: 5", "A: b", "Transfer-Encoding:\tchunked"],
    ["Transfer-Encoding: chunked", "Transfer-Encoding: identity", "Content-Length: 5"],
    ["Transfer-Encoding: chunked, identity"],
  ];
  for (const fields of lengths) {
    const answer = await rawRequest(gateway.url, chatBytes("sk-demo", rest, fields));
    assertError(answer, 400, "malformed_request");
    assert.equal(answer.headers["connection"], "close");
    assert.equal(answer.text.match(/HTTP\/1\.1/g)?.length, 1, answer.text);
  }
  const after = { "x-request-id": "after" };
  assert.equal((await fetch(`${gateway.url}/healthz`, { headers: after })).status, 200);
  await gateway.accessOf("after");
  assert.deepEqual(
    gateway.access.map(({ status, path }) => [status, path]),
    [...lengths.map(() => [400, null]), [200, "/healthz"]],
  );
});
