// Requests that share a connection: how many of them the gateway takes at once, what happens to
// answers that nobody reads, and which requests count as in flight.

import assert from "node:assert/strict";
import { once } from "node:events";
import net from "node:net";
import { describe, it, type TestContext } from "node:test";
import { renderError, shuttingDown } from "../../../../src/core/error-responses.ts";
import type { Exchange } from "../../../../src/core/http/exchange.ts";
import { createServer } from "../../../../src/core/http/server.ts";
import {
  boundPipeline,
  MAX_PIPELINED,
} from "../../../../src/extensions/bounds/pipelining/index.ts";
import { configFor, KEY, startGateway, user } from "../../../support/gateway.ts";
import { held, startProvider } from "../../../support/provider.ts";
import { settled, waitFor, within } from "../../../support/wait.ts";
import { unhurriedClock } from "../../../support/unhurried-clock.ts";

const get = (path: string, id: string | number = "") =>
  `GET ${path} HTTP/1.1\r\nHost: x\r\nX-Request-Id: id-${id}\r\n\r\n`;
const idsIn = (text: string): string[] =>
  [...text.matchAll(/\r\nX-Request-Id: (id-\d+)\r\n/g)].map((found) => found[1]!);
const idsTo = (count: number): string[] => Array.from({ length: count }, (_, at) => `id-${at}`);

interface Site {
  readonly url: string;
  /** Requests that a handler was called for, oldest first. */
  readonly taken: Exchange[];
  readonly statuses: number[];
  readonly bodies: string[];
}

/**
 * A server of our own, whose GET /held is answered by whoever holds its exchange, and which sends
 * /large in one piece.
 */
async function startSite(t: TestContext, options: { send_ms?: number } = {}): Promise<Site> {
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
          let body = "";
          for await (const piece of exchange.req) body += piece;
          bodies.push(body);
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

function connect(t: TestContext, url: string) {
  const socket = net.connect(Number(new URL(url).port), "127.0.0.1");
  socket.on("error", () => undefined);
  t.after(() => socket.destroy());
  return socket;
}

/** A connection that is read, and the text that came on it. */
function reading(t: TestContext, url: string) {
  const socket = connect(t, url);
  let text = "";
  socket.on("data", (bytes: Buffer) => (text += bytes.toString("latin1")));
  return { socket, text: () => text };
}

describe("pipelined requests", () => {
  it("are taken no further than the bound while their answers are awaited, and go on as these come", async (t) => {
    const { url, taken } = await startSite(t);
    const { socket, text } = reading(t, url);
    const count = 3 * MAX_PIPELINED;
    const ids = idsTo(count);
    socket.write(ids.map((_, at) => get("/held", at)).join(""));
    await waitFor(() => taken.length === MAX_PIPELINED, "the bound to be reached");
    await settled(() => taken.length, "no more to be taken", 200);
    assert.equal(taken.length, MAX_PIPELINED);
    for (let at = 0; at < count; at += 1) {
      const { res } = await waitFor(() => taken[at], `request ${at} to be taken`);
      assert.ok(taken.length <= at + MAX_PIPELINED, `${taken.length} taken, ${at} answered`);
      res.end("held");
    }
    await waitFor(() => idsIn(text()).length === count, "all answers");
    assert.deepEqual(idsIn(text()), ids);
  });

  it("are bounded behind a large body in chunks, whose end is found by parsing", async (t) => {
    const { url, taken, bodies } = await startSite(t);
    const large = "b".repeat(300_000);
    const chunks = `${large.length.toString(16)}\r\n${large}\r\n0\r\n\r\n`;
    const socket = connect(t, url);
    socket.write(
      `${get("/held")}POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n` +
        chunks +
        get("/held").repeat(2_000),
    );
    await waitFor(() => bodies.length === 1, "the body");
    await waitFor(() => taken.length >= MAX_PIPELINED, "the bound to be reached");
    await settled(() => taken.length, "no more to be taken", 200);
    assert.equal(bodies[0]!.length, large.length);
    // It is parsed in pieces of 2 KiB.
    const atMost = MAX_PIPELINED + 2_048 / get("/held").length;
    assert.ok(taken.length <= atMost, `${taken.length} behind the body`);
  });
});

describe("answers that nobody reads", () => {
  it("end their connection when nothing was taken for send_ms, and are logged as 499", async (t) => {
    const { url, statuses } = await startSite(t, { send_ms: 200 });
    const closed = ["/large", "/begun"].map(async (path) => {
      const socket = connect(t, url);
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

  it("are not those of a client that reads slowly: it gets all of it", async (t) => {
    const { url, statuses, taken } = await startSite(t, { send_ms: 900 });
    const socket = connect(t, url);
    let size = 0;
    socket.on("data", (bytes: Buffer) => {
      size += bytes.length;
    });
    socket.write(get("/large"));
    await waitFor(() => taken.length === 1, "the request");
    // Longer than send_ms in all, and never so long in one piece.
    for (let step = 1; step <= 5; step += 1) {
      await waitFor(() => size >= step * 3_000_000, `step ${step} of the answer`);
      socket.pause();
      await settled(() => size, "the client to stand still", 200);
      socket.resume();
    }
    await waitFor(() => size > 20_000_000, "the whole answer");
    await waitFor(() => statuses.length === 1, "its line in the log");
    assert.deepEqual(statuses, [200]);
  });

  it("are not those that take long to be made: silence before an answer ends nothing", async (t) => {
    const { url, taken } = await startSite(t);
    const { socket, text } = reading(t, url);
    socket.write(get("/held"));
    await waitFor(() => taken.length === 1, "the request");
    taken[0]!.req.socket.emit("timeout"); // as Node does when nothing has passed for send_ms
    taken[0]!.res.end("late");
    await waitFor(() => text().endsWith("late"), "the answer");
  });
});

describe("max_in_flight", () => {
  const ask = (content: string) =>
    `POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${KEY}\r\nContent-Length: ${content.length}\r\n\r\n${content}`;
  const body = { model: "m", stream: true, messages: user("hi") };

  /** A gateway with so many places, whose model is held. */
  async function startHeld(t: TestContext, max_in_flight: number) {
    const { behaviour, finish } = held();
    const provider = await startProvider(t, { m: behaviour });
    const over = { server: { max_in_flight } };
    const gateway = await startGateway(t, configFor(provider.url, ["m"], over));
    return { ...gateway, finish, inFlight: () => gateway.gateway.report().inFlight };
  }

  it("is free at once when a chat request is refused whose answer waits behind another", async (t) => {
    const gateway = await startHeld(t, 2);
    const { socket, text } = reading(t, gateway.url);
    socket.write(ask(JSON.stringify(body)) + ask("{}"));
    await waitFor(() => text().includes("Fi"), "the stream to begin");
    await waitFor(() => gateway.inFlight() === 2, "the refusal to wait");
    const answer = await within(gateway.chat(body), "a second stream to be let in");
    assert.equal(answer.status, 200);
    assert.doesNotMatch(text(), /HTTP\/1\.1 400/, "the refusal waits");
    gateway.finish();
    await answer.text();
  });
});
