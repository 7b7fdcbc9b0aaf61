// Encodes frames of Amazon's event stream, as its documentation describes them.

import { crc32 } from "node:zlib";

/** A header whose value is a string. */
function header(name: string, value: string): Buffer {
  const length = Buffer.alloc(2);
  length.writeUInt16BE(Buffer.byteLength(value));
  return Buffer.concat([
    Buffer.from([Buffer.byteLength(name)]),
    Buffer.from(name),
    Buffer.from([7]),
    length,
    Buffer.from(value),
  ]);
}

/** A frame with these headers and this payload. A payload that is not a string becomes JSON. */
export function frame(headers: Readonly<Record<string, string>>, payload: unknown): Buffer {
  const text = typeof payload === "string" ? payload : JSON.stringify(payload);
  const body = Buffer.from(text);
  const all = Buffer.concat(Object.entries(headers).map(([name, value]) => header(name, value)));
  const prelude = Buffer.alloc(12);
  prelude.writeUInt32BE(all.length + body.length + 16, 0);
  prelude.writeUInt32BE(all.length, 4);
  prelude.writeUInt32BE(crc32(prelude.subarray(0, 8)), 8);
  const beginning = Buffer.concat([prelude, all, body]);
  const checksum = Buffer.alloc(4);
  checksum.writeUInt32BE(crc32(beginning));
  return Buffer.concat([beginning, checksum]);
}

/** An event of ConverseStream. */
export const eventFrame = (type: string, payload: unknown): Buffer =>
  frame(
    { ":event-type": type, ":content-type": "application/json", ":message-type": "event" },
    payload,
  );

/** An error that is not one of the API's exceptions. */
export const errorFrame = (code: string, message: string): Buffer =>
  frame({ ":message-type": "error", ":error-code": code, ":error-message": message }, "");

/** An exception inside a stream. */
export const exceptionFrame = (type: string, message: string): Buffer =>
  frame({ ":exception-type": type, ":message-type": "exception" }, { message });
