// Which id a request has: the client's own, if it can be used, else a new one. SPEC.md "Request ID", WIRE.md 5.
import { randomHex } from "../ids.ts";

/** Bytes of a packet that could not be parsed in which an id is looked for: what Node reads from a socket at once, four times its bound
 * of a head, so that the id of a head that is too large is found behind what makes it so. */
const MAX_HEAD_BYTES = 65_536;

/** The client's X-Request-Id if it is 1 to 512 printable ASCII characters, else a new one. SPEC.md "Request ID", WIRE.md 5. */
const usableOrNew = (value = ""): string =>
  /^[\x20-\x7e]{1,512}$/.test(value) ? value : `req_${randomHex(16)}`;

/** `rawHeaders` is Node's flat list of names and values. Of several X-Request-Id the first counts. */
export const requestId = (rawHeaders: readonly string[]): string =>
  usableOrNew(
    rawHeaders.find((_, i) => i % 2 === 1 && rawHeaders[i - 1]!.toLowerCase() === "x-request-id"),
  );

const ID_HEADER = "x-request-id:";
const isBlank = (char: string | undefined): boolean => char === " " || char === "\t";

/** The id of a request that Node could not parse, looked for in the bytes that it was given. By hand, because these bytes may be
 * anything: a pattern that has to find both ends of a value takes time that grows with a power of the number of blanks in it. */
export function requestIdFromBytes(packet: Buffer | undefined): string {
  const text = packet?.toString("latin1", 0, MAX_HEAD_BYTES) ?? "";
  const lines = text.split("\r\n").slice(1, -1); // without the request line, and what has no line end yet
  const line = lines.find((each) => each.slice(0, ID_HEADER.length).toLowerCase() === ID_HEADER);
  if (line === undefined) return usableOrNew();
  let start = ID_HEADER.length;
  let end = line.length;
  while (start < end && isBlank(line[start])) start += 1;
  while (end > start && isBlank(line[end - 1])) end -= 1;
  return usableOrNew(line.slice(start, end));
}
