// Connections and the exchanges on them: in what order they end, who learns of it, and what the
// access log says.

import assert from "node:assert/strict";
import http from "node:http";
import net from "node:net";
import { describe, it } from "node:test";
import { configFor, demo, KEY, startGateway, user } from "../../support/gateway.ts";
import { chunk, held, speak, startProvider, stream } from "../../support/provider.ts";
import { assertError, rawRequest } from "../../support/raw.ts";
import { waitFor, within } from "../../support/wait.ts";

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
    // The provider's pooled connections and this test's own waits come and go; what must not stay
    // are the requests' deadlines.
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
