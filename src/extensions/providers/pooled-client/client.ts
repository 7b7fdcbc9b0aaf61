// The pooled HTTP/1.1 client for providers: keep-alive connections, a deadline for new ones, and
// one retry if the provider had closed a pooled connection. It follows no redirect,
// decompresses nothing, and has no other timeouts. Sections are those of RFC 9112.
import type { Cancel } from "../../../core/http/cancel.ts";
import type {
  Transport,
  UpstreamRequest,
  UpstreamResponse,
} from "../../../core/upstream/transport.ts";
import { Exchange } from "./exchange.ts";
import { createPool, type Pool } from "./pool.ts";
import { connectTo, type Connect } from "./socket.ts";

/**
 * The most parsed URLs that are kept. A configuration has fewer. After many reloads, all are
 * dropped and parsed again.
 */
const MAX_TARGETS = 1_000;

export interface PooledClient {
  /**
   * Sends a request, and once more on a new connection if the pooled one turns out to be closed.
   */
  readonly send: Transport;
  /** Closes the idle connections, and others when their response is complete. */
  close(): void;
}

/** The pool of a URL's origin, and the beginning of a request to the URL. */
interface Target {
  readonly pool: Pool;
  readonly start: string;
}

/**
 * Opens at most `maxConnections` to one origin; further requests wait. Absent: no limit. `connect`
 * opens the sockets to an origin.
 */
export function createPooledClient(
  maxConnections = Infinity,
  connect: (origin: URL) => Connect = connectTo,
): PooledClient {
  const pools = new Map<string, Pool>();
  const targets = new Map<string, Target>();

  function targetOf(url: string): Target {
    const known = targets.get(url);
    if (known) return known;
    const parsed = new URL(url);
    const pool = pools.get(parsed.origin) ?? createPool(connect(parsed), maxConnections);
    pools.set(parsed.origin, pool);
    const target = { pool, start: requestStart(parsed) };
    if (targets.size >= MAX_TARGETS) targets.clear();
    targets.set(url, target);
    return target;
  }

  return {
    // Not an async function, which would cost two more promises a request.
    send(url, request) {
      try {
        return post(targetOf(url), request);
      } catch (error) {
        return Promise.reject(error);
      }
    },
    close() {
      for (const pool of pools.values()) pool.close();
    },
  };
}

/**
 * Sends a request, and once more if its pooled connection turns out to be closed. Only the function
 * that sends it again holds its text, and the exchange drops this function when a response arrives.
 */
function post({ pool, start }: Target, request: UpstreamRequest): Promise<UpstreamResponse> {
  const { cancel, resent } = request;
  if (cancel.aborted) return Promise.reject(cancel.reason);
  const exchange = new Exchange(requestBytes(start, request), request, () => {
    resent?.();
    if (cancel.aborted) throw cancel.reason;
    exchange.bytes = requestBytes(start, request);
    pool.start(exchange, true);
  });
  pool.start(exchange, false);
  abortWith(cancel, exchange);
  return exchange.response;
}

/** A separate function, so that its closure does not hold the request. */
function abortWith(cancel: Cancel, exchange: Exchange): void {
  cancel.onAbort(() => exchange.abort(cancel.reason));
}

const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const NOT_IN_VALUES = /[^\t\x20-\x7e\x80-\xff]/;

/** The lines of a head that are the same for each request to a URL. */
const requestStart = ({ pathname, search, host }: URL): string =>
  // Section 3.2.1: the path. 9.3: a server of HTTP/1.0 keeps a connection only if it is asked to.
  `POST ${pathname}${search} HTTP/1.1\r\nHost: ${host}\r\nConnection: keep-alive\r\n`;

/**
 * Head and body in one Buffer, for a single write to the socket. Throws a TypeError if a header
 * holds characters that would end it: what follows them would be read as another header, or as
 * another request (section 11.1).
 */
function requestBytes(start: string, { headers, body }: UpstreamRequest): Buffer {
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

/** The value may be a key, so the message leaves it out. The code is the same as in node:http. */
const invalidHeader = (name: string): TypeError =>
  Object.assign(new TypeError(`a character that no header can have in ${JSON.stringify(name)}`), {
    code: "ERR_INVALID_CHAR",
  });
