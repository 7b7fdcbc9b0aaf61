// The id of a request: the client's own X-Request-Id if it is usable, else a new one.
import { randomHex } from "../ids.ts";

/**
 * The most bytes of an unparsable packet to search for an id: one read of Node from a socket. That
 * is four times Node's bound of a head, so the search finds an id behind an oversized header.
 */
const MAX_SEARCHED_BYTES = 65_536;

const ID_HEADER = "x-request-id:";

/** Returns a value of 1 to 512 printable ASCII characters unchanged, or a new id. */
const usableOrNew = (value = ""): string =>
  /^[\x20-\x7e]{1,512}$/.test(value) ? value : `req_${randomHex(16)}`;

/** `rawHeaders` is Node's flat list of names and values. The first X-Request-Id counts. */
export const requestId = (rawHeaders: readonly string[]): string =>
  usableOrNew(
    rawHeaders.find((_, i) => i % 2 === 1 && rawHeaders[i - 1]!.toLowerCase() === "x-request-id"),
  );

/**
 * Finds the id in the bytes of a request that Node could not parse. It uses trim(): a pattern for
 * both ends of the value would take quadratic time for many blanks.
 */
export function requestIdFromBytes(packet: Buffer | undefined): string {
  const text = packet?.toString("latin1", 0, MAX_SEARCHED_BYTES) ?? "";
  // Skip the request line, and the last line, which may be incomplete.
  const lines = text.split("\n").slice(1, -1);
  const line = lines.find((each) => each.slice(0, ID_HEADER.length).toLowerCase() === ID_HEADER);
  return usableOrNew(line?.slice(ID_HEADER.length).trim());
}
