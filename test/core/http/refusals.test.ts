// What Node would answer by itself, or not at all: each answer has X-Request-Id and the error body
// of the contract.

import assert from "node:assert/strict";
import { once } from "node:events";
import http from "node:http";
import net from "node:net";
import { describe, it } from "node:test";
import { systemClock } from "../../../src/core/clock.ts";
import { renderError, shuttingDown } from "../../../src/core/error-responses.ts";
import type { Connection } from "../../../src/core/http/connection.ts";
import type { Exchange } from "../../../src/core/http/exchange.ts";
import { createServer } from "../../../src/core/http/server.ts";
import { configFor, demo, KEY, startGateway, user } from "../../support/gateway.ts";
import { speak, startProvider } from "../../support/provider.ts";
import { assertError, rawRequest } from "../../support/raw.ts";
import { waitFor, within } from "../../support/wait.ts";

const GENERATED = /^req_[0-9a-f]{32}$/;

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
    ["two hosts", "GET /healthz HTTP/1.1\r\nHost: x\r\nhost: y\r\n\r\n", 400, "malformed_request"],
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
      "more headers than anybody needs",
      `GET /healthz HTTP/1.1\r\nHost: x\r\n${"a:b\r\n".repeat(200)}\r\n`,
      431,
      "headers_too_large",
    ],
    [
      "another transfer coding",
      "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
      400,
      "malformed_request",
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

  it("an idle connection keeps nothing of the request that was answered", async (t) => {
    const connections: Connection[] = [];
    const server = createServer(
      {
        "/": {
          GET({ res }) {
            res.end("ok");
          },
        },
      },
      {
        ...{ host: "127.0.0.1", port: 0, receiveMs: 60_000 },
        boundPipeline(connection) {
          connections.push(connection);
          return { advance: () => undefined, stop: () => undefined };
        },
      },
      { clock: systemClock, renderError, access: () => undefined, failed: () => undefined },
    );
    const agent = new http.Agent({ keepAlive: true });
    const url = await server.listen();
    t.after(() => server.close(0, shuttingDown()));
    t.after(() => agent.destroy());
    const [response] = await within(once(http.get(url, { agent }), "response"), "the answer");
    await within(once(response.resume(), "end"), "the end");
    await waitFor(() => connections[0]?.live.size === 0, "the exchange to be over");
    assert.deepEqual(connections[0]?.latest, { req: { complete: true, headers: {} } });
  });

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
