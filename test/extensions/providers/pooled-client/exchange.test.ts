// One request and its response over a real socket: what goes out, what comes in, and how it ends.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setImmediate as turnEnd } from "node:timers/promises";
import { Cancel } from "../../../../src/core/http/cancel.ts";
import {
  call,
  reply,
  startClient,
  startRawProvider,
  textOf,
} from "../../../support/raw-provider.ts";
import { noIpv6 } from "../../../support/listening.ts";
import { waitFor, within } from "../../../support/wait.ts";
import { collectGarbage } from "../../../support/held.ts";
import { consume } from "../../../../src/core/upstream/body.ts";
import { piecesOf } from "../../../support/pieces.ts";

const CHUNKED = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
const LEFT = new Error("the client has left");

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
      const provider = await startRawProvider(t);
      const refused = call(startClient(t), provider.url, { headers: { [name]: value } });
      await assert.rejects(refused.response, { name: "TypeError", code: "ERR_INVALID_CHAR" });
      assert.equal(provider.sockets.length, 0);
    });

  it("goes to an IPv6 address", { skip: noIpv6() }, async (t) => {
    const provider = await startRawProvider(t, ({ socket }) => socket.write(reply()), "::1");
    assert.equal(await call(startClient(t), provider.url).text, "ok");
    assert.match(provider.requests[0]!.text, /\r\nHost: \[::1\]:\d+\r\n/);
  });

  it("is not held in memory while its response goes on", async (t) => {
    const provider = await startRawProvider(t, ({ socket }) => socket.write(CHUNKED));
    const client = startClient(t);
    const cancel = new Cancel();
    let request: WeakRef<object> | undefined;
    const send = () => {
      const sent = {
        method: "POST",
        redirect: "manual",
        headers: {},
        body: "{}",
        cancel,
        connectMs: 2_000,
        sent: () => undefined,
        resent: () => undefined,
      } as const;
      request = new WeakRef(sent);
      return client.send(provider.url, sent);
    };
    const response = await send();
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
      const provider = await startRawProvider(t, ({ socket }) => socket.write(bytes));
      await assert.rejects(call(startClient(t), provider.url).response, { code: "EPROTO" });
      await provider.closed(0);
    });

  it("that breaks off while its reader has no room fails it at once", async (t) => {
    const provider = await startRawProvider(t, ({ socket }) =>
      socket.write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"),
    );
    const { body } = await call(startClient(t), provider.url).response;
    const taken: string[] = [];
    const reading = consume(
      body!,
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

  it("that breaks off keeps what a busy reader has not taken yet", async (t) => {
    const provider = await startRawProvider(t, ({ socket }) =>
      socket.end(`${CHUNKED}3\r\nabc\r\n`),
    );
    const { body } = await call(startClient(t), provider.url).response;
    await provider.closed(0); // from both sides: the client has seen the break
    const read: string[] = [];
    const reading = (async () => {
      for await (const bytes of piecesOf(body!)) read.push(Buffer.from(bytes).toString());
    })();
    await assert.rejects(reading, { code: "ECONNRESET" });
    assert.deepEqual(read, ["abc"]);
  });

  it("with a bad chunk fails its reader, and its connection is closed", async (t) => {
    const provider = await startRawProvider(t, ({ socket }) => socket.write(CHUNKED));
    const { body } = await call(startClient(t), provider.url).response;
    const next = piecesOf(body!).next();
    provider.sockets[0]!.write("hello\r\n");
    await assert.rejects(next, { code: "EPROTO" });
    await provider.closed(0);
  });
});

describe("an abort", () => {
  for (const [phase, isBefore] of [
    ["before the request", true],
    ["while the connection is made", false],
  ] as const)
    it(`${phase}: its reason, and nothing is sent`, async (t) => {
      const provider = await startRawProvider(t);
      const cancel = new Cancel();
      if (isBefore) cancel.abort(LEFT);
      const { response } = call(startClient(t), provider.url, { cancel });
      cancel.abort(LEFT);
      await assert.rejects(response, LEFT);
      assert.equal(provider.requests.length, 0);
    });

  for (const [phase, bytes] of [
    ["before the response", ""],
    ["in its head", "HTTP/1.1 200 OK\r\nCont"],
  ] as const)
    it(`${phase}: its reason, and the connection is closed`, async (t) => {
      const provider = await startRawProvider(t, ({ socket }) => socket.write(bytes));
      const { cancel, response } = call(startClient(t), provider.url);
      await provider.request(0);
      await turnEnd();
      cancel.abort(LEFT);
      await assert.rejects(response, LEFT);
      await provider.closed(0);
    });

  it("in the body: the reader gets its reason, what is queued is thrown away, and the connection is closed", async (t) => {
    const provider = await startRawProvider(t, ({ socket }) =>
      socket.write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"),
    );
    const { cancel, response } = call(startClient(t), provider.url);
    const { body } = await response;
    cancel.abort(LEFT);
    await assert.rejects(textOf({ ...(await response), body }), LEFT);
    await provider.closed(0);
  });

  it("while the reader waits: it gets the reason at once", async (t) => {
    const provider = await startRawProvider(t, ({ socket }) => socket.write(CHUNKED));
    const { cancel, response } = call(startClient(t), provider.url);
    const next = piecesOf((await response).body!).next();
    cancel.abort(LEFT);
    await assert.rejects(next, LEFT);
    await provider.closed(0);
  });

  it("after the end: the connection, by then another request's, is left alone", async (t) => {
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
