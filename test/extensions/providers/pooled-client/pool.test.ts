// Which connection a request gets, how long an idle one is kept, and what makes one useless.

import assert from "node:assert/strict";
import type { Socket } from "node:net";
import { describe, it, type TestContext } from "node:test";
import { parseHead } from "../../../../src/extensions/providers/pooled-client/response-head.ts";
import { LONG } from "../../../support/long.ts";
import { call, reply, startClient, startRawProvider } from "../../../support/raw-provider.ts";
import { waitFor, within } from "../../../support/wait.ts";
import { piecesOf } from "../../../support/pieces.ts";

const CLOSED = { code: "ECONNRESET" };

describe("the choice of a connection", () => {
  it("the idle connection that was used last is used next", async (t) => {
    const provider = await startRawProvider(t);
    const client = startClient(t);
    const calls = [0, 1].map(() => call(client, provider.url));
    const last = await provider.request(1);
    provider.requests[0]!.socket.write(reply());
    await Promise.any(calls.map(({ text }) => text));
    last.socket.write(reply());
    await Promise.all(calls.map(({ text }) => text));
    const next = call(client, provider.url);
    const { connection, socket } = await provider.request(2);
    assert.equal(connection, last.connection);
    socket.write(reply());
    await next.text;
  });

  it("at the bound, requests wait in their order, and one that is aborted waits no longer", async (t) => {
    const provider = await startRawProvider(t);
    const client = startClient(t, 1);
    const sent: string[] = [];
    const [first, second, third] = ["1", "2", "3"].map((body) =>
      call(client, provider.url, { body, sent: () => sent.push(body) }),
    );
    await provider.request(0);
    const left = new Error("the client has left");
    second!.cancel.abort(left);
    await assert.rejects(second!.response, left);
    assert.deepEqual(sent, ["1"]);
    provider.requests[0]!.socket.write(reply("one"));
    assert.equal(await first!.text, "one");
    (await provider.request(1)).socket.write(reply("three"));
    assert.equal(await third!.text, "three");
    assert.deepEqual(sent, ["1", "3"]);
    assert.equal(provider.sockets.length, 1);
  });

  it("at the bound, a connection that closes makes room for the next request", async (t) => {
    const provider = await startRawProvider(t);
    const client = startClient(t, 1);
    const first = call(client, provider.url);
    const second = call(client, provider.url);
    (await provider.request(0)).socket.end(reply("one", "Connection: close"));
    assert.equal(await first.text, "one");
    const { socket, connection } = await provider.request(1);
    assert.equal(connection, 1);
    socket.write(reply("two"));
    assert.equal(await second.text, "two");
  });
});

// That the request is sent once more, on a new one, is in pooled-client.test.ts.
describe("a pooled connection that the provider closes", () => {
  /** A request on the connection of another one, after whose answer `then` happens. */
  async function afterFirst(t: TestContext, then: (socket: Socket, n: number) => void) {
    const provider = await startRawProvider(t, ({ socket }, n) => {
      if (n === 0) socket.write(reply());
      else then(socket, n);
    });
    const client = startClient(t);
    await call(client, provider.url).text;
    const resent: number[] = [];
    const again = call(client, provider.url, {
      resent: () => resent.push(provider.requests.length),
    });
    return { provider, again, resent };
  }

  it("and the new one too: the request fails", async (t) => {
    const { provider, again, resent } = await afterFirst(t, (socket) => socket.destroy());
    await assert.rejects(again.response, CLOSED);
    assert.deepEqual([resent.length, provider.requests.length], [1, 3]);
  });

  it("after a byte of the response: the request fails, and is not sent again", async (t) => {
    const { provider, again, resent } = await afterFirst(t, (socket) => socket.end("H"));
    await assert.rejects(again.response, CLOSED);
    assert.deepEqual([resent.length, provider.requests.length], [0, 2]);
  });

  it("on its first use: the request fails, and is not sent again", async (t) => {
    const provider = await startRawProvider(t, ({ socket }) => socket.destroy());
    const once = call(startClient(t), provider.url, { resent: () => assert.fail("sent again") });
    await assert.rejects(once.response, CLOSED);
    assert.equal(provider.requests.length, 1);
  });

  it("while it is idle: the next request goes to a new one at once", async (t) => {
    const provider = await startRawProvider(t, ({ socket }) => socket.write(reply()));
    const client = startClient(t);
    await call(client, provider.url).text;
    provider.sockets[0]!.end();
    await provider.closed(0);
    const next = call(client, provider.url, { resent: () => assert.fail("sent again") });
    assert.equal(await next.text, "ok");
    assert.equal(provider.requests[1]!.connection, 1);
  });
});

describe("an idle connection", () => {
  it("is closed a second before the server does it, if it says when", async (t) => {
    const answer = reply("ok", "Keep-Alive: timeout=2, max=100");
    const provider = await startRawProvider(t, ({ socket }) => socket.write(answer));
    const client = startClient(t);
    const since = performance.now();
    await call(client, provider.url).text;
    await provider.closed(0);
    assert.ok(performance.now() - since > 900, "not before its time");
  });

  it("is kept a second less than the server says", () => {
    const head = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nKeep-Alive: timeout=5\r\n";
    assert.equal(parseHead(head).idleMs, 4_000);
  });

  it("is closed after 4 seconds if the server says nothing", {
    skip: LONG ? false : "it waits for them: in the long form of tests",
  }, async (t) => {
    const provider = await startRawProvider(t, ({ socket }) => socket.write(reply()));
    const since = performance.now();
    await call(startClient(t), provider.url).text;
    await waitFor(() => provider.sockets[0]!.closed, "the connection to close");
    assert.ok(performance.now() - since > 3_900, "not before its time");
  });

  it("is closed when the client is closed, and one in use at the end of its response", async (t) => {
    const provider = await startRawProvider(t);
    const client = startClient(t);
    const [idle, busy] = [call(client, provider.url), call(client, provider.url)];
    await provider.request(1);
    provider.requests[0]!.socket.write(reply());
    await Promise.any([idle!.text, busy!.text]);
    client.close();
    await provider.closed(provider.requests[0]!.connection);
    provider.requests[1]!.socket.write(reply());
    await Promise.all([idle!.text, busy!.text]);
    await provider.closed(provider.requests[1]!.connection);
  });

  it("on which bytes come that nobody asked for is closed: they answer no other request", async (t) => {
    const provider = await startRawProvider(t, ({ socket }) => socket.write(reply("right")));
    const client = startClient(t);
    assert.equal(await call(client, provider.url).text, "right");
    provider.sockets[0]!.write(reply("forged"));
    await provider.closed(0);
    assert.equal(await call(client, provider.url).text, "right");
    assert.equal(provider.requests[1]!.connection, 1);
  });
});

describe("a connection is not used again", () => {
  for (const [situation, answer] of [
    ["after bytes that follow the response", `${reply()}${reply("forged")}`],
    ["after a single byte that follows the response", `${reply()}\n`],
    ["after Connection: close", reply("ok", "Connection: close")],
    ["after an answer of HTTP/1.0", reply().replace("1.1", "1.0")],
  ] as const)
    it(situation, async (t) => {
      const provider = await startRawProvider(t, ({ socket }) => socket.write(answer));
      const client = startClient(t);
      for (const connection of [0, 1]) {
        assert.equal(await call(client, provider.url).text, "ok");
        await provider.closed(connection);
      }
    });

  it("but after an answer of HTTP/1.0 that keeps it alive it is", async (t) => {
    const answer = reply("ok", "Connection: keep-alive").replace("1.1", "1.0");
    const provider = await startRawProvider(t, ({ socket }) => socket.write(answer));
    const client = startClient(t);
    for (let calls = 0; calls < 3; calls += 1)
      assert.equal(await call(client, provider.url).text, "ok");
    assert.equal(provider.sockets.length, 1);
  });

  it("after a body that was not read to its end", async (t) => {
    const begun = "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nbegun";
    const provider = await startRawProvider(t, ({ socket }) => socket.write(begun));
    const { body } = await call(startClient(t), provider.url).response;
    for await (const piece of piecesOf(body!)) {
      assert.equal(Buffer.from(piece).toString(), "begun");
      break;
    }
    await provider.closed(0);
  });

  it("after a response that came before the request was sent: the response counts", async (t) => {
    const provider = await startRawProvider(t);
    const client = startClient(t);
    const large = call(client, provider.url, { body: "x".repeat(64 * 1024 * 1024) });
    const socket = await waitFor(() => provider.sockets[0], "the connection");
    socket.pause();
    socket.write(reply("too large"));
    assert.equal(await within(large.text, "the early response"), "too large");
    socket.resume();
    await provider.closed(0);
  });
});
