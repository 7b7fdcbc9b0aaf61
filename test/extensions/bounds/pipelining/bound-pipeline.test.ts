// How the bytes of a connection reach Node's parser: a request at a time, and no further while
// enough requests wait. What the real parser makes of it is tried in pipelining.test.ts.

import assert from "node:assert/strict";
import { Duplex } from "node:stream";
import { describe, it } from "node:test";
import {
  boundPipeline,
  MAX_PIPELINED,
} from "../../../../src/extensions/bounds/pipelining/bound-pipeline.ts";

const REQUEST = "GET / HTTP/1.1\r\nhost: x\r\n\r\n";

/** A connection whose parser knows heads only, and records its pieces. None is answered. */
function start() {
  const pieces: string[] = [];
  const socket = new Duplex({ read: () => undefined });
  socket.on("data", (bytes: Buffer) => pieces.push(bytes.toString()));
  const parsed = () => pieces.join("").split("\r\n\r\n").length - 1;
  const live = {
    get size() {
      return parsed();
    },
  };
  const pipeline = boundPipeline({ socket, live });
  const receive = (bytes: string) => socket.emit("data", Buffer.from(bytes));
  return { socket, pipeline, pieces, parsed, receive };
}

describe("boundPipeline", () => {
  it("parses one request at a time, wherever reads cut the bytes", () => {
    for (let cut = 1; cut < 3 * REQUEST.length; cut += 1) {
      const { receive, pieces, parsed } = start();
      const bytes = REQUEST.repeat(3);
      receive(bytes.slice(0, cut));
      receive(bytes.slice(cut));
      assert.equal(parsed(), 3, `cut at ${cut}`);
      assert.equal(pieces.join(""), bytes);
      assert.ok(pieces.every((piece) => piece.length <= REQUEST.length));
    }
  });

  it("stops at the bound and pauses the socket; throws away what follows a stop", () => {
    const { receive, parsed, socket, pipeline } = start();
    receive(REQUEST.repeat(MAX_PIPELINED + 1));
    assert.deepEqual([parsed(), socket.isPaused()], [MAX_PIPELINED, true]);
    pipeline.stop();
    receive(REQUEST);
    assert.deepEqual([parsed(), socket.isPaused()], [MAX_PIPELINED, false]);
  });

  it("parses nothing while Node holds the socket, and goes on when Node resumes it", () => {
    const { receive, parsed, socket } = start();
    Object.assign(socket, { _paused: true });
    receive(REQUEST);
    assert.equal(parsed(), 0);
    Object.assign(socket, { _paused: false });
    socket.emit("resume");
    assert.equal(parsed(), 1);
  });

  it("refuses a socket that nobody parses", () => {
    const socket = new Duplex({ read: () => undefined });
    assert.throws(() => boundPipeline({ socket, live: { size: 0 } }), TypeError);
  });
});
