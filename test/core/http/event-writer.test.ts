// Server-sent events as they are written: when the head is sent, comments in silence, backpressure.

import assert from "node:assert/strict";
import { ServerResponse, type IncomingMessage } from "node:http";
import { Duplex } from "node:stream";
import type { Socket } from "node:net";
import { describe, it } from "node:test";
import { setImmediate as turnEnd } from "node:timers/promises";
import { Cancel } from "../../../src/core/http/cancel.ts";
import { createEventSink } from "../../../src/core/http/event-writer.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { within } from "../../support/wait.ts";

const KEEP_ALIVE_MS = 15_000;

/** A sink over a response of Node's own, whose socket takes bytes only while it is not held. */
function start({ minor = 0 } = {}) {
  let text = "";
  const writes: string[] = [];
  let held: (() => void) | undefined;
  let isHeld = false;
  const socket = new Duplex({
    read: () => undefined,
    write(bytes: Buffer, _, done) {
      text += bytes.toString();
      writes.push(bytes.toString());
      if (isHeld) held = done;
      else done();
    },
  });
  const request = { method: "GET", httpVersionMajor: 1, httpVersionMinor: minor, headers: {} };
  const res = new ServerResponse(request as IncomingMessage);
  res.sendDate = false;
  res.assignSocket(socket as Socket);
  socket.on("drain", () => res.emit("drain")); // As Node's server does.
  const clock = createFakeClock();
  const cancel = new Cancel();
  const comments = { ms: KEEP_ALIVE_MS, events: ": keep-alive\n\n" };
  return {
    res,
    clock,
    cancel,
    sink: createEventSink(res, comments, cancel, clock),
    head: () => text.slice(0, text.indexOf("\r\n\r\n")),
    body: () => text.slice(text.indexOf("\r\n\r\n") + 4),
    writes: () => writes,
    hold() {
      isHeld = true;
    },
    letGo() {
      isHeld = false;
      held?.();
    },
  };
}

describe("event sink", () => {
  it("sends a comment after each time of silence, with the head if there was none", async () => {
    const { sink, clock, head, body } = start();
    clock.advance(KEEP_ALIVE_MS - 1);
    await turnEnd();
    assert.equal(body(), "");
    clock.advance(1);
    await turnEnd();
    assert.match(head(), /^HTTP\/1\.1 200 OK\r\n/);
    clock.advance(KEEP_ALIVE_MS);
    await turnEnd();
    assert.equal(body(), ": keep-alive\n\n".repeat(2));
    clock.advance(KEEP_ALIVE_MS - 1);
    sink.write("data: a\n\n");
    clock.advance(KEEP_ALIVE_MS - 1);
    await turnEnd();
    sink.release();
    clock.advance(10 * KEEP_ALIVE_MS);
    await turnEnd();
    assert.equal(body(), `${": keep-alive\n\n".repeat(2)}data: a\n\n`);
    assert.equal(clock.pending(), 0);
  });

  it("writes the head and the first events, and each later batch, at once as a chunk", async () => {
    const { sink, writes, clock } = start({ minor: 1 });
    sink.write("data: a\n\n");
    await turnEnd();
    sink.write("data: \u00e9\u{1f600}\n\ndata: c\n\n");
    await turnEnd();
    clock.advance(KEEP_ALIVE_MS);
    await turnEnd();
    sink.end("data: [DONE]\n\n");
    sink.release();
    await turnEnd();
    // Node writes an empty text with the end of a response.
    const [first = "", ...rest] = writes().filter((text) => text !== "");
    assert.match(first, /^HTTP\/1\.1 200 OK\r\n.*\r\nTransfer-Encoding: chunked\r\n/s);
    assert.ok(first.endsWith("\r\n\r\n9\r\ndata: a\n\n\r\n"), first);
    assert.deepEqual(rest, [
      "17\r\ndata: \u00e9\u{1f600}\n\ndata: c\n\n\r\n",
      "e\r\n: keep-alive\n\n\r\n",
      "e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n",
    ]);
  });

  it("ends a chunked response once, also where nothing was left to send", async () => {
    const { sink, body } = start({ minor: 1 });
    sink.write("data: a\n\n");
    sink.end("");
    sink.release();
    await turnEnd();
    assert.equal(body(), "9\r\ndata: a\n\n\r\n0\r\n\r\n");
  });

  it("waits for a client that has no room, and adds no comments to what it has not read", async () => {
    const { sink, clock, body, hold, letGo, res } = start();
    hold();
    const large = `data: ${"x".repeat(100_000)}\n\n`;
    const room = sink.write(large);
    assert.ok(room instanceof Promise);
    assert.equal(res.writableNeedDrain, true);
    clock.advance(3 * KEEP_ALIVE_MS);
    await turnEnd();
    letGo();
    await within(room, "room for more");
    assert.doesNotMatch(body(), /keep-alive/);
    sink.release();
  });

  it("stops waiting for a client that has left", async () => {
    const { sink, cancel, hold } = start();
    hold();
    const room = sink.write(`data: ${"x".repeat(100_000)}\n\n`);
    cancel.abort(new Error("left"));
    await assert.rejects(within(room!, "the rejection"), { name: "AbortError" });
    sink.release();
  });
});
