// The request id: the client's X-Request-Id if it is usable, else a new one. SPEC.md "Request ID", WIRE.md 5.
import { randomBytes } from "node:crypto";

/** 1 to 512 printable ASCII characters; anything else is replaced rather than refused. */
const usableOrNew = (value = ""): string => (/^[\x20-\x7e]{1,512}$/.test(value) ? value : `req_${randomBytes(16).toString("hex")}`);

/** `rawHeaders` is Node's flat list of names and values. Of several X-Request-Id the first counts. */
export const requestId = (rawHeaders: readonly string[]): string =>
  usableOrNew(rawHeaders.find((_, i) => i % 2 === 1 && rawHeaders[i - 1]!.toLowerCase() === "x-request-id"));

/** The id of a request that Node could not parse, looked for in the bytes that it was given. */
export const requestIdFromBytes = (packet: Buffer | undefined): string =>
  usableOrNew(packet && /\r\nx-request-id:[ \t]*([^\r\n]*?)[ \t]*\r\n/i.exec(packet.toString("latin1"))?.[1]);
