// Amazon's event stream: frames of bytes, each with two checksums. A frame is the total length, the
// length of its headers, the CRC-32 of these two, the headers, the payload, and the CRC-32 of all
// that. Each becomes a JSON text, `{"NAME": PAYLOAD}`, by the name of its event.
import { crc32 } from "node:zlib";
import type { EventReader, Framing } from "../../../core/http/event-reader.ts";
import { ProviderError } from "../../../core/providers/provider-error.ts";

/** Amazon's own bound. A stream that claims a longer frame cannot fill the memory. */
const MAX_FRAME_BYTES = 16 * 1024 * 1024;
/** Length, length of the headers, and their checksum. */
const PRELUDE_BYTES = 12;
const CHECKSUM_BYTES = 4;
/** The type of string values. No header with a value of another type is read. */
const STRING = 7;
/**
 * The bytes of a value by its type. Undefined: the value, of bytes or a STRING, states its length.
 */
const VALUE_BYTES = [0, 0, 1, 2, 4, 8, undefined, undefined, 8, 16];

export const eventStream: Framing = {
  mediaType: "application/vnd.amazon.eventstream",
  createReader,
};

const broken = (what: string): ProviderError =>
  new ProviderError("upstream_error", `the event stream is broken: ${what}`);

function createReader(): EventReader {
  /** Bytes of an incomplete frame. They are joined once per frame, not once per piece. */
  let pieces: Uint8Array[] = [];
  let size = 0;
  /** The size of the next frame, or of its prelude until that has arrived. */
  let needed = PRELUDE_BYTES;

  /** The error of the bytes after the events that were returned. */
  let failure: unknown;

  /** Adds the events of complete frames to `events`. Returns the bytes after them. */
  function takeFrames(bytes: Buffer, events: string[]): Buffer {
    let held = bytes;
    for (needed = neededOf(held); held.length >= needed; needed = neededOf(held)) {
      events.push(...eventsIn(held.subarray(0, needed)));
      held = held.subarray(needed);
    }
    return held;
  }

  return {
    push(bytes) {
      if (failure !== undefined) throw failure;
      pieces.push(bytes);
      size += bytes.length;
      if (size < needed) return [];
      const events: string[] = [];
      try {
        pieces = [takeFrames(Buffer.concat(pieces), events)];
        size = pieces[0]!.length;
      } catch (error) {
        // Return complete events first. The next call throws the error.
        if (events.length === 0) throw error;
        failure = error;
      }
      return events;
    },
    end() {
      if (failure !== undefined) throw failure;
      if (size > 0) throw broken("it ends inside a frame");
      return [];
    },
  };
}

/** The size of the first frame, or of its prelude until that has arrived. */
function neededOf(held: Buffer): number {
  if (held.length < PRELUDE_BYTES) return PRELUDE_BYTES;
  if (crc32(held.subarray(0, 8)) !== held.readUInt32BE(8)) throw broken("a checksum is wrong");
  const length = held.readUInt32BE(0);
  const headers = held.readUInt32BE(4);
  if (length > MAX_FRAME_BYTES) throw broken(`a frame of ${length} bytes`);
  if (headers + PRELUDE_BYTES + CHECKSUM_BYTES > length) throw broken("a length is wrong");
  return length;
}

/** The event of a complete frame as JSON. None: the frame only keeps the stream open. */
function eventsIn(frame: Buffer): string[] {
  const end = frame.length - CHECKSUM_BYTES;
  if (crc32(frame.subarray(0, end)) !== frame.readUInt32BE(end))
    throw broken("a checksum is wrong");
  const payloadAt = PRELUDE_BYTES + frame.readUInt32BE(4);
  const headers = headersIn(frame.subarray(PRELUDE_BYTES, payloadAt));
  const errorCode = headers.get(":error-code");
  if (errorCode !== undefined) return [errorEvent(errorCode, headers.get(":error-message"))];
  const name = headers.get(":event-type") ?? headers.get(":exception-type");
  if (name === undefined || !/^\w+$/.test(name)) return [];
  return [`{"${name}":${frame.toString("utf8", payloadAt, end) || "{}"}}`];
}

/** An error other than the API's own exceptions has its code and its text in headers. */
const errorEvent = (code: string, message = code): string =>
  JSON.stringify({
    [`${code[0]?.toLowerCase()}${code.slice(1).replace(/Exception$/, "")}Exception`]: { message },
  });

/** The headers whose values are strings. */
function headersIn(bytes: Buffer): ReadonlyMap<string, string> {
  const headers = new Map<string, string>();
  let at = 0;
  try {
    while (at < bytes.length) {
      const nameEnd = at + 1 + bytes.readUInt8(at);
      const name = bytes.toString("utf8", at + 1, nameEnd);
      const type = bytes.readUInt8(nameEnd);
      const fixed = VALUE_BYTES[type];
      const valueAt = nameEnd + (fixed === undefined ? 3 : 1);
      at = valueAt + (fixed ?? bytes.readUInt16BE(nameEnd + 1));
      if (type === STRING) headers.set(name, bytes.toString("utf8", valueAt, at));
    }
  } catch {
    throw broken("its headers are cut");
  }
  return headers;
}
