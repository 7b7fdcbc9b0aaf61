// Which connection a request uses, how long an idle one is kept, and what makes one unusable.

import assert from "node:assert/strict";
import dns from "node:dns";
import type { Socket } from "node:net";
import { describe, it, type TestContext } from "node:test";
import type { UpstreamRequest } from "../../../../src/core/upstream/transport.ts";
import { parseHead } from "../../../../src/extensions/providers/pooled-client/response-head.ts";
import { LONG } from "../../../support/long.ts";
import {
  call,
  piecesOf,
  reply,
  startClient,
  startRawProvider,
} from "../../../support/raw-provider.ts";
import { waitFor, within } from "../../../support/wait.ts";

const CLOSED = { code: "ECONNRESET" };
const notAgain = { resent: () => assert.fail("sent again") };

/** A client, and a provider that gives each request this answer. Empty: the test answers. */
async function start(t: TestContext, answer = "", maxConnections?: number) {
  const provider = await startRawProvider(t, ({ socket }) => answer && socket.write(answer));
  const client = startClient(t, maxConnections);
  const ask = (over: Partial<UpstreamRequest> = {}) => call(client, provider.url, over);
  return { provider, client, ask };
}

describe("the choice of a connection", () => {
  it("uses the idle connection that was used last", async (t) => {
    const { provider, ask } = await start(t);
    const calls = [ask(), ask()];
    const last = await provider.request(1);
    provider.requests[0]!.socket.write(reply());
    await Promise.any(calls.map(({ text }) => text));
    last.socket.write(reply());
    await Promise.all(calls.map(({ text }) => text));
    const next = ask();
    const { connection, socket } = await provider.request(2);
    assert.equal(connection, last.connection);
    socket.write(reply());
    await next.text;
  });

  it("at the limit, requests wait in order, and an aborted one stops waiting", async (t) => {
    const { provider, ask } = await start(t, "", 1);
    const sent: string[] = [];
    const [first, second, third] = ["1", "2", "3"].map((body) =>
      ask({ body, sent: () => sent.push(body) }),
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

  it("at the limit, a closing connection makes room for the next request", async (t) => {
    const { provider, ask } = await start(t, "", 1);
    const [first, second] = [ask(), ask()];
    (await provider.request(0)).socket.end(reply("one", "Connection: close"));
    assert.equal(await first.text, "one");
    const { socket, connection } = await provider.request(1);
    assert.equal(connection, 1);
    socket.write(reply("two"));
    assert.equal(await second.text, "two");
  });
});

// pooled-client.test.ts tests that the request is sent once more on a new connection.
describe("the addresses of a host", () => {
  it("are looked up once for all connections that wait for them, however they are found", async (t) => {
    const { provider, client } = await start(t, reply());
    const lookup = t.mock.method(dns, "lookup", () => undefined);
    const url = provider.url.replace("127.0.0.1", "models.test");
    for (const isFound of [false, true]) {
      const calls = [call(client, url), call(client, url)];
      await waitFor(() => lookup.mock.callCount() > 0, "a lookup");
      const [first, ...more] = lookup.mock.calls.map((each): unknown[] => each.arguments);
      assert.deepEqual([first![0], more], ["models.test", []]);
      const answered = first![2] as (error: Error | null, addresses?: object[]) => void;
      if (isFound) answered(null, [{ address: "127.0.0.1", family: 4 }]);
      else answered(Object.assign(new Error("no such name"), { code: "ENOTFOUND" }));
      for (const { text } of calls)
        if (isFound) assert.equal(await text, "ok");
        else await assert.rejects(text, { code: "ENOTFOUND" });
      lookup.mock.resetCalls();
    }
  });
});

describe("a pooled connection that the provider closes", () => {
  for (const [name, then, resent] of [
    ["and the new one too: the request fails", (socket: Socket) => socket.destroy(), 1],
    ["after a byte of the response: it is not sent again", (socket: Socket) => socket.end("H"), 0],
  ] as const)
    it(name, async (t) => {
      const provider = await startRawProvider(t, ({ socket }, n) =>
        n === 0 ? socket.write(reply()) : then(socket),
      );
      const client = startClient(t);
      await call(client, provider.url).text;
      let times = 0;
      const again = call(client, provider.url, { resent: () => (times += 1) });
      await assert.rejects(again.response, CLOSED);
      assert.deepEqual([times, provider.requests.length], [resent, 2 + resent]);
    });

  it("on its first use: the request fails, and is not sent again", async (t) => {
    const provider = await startRawProvider(t, ({ socket }) => socket.destroy());
    await assert.rejects(call(startClient(t), provider.url, notAgain).response, CLOSED);
    assert.equal(provider.requests.length, 1);
  });

  const gaveUp = (...fields: string[]) =>
    reply("Too late.", ...fields).replace("200 OK", "408 Request Timeout");
  for (const [name, first, second, then, resent] of [
    ["because it was idle too long", reply(), gaveUp("Connection: close"), [200, "ok"], 1],
    ["on its first use", gaveUp("Connection: close"), "", [408, "Too late."], 0],
    ["and stays open", reply(), gaveUp(), [408, "Too late."], 0],
  ] as const)
    it(`with a 408, ${name}: sent again ${resent} times`, async (t) => {
      const provider = await startRawProvider(t, ({ socket }, n) =>
        socket.write([first, second, reply()][n]!),
      );
      const client = startClient(t);
      if (second) await call(client, provider.url).text;
      let times = 0;
      const again = call(client, provider.url, { resent: () => (times += 1) });
      const { status } = await again.response;
      assert.deepEqual([status, await again.text, times], [...then, resent]);
      if (resent > 0) assert.equal(provider.requests[2]!.connection, 1);
    });

  for (const [name, close, answer] of [
    ["while it is idle", (socket: Socket) => socket.end(), "ok"],
    // Unsolicited bytes must not answer another request.
    ["because of bytes", (socket: Socket) => socket.write(reply("forged")), "right"],
  ] as const)
    it(`${name}: the next request goes to a new one at once`, async (t) => {
      const { provider, ask } = await start(t, reply(answer));
      assert.equal(await ask().text, answer);
      close(provider.sockets[0]!);
      await provider.closed(0);
      assert.equal(await ask(notAgain).text, answer);
      assert.equal(provider.requests[1]!.connection, 1);
    });
});

describe("an idle connection", () => {
  for (const [name, answer, leastMs, isLong] of [
    [
      "a second before the server, if it says when",
      reply("ok", "Keep-Alive: timeout=2, max=9"),
      900,
    ],
    ["after 4 seconds if the server says nothing", reply(), 3_900, true],
  ] as const) {
    const skip = isLong && !LONG && "it waits for them: in the long form of tests";
    it(`is closed ${name}`, { skip }, async (t) => {
      const { provider, ask } = await start(t, answer);
      const since = performance.now();
      await ask().text;
      await provider.closed(0);
      assert.ok(performance.now() - since > leastMs, "closed too early");
    });
  }

  it("is kept a second less than the server allows", () => {
    const head = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nKeep-Alive: timeout=5\r\n";
    assert.equal(parseHead(head).idleMs, 4_000);
  });

  it("is closed when the client is closed, and one in use at the end of its response", async (t) => {
    const { provider, client, ask } = await start(t);
    const [idle, busy] = [ask(), ask()];
    await provider.request(1);
    provider.requests[0]!.socket.write(reply());
    await Promise.any([idle.text, busy.text]);
    client.close();
    await provider.closed(provider.requests[0]!.connection);
    provider.requests[1]!.socket.write(reply());
    await Promise.all([idle.text, busy.text]);
    await provider.closed(provider.requests[1]!.connection);
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
      const { provider, ask } = await start(t, answer);
      for (const connection of [0, 1]) {
        assert.equal(await ask().text, "ok");
        await provider.closed(connection);
      }
    });

  it("except after a kept-alive response of HTTP/1.0", async (t) => {
    const answer = reply("ok", "Connection: keep-alive").replace("1.1", "1.0");
    const { provider, ask } = await start(t, answer);
    for (let calls = 0; calls < 3; calls += 1) assert.equal(await ask().text, "ok");
    assert.equal(provider.sockets.length, 1);
  });

  it("after a body that was not read completely", async (t) => {
    const { provider, ask } = await start(t, reply("x".repeat(1_000)).slice(0, -995));
    for await (const piece of piecesOf((await ask().response).body!)) {
      assert.equal(Buffer.from(piece).toString(), "xxxxx");
      break;
    }
    await provider.closed(0);
  });

  it("after a response that came before the request was sent, which still counts", async (t) => {
    const { provider, ask } = await start(t);
    const large = ask({ body: "x".repeat(64 * 1024 * 1024) });
    const socket = await waitFor(() => provider.sockets[0], "the connection");
    socket.pause();
    socket.write(reply("too large"));
    assert.equal(await within(large.text, "the early response"), "too large");
    socket.resume();
    await provider.closed(0);
  });
});
