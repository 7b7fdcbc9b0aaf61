// Requests that Node would answer by itself or not at all: each gets X-Request-Id and the
// contract's error body.

import assert from "node:assert/strict";
import { once } from "node:events";
import http from "node:http";
import { before, describe, it } from "node:test";
import type { Connection } from "../../../src/core/http/connection.ts";
import type { Exchange } from "../../../src/core/http/exchange.ts";
import { sendJson } from "../../../src/core/http/responses.ts";
import {
  demo,
  KEY,
  startWith,
  startGateway,
  user,
  type RunningGateway,
} from "../../support/gateway.ts";
import { speak } from "../../support/provider.ts";
import { assertError, rawRequest } from "../../support/raw.ts";
import { suiteScope } from "../../support/scope.ts";
import { waitFor, within } from "../../support/wait.ts";
import { bytesOf, chatBytes, connect, serve } from "./wire.ts";

const OK = { "/": { GET: ({ res }: Exchange) => sendJson(res, 200, {}) } };
const IN_CHUNKS_1_0 =
  "HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
const GENERATED = /^req_[0-9a-f]{32}$/;

describe("answers that Node would give by itself", () => {
  const scope = suiteScope();
  let gateway: RunningGateway;
  before(async () => {
    gateway = await startGateway(scope, demo({ server: { receive_ms: 300 } }));
  });
  const malformed = [400, "malformed_request"] as const;
  const tooLarge = [431, "headers_too_large"] as const;
  const late = [408, "request_timeout"] as const;
  const unknown = [404, "unknown_url"] as const;
  const many = Array<string>(200).fill("a:b");
  const tea = ["Expect: tea", "Connection: close"];
  const upgrade = ["Connection: Upgrade, close", "Upgrade: websocket"];
  const CASES: [name: string, bytes: string, status: number, code: string][] = [
    ["a bad header line", bytesOf("GET /healthz", ["bad header"]), ...malformed],
    ["two hosts", bytesOf("GET /healthz", ["host: y"]), ...malformed],
    ["too many headers", bytesOf("GET /healthz", many), ...tooLarge],
    ["chunks in HTTP/1.0", `POST /v1/chat/completions ${IN_CHUNKS_1_0}`, ...malformed],
    ["a URL over 16 KiB", bytesOf(`GET /${"a".repeat(20_000)}`), ...tooLarge],
    ["CONNECT", bytesOf("CONNECT example.com:443"), 405, "method_not_allowed"],
    ["an unknown expectation", chatBytes("x", "", tea), 417, "expectation_failed"],
    ["an upgrade", bytesOf("GET /nowhere", upgrade), ...unknown],
    ["the preface of HTTP/2, without a version", "PRI /2.0\r\n\r\n", ...malformed],
    ["OPTIONS *", bytesOf("OPTIONS *", ["Connection: close"]), ...unknown],
    ["a head that does not arrive in time", "GET /healthz HTTP/1.1\r\n", ...late],
  ];
  for (const [name, bytes, status, code] of CASES) {
    it(name, async () => {
      const answer = await rawRequest(gateway.url, bytes);
      assertError(answer, status, code);
      assert.match(answer.headers["x-request-id"]!, GENERATED);
      assert.equal(answer.headers["connection"], "close");
      const record = await gateway.accessOf(answer.headers["x-request-id"]!);
      assert.deepEqual([record["status"], record["error_code"]], [status, code]);
    });
  }

  const mine = "X-Request-Id: mine";
  const chunked = [mine, "Transfer-Encoding: chunked"];
  const long = [mine, "Content-Length: 100"];
  const nonsense = `${bytesOf("GET /nowhere", [mine])}NONSENSE\r\n\r\n`;
  const second = bytesOf("GET /healthz");
  const OWN_ID: [name: string, bytes: string, status: number, code: string][] = [
    ["a request that cannot be parsed", bytesOf("GET /", [mine, "bad header"]), ...malformed],
    ["a body in bad chunks", chatBytes("sk-demo", "5\r\nabcde\r\nzz\r\n", chunked), ...malformed],
    // The error response waits for the rest of the same packet.
    ["a rejected request in bad chunks", bytesOf("POST /none", chunked, "zz\r\n"), ...malformed],
    ["a rejected request with garbage after it", nonsense, ...unknown],
    [
      "a rejected head before a request that cannot be answered",
      bytesOf("GET /healthz", [mine, ...many]) + second,
      ...tooLarge,
    ],
    ["a body that does not arrive in time", chatBytes("sk-demo", '{"mod', long), ...late],
  ];
  for (const [name, bytes, status, code] of OWN_ID)
    it(`${name}: one response and one log line, with the client's id`, async () => {
      gateway.access.length = 0;
      const answer = await rawRequest(gateway.url, bytes);
      assertError(answer, status, code);
      assert.equal(answer.headers["x-request-id"], "mine");
      assert.equal(answer.headers["connection"], "close");
      assert.equal(answer.text.match(/HTTP\/1\.1/g)?.length, 1);
      assert.equal((await gateway.accessOf("mine"))["status"], status);
      assert.equal(gateway.access.length, 1);
    });

  it("garbage after a complete request does not affect that request's response", async (t) => {
    const gateway = await startWith(t, { m: speak("All is well.") });
    const body = JSON.stringify({ model: "m", messages: user("hi") });
    const answer = await rawRequest(gateway.url, `${chatBytes(KEY, body)}NONSENSE\r\n\r\n`);
    assert.equal(answer.status, 200, answer.text);
    assert.match(answer.body, /All is well\./);
    assert.equal(answer.text.match(/HTTP\/1\.1/g)?.length, 1);
  });

  it("a head that ends with the client's data is answered", async (t) => {
    const { socket, text, closed } = connect(t, gateway.url, `${second}GET /heal`);
    socket.end();
    await within(closed, "the connection to end");
    assert.match(text(), /^HTTP\/1\.1 200 OK\r\n.*HTTP\/1\.1 400 .*"malformed_request"/s);
  });

  for (const method of ["GET", "HEAD"]) {
    it(`a response that began before an invalid body arrived is completed: ${method}`, async (t) => {
      const request = bytesOf(`${method} /early`, ["Transfer-Encoding: chunked"]);
      let begun = (): void => undefined;
      const beginning = new Promise<void>((resolve) => (begun = resolve));
      const early = async ({ req, res }: Exchange) => {
        res.writeHead(200, { "Content-Type": "text/plain" });
        res.write("first, ");
        begun();
        await waitFor(() => req.socket.bytesRead === request.length + 4, "the nonsense to be read");
        res.end("last");
      };
      const { url, statuses } = await serve(t, { "/early": { GET: early } });
      const { socket, text, closed } = connect(t, url, request);
      await within(beginning, "the answer to begin");
      socket.write("zz\r\n");
      await within(closed, "the connection to end");
      assert.match(text(), /^HTTP\/1\.1 200 OK\r\n/);
      const body = method === "HEAD" ? "" : "7\r\nfirst, \r\n4\r\nlast\r\n0\r\n\r\n";
      assert.equal(text().slice(text().indexOf("\r\n\r\n") + 4), body);
      await waitFor(() => statuses.length > 0, "the access log");
      assert.deepEqual(statuses, [200]);
    });
  }

  it("nothing after a response that closes the connection is parsed", async (t) => {
    let stops = 0;
    const boundPipeline = () => ({ advance: () => undefined, stop: () => (stops += 1) });
    const { url, statuses } = await serve(t, OK, { boundPipeline });
    await rawRequest(url, bytesOf("GET /", ["host: y"]) + bytesOf("GET /"));
    await waitFor(() => statuses.length > 0, "the access log");
    assert.deepEqual([statuses, stops], [[400], 1]);
  });

  it("an idle connection retains nothing of the answered request", async (t) => {
    const connections: Connection[] = [];
    const { url } = await serve(t, OK, {
      boundPipeline(connection) {
        connections.push(connection);
        return { advance: () => undefined, stop: () => undefined };
      },
    });
    const agent = new http.Agent({ keepAlive: true });
    t.after(() => agent.destroy());
    const [response] = await within(once(http.get(url, { agent }), "response"), "the answer");
    await within(once(response.resume(), "end"), "the end");
    await waitFor(() => connections[0]?.live.size === 0, "the exchange to be over");
    assert.deepEqual(connections[0]?.latest, { req: { complete: true, headers: {} } });
  });
});
