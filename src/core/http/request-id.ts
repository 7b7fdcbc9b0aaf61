// The id of a request: the client's own X-Request-Id if it is usable, else a new one.
import { randomHex } from "../ids.ts";

/**
 * Bytes of an unparsable packet that are searched for an id. Node reads as many from a socket at
 * once. It is four times Node's bound of a head, so the id behind an oversized header is found.
 */
const MAX_SEARCHED_BYTES = 65_536;

const ID_HEADER = "x-request-id:";

/** A value of 1 to 512 printable ASCII characters is used as it is. */
const usableOrNew = (value = ""): string =>
  /^[\x20-\x7e]{1,512}$/.test(value) ? value : `req_${randomHex(16)}`;

/** `rawHeaders` is Node's flat list of names and values. The first X-Request-Id counts. */
export const requestId = (rawHeaders: readonly string[]): string =>
  usableOrNew(
    rawHeaders.find((_, i) => i % 2 === 1 && rawHeaders[i - 1]!.toLowerCase() === "x-request-id"),
  );

/**
 * The id of a request that Node could not parse, searched in its bytes. A
 * pattern that finds both ends of the value would take time quadratic in the blanks.
 */
export function requestIdFromBytes(packet: Buffer | undefined): string {
  const text = packet?.toString("latin1", 0, MAX_SEARCHED_BYTES) ?? "";
  // Without the request line, and without the last line, which has no line end.
  const lines = text.split("\r\n").slice(1, -1);
  const line = lines.find(
    (candidate) => candidate.slice(0, ID_HEADER.length).toLowerCase() === ID_HEADER,
  );
  return usableOrNew(line?.slice(ID_HEADER.length).trim());
}
