// Server-sent events. Reading: all framings of providers, split anywhere; common mistakes in
// framing, UTF-8 and buffering. Writing: when the head is sent, comments during silence,
// backpressure.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createEventReader } from "../../../src/core/http/event-reader.ts";
import { heldNow } from "../../support/effort.ts";
import { LONG } from "../../support/long.ts";
import { ServerResponse, type IncomingMessage } from "node:http";
import { Duplex } from "node:stream";
import type { Socket } from "node:net";
import { setImmediate as turnEnd } from "node:timers/promises";
import { Cancel } from "../../../src/core/http/cancel.ts";
import { createEventSink } from "../../../src/core/http/event-writer.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { within } from "../../support/wait.ts";

const TOO_LARGE = { name: "RangeError", message: "an event of more than 1000 characters" };

/** Reads the events of the bytes, passed in pieces of `size`. */
function read(bytes: Buffer, size = bytes.length): string[] {
  const reader = createEventReader();
  const events: string[] = [];
  for (let at = 0; at < bytes.length; at += size)
    events.push(...reader.push(bytes.subarray(at, at + size)));
  return [...events, ...reader.end()];
}

const cases: [name: string, text: string, events: string[]][] = [
  ["one event", "data: a\n\n", ["a"]],
  ["no space after the colon", "data:a\n\n", ["a"]],
  ["only one space is dropped", "data:  a\n\n", [" a"]],
  ["CRLF", "data: a\r\n\r\ndata: b\r\n\r\n", ["a", "b"]],
  ["CR", "data: a\r\rdata: b\r\r", ["a", "b"]],
  ["mixed line ends", "data: a\r\n\ndata: b\n\r\ndata: c\r\n\r", ["a", "b", "c"]],
  ["comments", ": keep-alive\n\ndata: a\n: between\ndata: b\n\n:\n\n", ["a\nb"]],
  ["several data lines", "data: a\ndata: b\ndata:\n\n", ["a\nb\n"]],
  ["several data lines with CRLF", "data: a\r\ndata: b\r\n\r\n", ["a\nb"]],
  ["events without data are ignored", "data\n\ndata:\n\ndata: a\n\n", ["a"]],
  ["other fields", "event: ping\nid: 7\nretry: 10\ndata: a\n\nevent: empty\n\n", ["a"]],
  ["fields that only begin like data", "database: x\ndata-x: y\n\ndata: a\n\n", ["a"]],
  ["an error in a separate field", 'error: {"code":400}\n\ndata: a\n\n', [' {"code":400}', "a"]],
  [
    "an error without a field",
    'data: a\r\n\r\n{\r\n  "error": {\r\n    "code": 503\r\n  }\r\n}\r\n',
    ["a", '{\n  "error": {\n    "code": 503\n  }\n}'],
  ],
  [
    "lines outside of data, in an event that has data",
    'data: {}\n[DONE]\n\n{"x":1}\ndata: b\n\ndata: c\nerror: {}\n\ndata: d\n\n',
    ["{}", "b", "c", "d"],
  ],
  ["an error that is not JSON", "error: oops\n\ndata: a\n\n", ["a"]],
  ["no blank line at the end", "data: a\n\ndata: b\n", ["a", "b"]],
  ["no line end at the end", "data: a\n\ndata: b", ["a", "b"]],
  ["a byte order mark", "\ufeffdata: a\n\n", ["a"]],
  ["a byte order mark inside is text", "data: \ufeffa\n\n", ["\ufeffa"]],
  ["blank lines", "\n\n\ndata: a\n\n\n\n", ["a"]],
  [
    "multi-byte characters",
    "data: \u00e9 \u20ac \u{1f600} \u{1d11e}\n\ndata: \u6f22\u5b57\n\n",
    ["\u00e9 \u20ac \u{1f600} \u{1d11e}", "\u6f22\u5b57"],
  ],
  ["nothing", "", []],
];

describe("event reader", () => {
  for (const [name, text, events] of cases) {
    it(`${name}, in pieces of every size`, () => {
      const bytes = Buffer.from(text);
      for (let size = 1; size <= Math.max(1, bytes.length); size += 1)
        assert.deepEqual(read(bytes, size), events, `pieces of ${size}`);
    });
  }

  it("reads a line of 1 MB, and one of exactly the bound; one byte more is an error", () => {
    const large = read(Buffer.from(`data: ${"x".repeat(1_000_000)}\n\n`), 4_096);
    assert.equal(large[0]!.length, 1_000_000);
    const line = (size: number) => Buffer.from(`data: ${"x".repeat(size - 6)}`);
    assert.deepEqual(createEventReader(1_000).push(line(1_000)), []);
    assert.throws(() => createEventReader(1_000).push(line(1_001)), TOO_LARGE);
  });

  it("bounds each event by itself, also if it has many lines or empty ones", () => {
    const next = createEventReader(1_000);
    for (let times = 0; times < 3; times += 1)
      assert.deepEqual(next.push(Buffer.from(`${"data:\n".repeat(150)}\n`)), ["\n".repeat(149)]);
    for (const line of ["data: x\n", "data:\n"]) {
      const reader = createEventReader(1_000);
      const most = Math.floor(1_000 / (line.length - 1));
      for (let lines = 0; lines < most; lines += 1) reader.push(Buffer.from(line));
      assert.throws(() => reader.push(Buffer.from(line)), TOO_LARGE);
    }
  });

  const BYTES = LONG ? 50_000_000 : 10_000_000;
  /** The size of the events in bytes, and of the last one. */
  const EVENT = 8_000_000;
  const LAST = BYTES % EVENT;
  it(`does linear work for ${BYTES} bytes in writes of 16`, () => {
    // Not timed: quadratic work would not end in time. Memory must not grow either.
    const reader = createEventReader();
    const piece = Buffer.from("0123456789abcdef");
    const before = heldNow();
    let events = 0;
    for (let sent = 0; sent < BYTES; sent += piece.length) {
      if (sent % EVENT === 0)
        events += reader.push(Buffer.from(`${sent === 0 ? "" : "\n\n"}data: `)).length;
      events += reader.push(piece).length;
    }
    const held = heldNow() - before;
    events += reader.end().length;
    assert.equal(events, Math.ceil(BYTES / EVENT));
    assert.ok(held < 8 * LAST, `${held} bytes are held of an event of ${LAST}`);
  });
});

const KEEP_ALIVE_MS = 15_000;

/** A sink on a real response of Node, whose socket accepts bytes only while it is not held. */
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
  it("sends a comment after each silent interval, and the head first if it was not sent", async () => {
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

  it("writes the head with the first events, and each later batch, at once as one chunk", async () => {
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
    // Node writes an empty text when a response ends.
    const [first = "", ...rest] = writes().filter((text) => text !== "");
    assert.match(first, /^HTTP\/1\.1 200 OK\r\n.*\r\nTransfer-Encoding: chunked\r\n/s);
    assert.ok(first.endsWith("\r\n\r\n9\r\ndata: a\n\n\r\n"), first);
    assert.deepEqual(rest, [
      "17\r\ndata: \u00e9\u{1f600}\n\ndata: c\n\n\r\n",
      "e\r\n: keep-alive\n\n\r\n",
      "e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n",
    ]);
  });

  it("escapes what some clients take for the end of a line", async () => {
    const { sink, body } = start({ minor: 1 });
    sink.write(`data: ${JSON.stringify("é\u0085\u2028\u2029")}\n\n`);
    sink.end("data: \u2029\n\n");
    sink.release();
    await turnEnd();
    const [first, last] = [String.raw`"é\u0085\u2028\u2029"`, String.raw`\u2029`];
    const chunks = `1e\r\ndata: ${first}\n\n\r\ne\r\ndata: ${last}\n\n\r\n`;
    assert.equal(body(), `${chunks}0\r\n\r\n`);
  });

  it("ends a chunked response once, even if nothing was left to send", async () => {
    const { sink, body } = start({ minor: 1 });
    sink.write("data: a\n\n");
    sink.end("");
    sink.release();
    await turnEnd();
    assert.equal(body(), "9\r\ndata: a\n\n\r\n0\r\n\r\n");
  });

  it("waits for a client without room, and adds no comments to unread data", async () => {
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
