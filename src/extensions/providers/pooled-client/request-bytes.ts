// A request as it goes over the wire. Sections are those of RFC 9112.
import type { UpstreamRequest } from "../../../core/upstream/transport.ts";

const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const NOT_IN_VALUES = /[^\t\x20-\x7e\x80-\xff]/;

/** The lines of a head that are the same for each request to a URL. */
export const requestStart = ({ pathname, search, host }: URL): string =>
  // Section 3.2.1: the path. 9.3: a server of HTTP/1.0 keeps a connection only if it is asked to.
  `POST ${pathname}${search} HTTP/1.1\r\nHost: ${host}\r\nConnection: keep-alive\r\n`;

/**
 * Head and body in one Buffer, for a single write to the socket. Throws a TypeError if a header
 * holds characters that would end it: what follows them would be read as another header, or as
 * another request (section 11.1).
 */
export function requestBytes(
  start: string,
  { headers, body }: Pick<UpstreamRequest, "headers" | "body">,
): Buffer {
  const length = Buffer.byteLength(body);
  let head = start;
  for (const name in headers) {
    const value = headers[name]!;
    if (!NAME.test(name) || NOT_IN_VALUES.test(value)) throw invalidHeader(name);
    head += `${name}: ${value}\r\n`;
  }
  head += `Content-Length: ${length}\r\n\r\n`;
  const bytes = Buffer.allocUnsafe(head.length + length);
  bytes.write(head, "latin1");
  bytes.write(body, head.length);
  return bytes;
}

/** The value may be a key, so the message does not have it. The code is that of node:http. */
const invalidHeader = (name: string): TypeError =>
  Object.assign(new TypeError(`a character that no header can have in ${JSON.stringify(name)}`), {
    code: "ERR_INVALID_CHAR",
  });
