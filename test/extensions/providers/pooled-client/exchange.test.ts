// One request and its response over a real socket: the bytes sent, the reading of the response, and
// its end.

import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { setImmediate as turnEnd } from "node:timers/promises";
import type { UpstreamRequest } from "../../../../src/core/upstream/transport.ts";
import { Cancel } from "../../../../src/core/http/cancel.ts";
import {
  call,
  piecesOf,
  reply,
  startClient,
  startRawProvider,
} from "../../../support/raw-provider.ts";
import { noIpv6 } from "../../../support/listening.ts";
import { waitFor, within } from "../../../support/wait.ts";
import { collectGarbage } from "../../../support/effort.ts";
import { consume } from "../../../../src/core/upstream/body.ts";

const CHUNKED = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
const HALF = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf";
const LEFT = new Error("the client has left");

/** A call to a provider that answers each request with these bytes, if any. */
async function calling(t: TestContext, bytes: string, over: Partial<UpstreamRequest> = {}) {
  const provider = await startRawProvider(t, ({ socket }) => bytes && socket.write(bytes));
  const { cancel, response } = call(startClient(t), provider.url, over);
  return { provider, cancel, response };
}

describe("a request", () => {
  it("has the path, the host, its headers and the length of its body in bytes", async (t) => {
    const provider = await startRawProvider(t, ({ socket }) => socket.write(reply()));
    const headers = { "X-Name": "J\xfcrgen", Accept: "a, b" };
    await call(startClient(t), `${provider.url}/v1/chat?a=b%20c`, { headers, body: "{ü}" }).text;
    assert.equal(
      provider.requests[0]!.text,
      [
        "POST /v1/chat?a=b%20c HTTP/1.1",
        `Host: ${new URL(provider.url).host}`,
        "Connection: keep-alive",
        "X-Name: J\xfcrgen",
        "Accept: a, b",
        "Content-Length: 4",
        "",
        Buffer.from("{ü}").toString("latin1"),
      ].join("\r\n"),
    );
  });

  for (const [name, value] of [
    ["X", "a\r\nInjected: 1"],
    ["X", "a\nb"],
    ["X", "a\rb"],
    ["X", "a\0b"],
    ["X", "\u{1F600}"],
    ["X: 1\r\nInjected", "1"],
    ["X Y", "1"],
    ["", "1"],
  ] as const)
    it(`with the header ${JSON.stringify(`${name}: ${value}`)} is refused, and not sent`, async (t) => {
      const { provider, response } = await calling(t, "", { headers: { [name]: value } });
      await assert.rejects(response, { name: "TypeError", code: "ERR_INVALID_CHAR" });
      assert.equal(provider.sockets.length, 0);
    });

  it("goes to an IPv6 address", { skip: noIpv6() }, async (t) => {
    const provider = await startRawProvider(t, ({ socket }) => socket.write(reply()), "::1");
    assert.equal(await call(startClient(t), provider.url).text, "ok");
    assert.match(provider.requests[0]!.text, /\r\nHost: \[::1\]:\d+\r\n/);
  });

  it("is not retained in memory while its response continues", async (t) => {
    const provider = await startRawProvider(t, ({ socket }) => socket.write(CHUNKED));
    const { send } = startClient(t);
    const cancel = new Cancel();
    let request: WeakRef<object> | undefined;
    const noting = (url: string, sent: UpstreamRequest) => {
      request = new WeakRef(sent);
      return send(url, sent);
    };
    const sent = () => call({ send: noting }, provider.url, { cancel }).response;
    const response = await sent();
    await turnEnd();
    await waitFor(() => {
      collectGarbage();
      return request!.deref() === undefined;
    }, "the request to be collected");
    assert.equal(response.status, 200);
    cancel.abort(LEFT);
  });
});

describe("a response", () => {
  for (const [form, bytes, text] of [
    ["with a length", reply("hello"), "hello"],
    ["in chunks", `${CHUNKED}2\r\nhe\r\n3;a=b\r\nllo\r\n0\r\nX: 1\r\n\r\n`, "hello"],
    ["after interim responses", `HTTP/1.1 100 Continue\r\n\r\n${reply("hello")}`, "hello"],
    ["without a body: 204", "HTTP/1.1 204 No Content\r\n\r\n", ""],
    ["of no bytes", reply(""), ""],
  ] as const)
    it(`${form} is read, at once and byte by byte, over one connection`, async (t) => {
      const provider = await startRawProvider(t, async ({ socket }, n) => {
        for (const byte of n === 1 ? bytes : [bytes])
          await new Promise((resolve) => socket.write(byte, resolve));
      });
      const client = startClient(t);
      for (let calls = 0; calls < 3; calls += 1)
        assert.equal(await call(client, provider.url).text, text);
      assert.equal(provider.sockets.length, 1);
    });

  it("without a length ends with its connection", async (t) => {
    const provider = await startRawProvider(t, ({ socket }) =>
      socket.end("HTTP/1.1 200 OK\r\n\r\nall of it"),
    );
    assert.equal(await call(startClient(t), provider.url).text, "all of it");
  });

  for (const [form, bytes] of [
    ["that is not HTTP", "SSH-2.0-OpenSSH_9.6\r\n"],
    ["with two lengths", reply("ok", "Content-Length: 3")],
  ] as const)
    it(`${form} fails at once, and its connection is closed`, async (t) => {
      const { provider, response } = await calling(t, bytes);
      await assert.rejects(response, { code: "EPROTO" });
      await provider.closed(0);
    });

  it("that breaks while its reader has no room fails the reader at once", async (t) => {
    const { provider, response } = await calling(t, HALF);
    const taken: string[] = [];
    const reading = consume(
      (await response).body!,
      (bytes) => {
        taken.push(Buffer.from(bytes).toString());
        provider.sockets[0]!.end();
        return new Promise(() => undefined);
      },
      () => undefined,
    );
    await assert.rejects(within(reading, "the failure"), { code: "ECONNRESET" });
    assert.deepEqual(taken, ["half"]);
  });

  it("that breaks keeps data that a busy reader has not taken yet", async (t) => {
    const { provider, response } = await calling(t, `${CHUNKED}3\r\nabc\r\n`);
    const reading = piecesOf((await response).body!);
    provider.sockets[0]!.end();
    await provider.closed(0); // closed from both sides, so the client has noticed the break
    assert.equal(Buffer.from((await reading.next()).value!).toString(), "abc");
    await assert.rejects(reading.next(), { code: "ECONNRESET" });
  });

  it("with a bad chunk fails its reader, and its connection is closed", async (t) => {
    const { provider, response } = await calling(t, CHUNKED);
    const next = piecesOf((await response).body!).next();
    provider.sockets[0]!.write("hello\r\n");
    await assert.rejects(next, { code: "EPROTO" });
    await provider.closed(0);
  });
});

describe("an abort", () => {
  for (const [phase, isBefore] of [
    ["before the request", true],
    ["while connecting", false],
  ] as const)
    it(`${phase}: its reason, and nothing is sent`, async (t) => {
      const cancel = new Cancel();
      if (isBefore) cancel.abort(LEFT);
      const { provider, response } = await calling(t, "", { cancel });
      cancel.abort(LEFT);
      await assert.rejects(response, LEFT);
      assert.equal(provider.requests.length, 0);
    });

  for (const [phase, bytes] of [
    ["before the response", ""],
    ["in its head", "HTTP/1.1 200 OK\r\nCont"],
  ] as const)
    it(`${phase}: its reason, and the connection is closed`, async (t) => {
      const { provider, cancel, response } = await calling(t, bytes);
      await provider.request(0);
      await turnEnd();
      cancel.abort(LEFT);
      await assert.rejects(response, LEFT);
      await provider.closed(0);
    });

  for (const [phase, bytes, isReading] of [
    ["in the body: queued data is discarded", HALF, false],
    ["while the reader waits", CHUNKED, true],
  ] as const)
    it(`${phase}: the reader gets its reason, and the connection is closed`, async (t) => {
      const { provider, cancel, response } = await calling(t, bytes);
      const pieces = piecesOf((await response).body!);
      const next = isReading ? pieces.next() : undefined;
      cancel.abort(LEFT);
      await assert.rejects(next ?? pieces.next(), LEFT);
      await provider.closed(0);
    });

  it("after the end: the connection, then used by another request, is not affected", async (t) => {
    const provider = await startRawProvider(t);
    const client = startClient(t);
    const first = call(client, provider.url);
    (await provider.request(0)).socket.write(reply("one"));
    assert.equal(await first.text, "one");
    const second = call(client, provider.url);
    const { socket, connection } = await provider.request(1);
    first.cancel.abort(LEFT);
    socket.write(reply("two"));
    assert.equal(await second.text, "two");
    assert.equal(connection, 0);
  });
});
