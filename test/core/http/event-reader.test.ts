// Server-sent events, read: every framing that a provider may use, cut anywhere. The usual
// mistakes of framing, UTF-8 and buffering.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createEventReader } from "../../../src/core/http/event-reader.ts";
import { heldNow } from "../../support/effort.ts";
import { LONG } from "../../support/long.ts";

const TOO_LARGE = { name: "RangeError", message: "an event of more than 1000 characters" };

/** The events of the bytes, given in pieces of `size`. */
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
  ["events without data are none", "data\n\ndata:\n\ndata: a\n\n", ["a"]],
  ["other fields", "event: ping\nid: 7\nretry: 10\ndata: a\n\nevent: empty\n\n", ["a"]],
  ["fields that only begin like data", "database: x\ndata-x: y\n\ndata: a\n\n", ["a"]],
  ["an error in a field of its own", 'error: {"code":400}\n\ndata: a\n\n', [' {"code":400}', "a"]],
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
  ["an error that is no JSON", "error: oops\n\ndata: a\n\n", ["a"]],
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

  it("a line of 1 MB, and one of exactly the bound; one past it is an error", () => {
    const large = read(Buffer.from(`data: ${"x".repeat(1_000_000)}\n\n`), 4_096);
    assert.equal(large[0]!.length, 1_000_000);
    const line = (size: number) => Buffer.from(`data: ${"x".repeat(size - 6)}`);
    assert.deepEqual(createEventReader(1_000).push(line(1_000)), []);
    assert.throws(() => createEventReader(1_000).push(line(1_001)), TOO_LARGE);
  });

  it("the bound holds for one event of many lines, also of empty ones, and anew for the next", () => {
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
  /** The size of an event, in bytes, and that of the last. */
  const EVENT = 8_000_000;
  const LAST = BYTES % EVENT;
  it(`${BYTES} bytes in writes of 16: work grows with the bytes, not with their square`, () => {
    // Not timed: with work that grows with the square it would not end in time, and what is held
    // must not grow either.
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
