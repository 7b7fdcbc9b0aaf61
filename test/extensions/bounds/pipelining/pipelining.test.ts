// Requests that share a connection: how many the gateway accepts at once, what happens to responses
// that nobody reads, which requests count as in flight, and how their bytes reach Node's parser:
// one request at a time, wherever reads split them, and no further while enough requests wait.

import assert from "node:assert/strict";
import { once } from "node:events";
import http, { type IncomingMessage } from "node:http";
import net from "node:net";
import { Duplex } from "node:stream";
import { text } from "node:stream/consumers";
import { describe, it, type TestContext } from "node:test";
import { renderError, shuttingDown } from "../../../../src/core/error-responses.ts";
import type { Exchange } from "../../../../src/core/http/exchange.ts";
import { createServer } from "../../../../src/core/http/server.ts";
import {
  boundPipeline,
  MAX_PIPELINED,
  type Bounded,
} from "../../../../src/extensions/bounds/pipelining/index.ts";
import { KEY, startWith, user } from "../../../support/gateway.ts";
import { held } from "../../../support/provider.ts";
import { settled, waitFor, within } from "../../../support/wait.ts";
import { unhurriedClock } from "../../../support/unhurried-clock.ts";

const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: x\r\nX-Request-Id: id\r\n\r\n`;

/** A server on which the test answers GET /held, and which sends /large in one piece. */
async function startSite(t: TestContext, options: { send_ms?: number } = {}) {
  /** The requests whose handlers were called, oldest first. */
  const taken: Exchange[] = [];
  const statuses: number[] = [];
  const bodies: string[] = [];
  const large = "x".repeat(20_000_000);
  const take = (answer?: string) => (exchange: Exchange) => {
    taken.push(exchange);
    if (answer !== undefined) exchange.res.end(answer);
  };
  const server = createServer(
    {
      "/held": { GET: take() },
      "/small": { GET: take("small") },
      "/large": { GET: take(large) },
      "/begun": {
        GET: ({ res }) => {
          res.write(large);
        },
      },
      "/echo": {
        POST: async (exchange) => {
          taken.push(exchange);
          bodies.push(await text(exchange.req));
          exchange.res.end("ok");
        },
      },
    },
    { host: "127.0.0.1", port: 0, receive_ms: 60_000, send_ms: 30_000, boundPipeline, ...options },
    {
      clock: unhurriedClock,
      renderError,
      access: ({ status }) => statuses.push(status),
      failed: (_, error) => {
        throw error;
      },
    },
  );
  const url = await server.listen();
  t.after(() => server.close(0, shuttingDown()));
  return { url, taken, statuses, bodies };
}

/** A connection that is read, and the text received on it. */
function connect(t: TestContext, url: string) {
  const socket = net.connect(Number(new URL(url).port), "127.0.0.1");
  let all = "";
  socket.on("data", (bytes: Buffer) => (all += bytes.toString("latin1")));
  socket.on("error", () => undefined);
  t.after(() => socket.destroy());
  return { socket, received: () => all };
}

describe("pipelined requests", () => {
  it("are bounded behind a large chunked body too, and continue as responses are sent", async (t) => {
    const { url, taken, bodies } = await startSite(t);
    const large = "b".repeat(300_000);
    const chunks = `${large.length.toString(16)}\r\n${large}\r\n0\r\n\r\n`;
    connect(t, url).socket.write(
      `${get("/held")}POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n` +
        chunks +
        get("/held").repeat(2_000),
    );
    await waitFor(() => bodies.length === 1, "the body");
    await waitFor(() => taken.length >= MAX_PIPELINED, "the bound to be reached");
    await settled(() => taken.length, "no more to be taken", 200);
    assert.equal(bodies[0]!.length, large.length);
    // The bytes are parsed in pieces of 2 KiB.
    const atMost = MAX_PIPELINED + 2_048 / get("/held").length;
    assert.ok(taken.length <= atMost, `${taken.length} behind the body`);
    const before = taken.length;
    for (const { res } of [...taken]) res.end();
    await waitFor(() => taken.length > before, "further requests to be taken");
  });
});

describe("unread responses", () => {
  it("close their connection if nothing was sent for send_ms, and are logged as 499", async (t) => {
    const { url, statuses } = await startSite(t, { send_ms: 200 });
    const closed = ["/large", "/begun"].map(async (path) => {
      const { socket } = connect(t, url);
      socket.pause();
      socket.write(get(path) + get("/small"));
      await within(once(socket, "connect"), "the connection");
      const closing = once(socket, "close");
      await waitFor(() => statuses.length === 4, "both connections to be given up");
      socket.resume();
      await within(closing, "the connection to be closed");
    });
    await Promise.all(closed);
    assert.deepEqual(statuses, [499, 499, 499, 499]);
  });

  it("to a client that reads slowly are sent completely", async (t) => {
    const { url, statuses, taken } = await startSite(t, { send_ms: 900 });
    const { socket, received } = connect(t, url);
    const size = () => received().length;
    socket.write(get("/large"));
    await waitFor(() => taken.length === 1, "the request");
    // Longer than send_ms in all, but never without progress for so long.
    for (let step = 1; step <= 5; step += 1) {
      await waitFor(() => size() >= step * 3_000_000, `step ${step} of the answer`);
      socket.pause();
      await settled(size, "the client to stand still", 200);
      socket.resume();
    }
    await waitFor(() => size() > 20_000_000, "the whole answer");
    await waitFor(() => statuses.length === 1, "its line in the log");
    assert.deepEqual(statuses, [200]);
  });

  it("that take long to begin do not close the connection", async (t) => {
    const { url, taken } = await startSite(t);
    const { socket, received } = connect(t, url);
    socket.write(get("/held"));
    await waitFor(() => taken.length === 1, "the request");
    taken[0]!.req.socket.emit("timeout"); // as Node emits it when nothing was sent for send_ms
    taken[0]!.res.end("late");
    await waitFor(() => received().endsWith("late"), "the answer");
  });
});

it("max_in_flight is released at once by a rejected chat request whose response waits behind another", async (t) => {
  const ask = (content: string) =>
    `POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${KEY}\r\nContent-Length: ${content.length}\r\n\r\n${content}`;
  const body = { model: "m", stream: true, messages: user("hi") };
  const { behaviour, finish } = held();
  const gateway = await startWith(t, { m: behaviour }, { server: { max_in_flight: 2 } });
  const { socket, received } = connect(t, gateway.url);
  socket.write(ask(JSON.stringify(body)) + ask("{}"));
  await waitFor(() => received().includes("Fi"), "the stream to begin");
  await waitFor(() => gateway.gateway.report().inFlight === 2, "the refusal to wait");
  const answer = await within(gateway.chat(body), "a second stream to be let in");
  assert.equal(answer.status, 200);
  assert.doesNotMatch(received(), /HTTP\/1\.1 400/, "the refusal waits its turn");
  finish();
  await answer.text();
});

/** A connection that Node's HTTP server parses, and the requests that it parsed. */
function startParser() {
  const requests: IncomingMessage[] = [];
  const live = new Set<IncomingMessage>();
  let mostAtOnce = 0;
  const socket = new Duplex({ read: () => undefined });
  const server = http.createServer((req) => {
    requests.push(req);
    live.add(req);
  });
  server.emit("connection", socket);
  const [parse] = socket.listeners("data") as [(bytes: Buffer) => void];
  socket.removeListener("data", parse).on("data", (bytes: Buffer) => {
    const before = requests.length;
    parse(bytes);
    mostAtOnce = Math.max(mostAtOnce, requests.length - before);
  });
  const connection: Bounded = {
    socket,
    live,
    get latest() {
      const req = requests.at(-1);
      return req && { req };
    },
  };
  const pipeline = boundPipeline(connection);
  return {
    socket,
    pipeline,
    requests,
    mostAtOnce: () => mostAtOnce,
    receive: (bytes: string) => socket.emit("data", Buffer.from(bytes)),
    answer() {
      live.delete([...live][0]!);
      pipeline.advance();
    },
  };
}

const post = (body: string) =>
  `POST / HTTP/1.1\r\nhost: x\r\ncontent-length: ${body.length}\r\n\r\n${body}`;

describe("boundPipeline", () => {
  it("parses the same requests, one at a time, wherever reads split the bytes", () => {
    const body = "a\r\n\r\nGET /inside HTTP/1.1\r\n\r\n";
    const bytes = get("/a") + post(body) + get("/b");
    for (let cut = 1; cut <= bytes.length; cut += 1) {
      const { receive, requests, mostAtOnce } = startParser();
      receive(bytes.slice(0, cut));
      receive(bytes.slice(cut));
      assert.ok(requests.every(({ complete }) => complete));
      const parsed = requests.map((req) => `${req.url}: ${req.read(body.length) ?? ""}`);
      assert.deepEqual(parsed, ["/a: ", `/: ${body}`, "/b: "], `cut at ${cut}`);
      assert.equal(mostAtOnce(), 1, `cut at ${cut}`);
    }
  });

  it("stops at the limit, pauses the socket, and continues with each response", () => {
    const { receive, requests, socket, answer } = startParser();
    receive(get("/a").repeat(MAX_PIPELINED + 2));
    assert.equal(requests.length, MAX_PIPELINED);
    assert.equal(socket.isPaused(), true);
    answer();
    assert.equal(requests.length, MAX_PIPELINED + 1);
    assert.equal(socket.isPaused(), true);
    answer();
    assert.equal(requests.length, MAX_PIPELINED + 2);
    assert.equal(socket.isPaused(), false);
  });

  it("reads the body of the last admitted request", () => {
    const { receive, requests } = startParser();
    receive(get("/a").repeat(MAX_PIPELINED - 1) + post("body") + get("/b"));
    assert.equal(requests.length, MAX_PIPELINED);
    assert.equal(requests.at(-1)!.complete, true);
  });

  it("parses nothing while Node pauses the socket, and continues when Node resumes it", () => {
    const { receive, requests, socket } = startParser();
    Object.assign(socket, { _paused: true });
    receive(get("/a"));
    assert.equal(requests.length, 0);
    Object.assign(socket, { _paused: false });
    socket.emit("resume");
    assert.equal(requests.length, 1);
  });

  it("discards bytes after a stop, and keeps reading", () => {
    const { receive, requests, socket, pipeline } = startParser();
    receive(get("/a").repeat(MAX_PIPELINED + 1));
    pipeline.stop();
    receive(get("/b"));
    assert.equal(requests.length, MAX_PIPELINED);
    assert.equal(socket.isPaused(), false);
  });

  it("rejects a socket without a parser", () => {
    const socket = new Duplex({ read: () => undefined });
    assert.throws(() => boundPipeline({ socket, live: { size: 0 } }), TypeError);
  });
});
