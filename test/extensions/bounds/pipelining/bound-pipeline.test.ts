// How the bytes of a connection reach Node's parser: a request at a time, wherever reads cut them,
// and no further while enough requests wait.

import assert from "node:assert/strict";
import http, { type IncomingMessage } from "node:http";
import { Duplex } from "node:stream";
import { describe, it } from "node:test";
import {
  boundPipeline,
  MAX_PIPELINED,
  type Bounded,
} from "../../../../src/extensions/bounds/pipelining/index.ts";

/** A connection that Node's HTTP server parses, and the requests that came out of it. */
function start() {
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

const get = (path: string) => `GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`;
const post = (body: string) =>
  `POST / HTTP/1.1\r\nhost: x\r\ncontent-length: ${body.length}\r\n\r\n${body}`;

describe("boundPipeline", () => {
  it("parses the same requests, one at a time, wherever reads cut the bytes", () => {
    const body = "a\r\n\r\nGET /inside HTTP/1.1\r\n\r\n";
    const bytes = get("/a") + post(body) + get("/b");
    for (let cut = 1; cut <= bytes.length; cut += 1) {
      const { receive, requests, mostAtOnce } = start();
      receive(bytes.slice(0, cut));
      receive(bytes.slice(cut));
      assert.ok(requests.every(({ complete }) => complete));
      const parsed = requests.map((req) => `${req.url}: ${req.read(body.length) ?? ""}`);
      assert.deepEqual(parsed, ["/a: ", `/: ${body}`, "/b: "], `cut at ${cut}`);
      assert.equal(mostAtOnce(), 1, `cut at ${cut}`);
    }
  });

  it("stops at the bound, pauses the socket, and goes on with each response", () => {
    const { receive, requests, socket, answer } = start();
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

  it("reads the body of the last request that is let in", () => {
    const { receive, requests } = start();
    receive(get("/a").repeat(MAX_PIPELINED - 1) + post("body") + get("/b"));
    assert.equal(requests.length, MAX_PIPELINED);
    assert.equal(requests.at(-1)!.complete, true);
  });

  it("parses nothing while Node holds the socket, and goes on when Node resumes it", () => {
    const { receive, requests, socket } = start();
    Object.assign(socket, { _paused: true });
    receive(get("/a"));
    assert.equal(requests.length, 0);
    Object.assign(socket, { _paused: false });
    socket.emit("resume");
    assert.equal(requests.length, 1);
  });

  it("throws away what follows a stop, and keeps reading", () => {
    const { receive, requests, socket, pipeline } = start();
    receive(get("/a").repeat(MAX_PIPELINED + 1));
    pipeline.stop();
    receive(get("/b"));
    assert.equal(requests.length, MAX_PIPELINED);
    assert.equal(socket.isPaused(), false);
  });

  it("refuses a socket that nobody parses", () => {
    const socket = new Duplex({ read: () => undefined });
    assert.throws(() => boundPipeline({ socket, live: { size: 0 } }), TypeError);
  });
});
