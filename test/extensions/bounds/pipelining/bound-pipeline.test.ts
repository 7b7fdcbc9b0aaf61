// How the bytes of a connection reach Node's parser: a request at a time, wherever reads cut them,
// and no further while enough requests wait.

import assert from "node:assert/strict";
import { Duplex } from "node:stream";
import { describe, it } from "node:test";
import {
  boundPipeline,
  MAX_PIPELINED,
  type Bounded,
} from "../../../../src/extensions/bounds/pipelining/index.ts";

interface ParsedRequest {
  readonly headers: { readonly "content-length"?: string };
  complete: boolean;
}

/** A connection whose parser knows heads and bodies of stated length, and records its pieces. */
function start() {
  const pieces: string[] = [];
  const requests: ParsedRequest[] = [];
  let answered = 0;
  let mostAtOnce = 0;
  let text = "";
  let bodyLeft = 0;
  const socket = new Duplex({ read: () => undefined });

  function parseHead(): boolean {
    const end = text.indexOf("\r\n\r\n");
    if (end === -1) return false;
    const length = /content-length: (\d+)/.exec(text.slice(0, end))?.[1];
    text = text.slice(end + 4);
    bodyLeft = Number(length ?? 0);
    const headers = length === undefined ? {} : { "content-length": length };
    requests.push({ headers, complete: bodyLeft === 0 });
    return true;
  }
  function parseBody(): boolean {
    const size = Math.min(bodyLeft, text.length);
    if (size === 0) return false;
    text = text.slice(size);
    bodyLeft -= size;
    if (bodyLeft === 0) requests.at(-1)!.complete = true;
    return true;
  }
  socket.on("data", (bytes: Buffer) => {
    pieces.push(bytes.toString());
    text += bytes.toString();
    const before = requests.length;
    while (bodyLeft > 0 ? parseBody() : parseHead());
    mostAtOnce = Math.max(mostAtOnce, requests.length - before);
  });
  const connection: Bounded = {
    socket,
    live: {
      get size() {
        return requests.length - answered;
      },
    },
    get latest() {
      const req = requests.at(-1);
      return req && { req };
    },
  };
  const pipeline = boundPipeline(connection);
  return {
    socket,
    pipeline,
    pieces,
    requests,
    mostAtOnce: () => mostAtOnce,
    receive: (bytes: string) => socket.emit("data", Buffer.from(bytes)),
    answer() {
      answered += 1;
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
      const { receive, requests, pieces, mostAtOnce } = start();
      receive(bytes.slice(0, cut));
      receive(bytes.slice(cut));
      assert.equal(requests.length, 3, `cut at ${cut}`);
      assert.ok(requests.every(({ complete }) => complete));
      assert.equal(pieces.join(""), bytes);
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
