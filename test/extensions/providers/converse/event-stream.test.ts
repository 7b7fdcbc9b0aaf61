// Amazon's event stream: any split of its bytes gives the same events, and any damage is detected.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { eventStream } from "../../../../src/extensions/providers/converse/event-stream.ts";
import { eventFrame, exceptionFrame, frame } from "../../../support/event-stream.ts";

const FRAMES = [
  eventFrame("messageStart", { role: "assistant" }),
  eventFrame("contentBlockDelta", { contentBlockIndex: 0, delta: { text: "Grüße" } }),
  exceptionFrame("throttlingException", "slow down"),
  eventFrame("metadata", ""),
];
const EVENTS = [
  '{"messageStart":{"role":"assistant"}}',
  '{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"text":"Grüße"}}}',
  '{"throttlingException":{"message":"slow down"}}',
  '{"metadata":{}}',
];
const BYTES = Buffer.concat(FRAMES);

const { crc32 } = process.getBuiltinModule("node:zlib");
/** The beginning of a frame with this length and this length of headers. */
function prelude(length: number, headers = 0): Buffer {
  const bytes = Buffer.alloc(12);
  bytes.writeUInt32BE(length, 0);
  bytes.writeUInt32BE(headers, 4);
  bytes.writeUInt32BE(crc32(bytes.subarray(0, 8)), 8);
  return bytes;
}

/** The events in these pieces. */
function read(...pieces: readonly Uint8Array[]): string[] {
  const reader = eventStream.createReader();
  const events = pieces.flatMap((piece) => reader.push(piece));
  return [...events, ...reader.end()];
}

describe("an event stream", () => {
  it("is read the same however its bytes are split", () => {
    for (let cut = 0; cut <= BYTES.length; cut += 1)
      assert.deepEqual(read(BYTES.subarray(0, cut), BYTES.subarray(cut)), EVENTS, `cut at ${cut}`);
    assert.deepEqual(read(...[...BYTES].map((byte) => Uint8Array.of(byte))), EVENTS);
  });

  it("yields each event as soon as it is complete", () => {
    const reader = eventStream.createReader();
    assert.deepEqual(reader.push(FRAMES[0]!.subarray(0, -1)), []);
    assert.deepEqual(reader.push(FRAMES[0]!.subarray(-1)), [EVENTS[0]]);
  });

  it("is rejected if any byte of it was changed", () => {
    for (let at = 0; at < BYTES.length; at += 1) {
      const damaged = Buffer.from(BYTES);
      damaged[at] = damaged[at]! ^ 1;
      assert.throws(() => read(damaged), /the event stream is broken/, `byte ${at}`);
    }
  });

  it("is rejected if it ends inside a frame", () => {
    for (let end = 1; end < FRAMES[0]!.length; end += 1)
      assert.throws(() => read(BYTES.subarray(0, end)), /it ends inside a frame/);
  });

  it("is rejected if a frame states a length beyond 16 MiB, before its bytes are stored", () => {
    const long = frame({}, "x".repeat(100));
    const fits = frame({ ":event-type": "a" }, JSON.stringify("x".repeat(1_000_000)));
    assert.equal(read(fits).length, 1);
    assert.deepEqual(read(long), [], "a frame without a type is no event");
    assert.throws(() => read(prelude(16 * 1024 * 1024 + 1)), /a frame of 16777217 bytes/);
    assert.throws(() => read(prelude(15)), /a length is wrong/);
  });

  it("may have headers of other types, and rejects those that are cut", () => {
    const headers = Buffer.concat([
      Buffer.from([1, 97, 0]), // true
      Buffer.from([1, 98, 4, 0, 0, 0, 1]), // an integer
      Buffer.from([1, 99, 6, 0, 2, 1, 2]), // bytes
    ]);
    const plain = eventFrame("ping", {});
    const body = plain.subarray(12, -4);
    const joined = (all: Buffer) => {
      const length = 16 + all.length + body.length;
      const beginning = Buffer.concat([
        prelude(length, all.length + plain.readUInt32BE(4)),
        all,
        body,
      ]);
      const checksum = Buffer.alloc(4);
      checksum.writeUInt32BE(crc32(beginning));
      return Buffer.concat([beginning, checksum]);
    };
    assert.deepEqual(read(joined(headers)), ['{"ping":{}}']);
    assert.throws(() => read(joined(Buffer.from([200, 97]))), /its headers are cut|is broken/);
  });
});
