// The HTTP server: sockets to exchanges. Every request becomes an Exchange, every response carries X-Request-Id and leaves
// one line in the access log, also those that Node would otherwise give by itself (WIRE.md 4.6). It knows nothing of chat.
import { once } from "node:events";
import http, { type IncomingMessage, type ServerResponse } from "node:http";
import https from "node:https";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import { ApiError, toApiError } from "../protocol/errors.ts";
import { randomHex } from "../protocol/ids.ts";
import { Cancel } from "./cancel.ts";
import {
  ClientGone,
  pathOf,
  rawError,
  route,
  sendError,
  type Exchange,
  type Routes,
} from "./exchange.ts";

const LAST_WORDS_MS = 1_000; // how long the last bytes of an answer that was broken off may take to reach a client that is slow to read
const MAX_PIPELINED = 1_000; // requests of one connection that wait for each other: who sends more without reading is no client

export interface Tls {
  readonly cert: Buffer;
  readonly key: Buffer;
} // a certificate and its key
/** A request must have arrived whole in `receive_ms`; without `tls` it is plain HTTP. */
export interface ServerOptions {
  readonly host: string;
  readonly port: number;
  readonly receive_ms: number;
  readonly tls?: Tls | undefined;
}
/** Is told of every response, as the access log has it, when it has left or has been broken off. */
export type AccessLog = (record: {
  readonly path: string | null;
  readonly status: number;
  readonly model: string | null;
  [field: string]: unknown;
}) => void;
/** `now` is the wall clock in milliseconds; `failed` is told of an error of our own, met while answering; `guard` throws for who may not ask. */
export interface ServerDeps {
  readonly now: () => number;
  readonly access: AccessLog;
  readonly failed: (exchange: Exchange, error: unknown) => void;
  readonly guard?: (exchange: Exchange) => void;
}

export const stopping = () =>
  new ApiError("server_overloaded", "The gateway is shutting down.", {
    headers: { "Retry-After": "1" },
  });

/** A request on its way. `delivered`: all of the answer was handed to the socket; Node also says "finish" when a socket dies with data in it.
 * `status`: what the access log says where `res` does not know. */
interface Live extends Exchange {
  readonly connection: Connection;
  readonly startedAt: number;
  expiry?: NodeJS.Timeout;
  delivered: boolean;
  status?: number;
}
const isOwed = ({ req, res }: Live): boolean => req.complete || res.headersSent; // an answer, whatever comes on the connection from here on

/** What the access log needs to know, also of what came to no exchange: method and path are null where they could not be parsed. */
type Logged = Pick<Live, "requestId" | "log" | "startedAt"> & {
  readonly req: Partial<Pick<IncomingMessage, "method" | "url">>;
};

/** A socket. Requests may be pipelined: only the first of `live` is being answered. One that is `broken` cannot be read from any more,
 * and ends when the answers that are owed have been given. */
interface Connection {
  readonly socket: Duplex;
  readonly live: Set<Live>;
  last?: Live;
  broken: boolean;
}

export function createServer(routes: Routes, options: ServerOptions, deps: ServerDeps) {
  /** All of them, also those that have asked nothing yet or are still shaking hands, of which Node's own lists know nothing. */
  const connections = new Map<Duplex, Connection>();
  let inFlight = 0; // a set of them all that lives as long as the process would cost each request a tenth in collected garbage
  let draining = false;

  function connectionOf(socket: Duplex): Connection {
    const known = connections.get(socket);
    if (known) return known;
    const connection: Connection = { socket, live: new Set(), broken: false };
    connections.set(socket, connection);
    // Only the response that owns the socket hears of its end; those that wait behind it must not be forgotten.
    socket.once("close", () => {
      connections.delete(socket);
      connection.live.forEach(finish);
    });
    return connection;
  }

  async function handle(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const cancel = new Cancel();
    const connection = connectionOf(req.socket);
    if (connection.live.size >= MAX_PIPELINED) return void req.socket.destroy();
    const exchange: Live = {
      req,
      res,
      connection,
      delivered: false,
      log: {},
      cancel,
      requestId: requestId(req.rawHeaders),
      startedAt: performance.now(),
      abort(reason) {
        cancel.abort(reason);
        if (connection.live.has(exchange))
          setTimeout(() => exchange.delivered || res.destroy(), LAST_WORDS_MS).unref();
      },
      expire: (ms, reason) =>
        void (exchange.expiry = setTimeout(() => exchange.abort(reason()), ms)),
    };
    connection.live.add(exchange);
    inFlight += 1;
    connection.last = exchange;
    res.setHeader("X-Request-Id", exchange.requestId);
    if (draining) res.setHeader("Connection", "close");
    res.on("finish", () => (exchange.delivered = !req.socket.destroyed));
    res.on("close", () => finish(exchange));
    try {
      const { host, expect = "100-continue" } = req.headers;
      const modern = req.httpVersion === "1.1";
      if (modern && host === undefined)
        throw new ApiError("malformed_request", "There is no Host header.", {
          headers: { Connection: "close" },
        });
      if (modern && !/\b100-continue\b/i.test(expect))
        throw new ApiError("expectation_failed", "The only expectation supported is 100-continue.");
      deps.guard?.(exchange);
      await route(routes, req.method ?? "", pathOf(req.url ?? ""))(exchange);
    } catch (thrown) {
      await undefined; // first what came in the same packet is parsed: a fault in it goes before this error
      if (thrown instanceof ClientGone || cancel.reason instanceof ClientGone) return;
      const error = toApiError(thrown);
      if (error.code === "internal_error") deps.failed(exchange, thrown);
      if (res.headersSent) return void (res.writableEnded || res.destroy()); // unless the handler has said it in its own way
      if (error.status === 413) exchange.status = 413; // known before its connection ends
      sendError(req, res, error, exchange.requestId);
    }
  }

  /** The end of an exchange, however it came; once. */
  function finish(exchange: Live): void {
    const { res, connection, delivered } = exchange;
    if (!connection.live.delete(exchange)) return;
    inFlight -= 1;
    clearTimeout(exchange.expiry);
    if (!delivered)
      exchange.abort(new ClientGone("the client left before it had its whole answer"));
    writeAccess(exchange, exchange.status ?? (delivered ? res.statusCode : 499)); // 499: it has not had its whole answer
    if (connection.broken && ![...connection.live].some(isOwed)) connection.socket.end();
    if (draining) closeUnused();
  }

  /** The access log's line: SPEC.md "Request ID", DESIGN.md "Files". */
  function writeAccess(
    { requestId: request_id, req, log, startedAt }: Logged,
    status: number,
  ): void {
    const { method = null, url } = req;
    const { account = null, key_id = null, model = null, usage_source } = log;
    deps.access({
      time: new Date(deps.now()).toISOString(),
      request_id,
      method,
      path: url === undefined ? null : pathOf(url),
      status,
      duration_ms: Math.round((performance.now() - startedAt) * 1000) / 1000,
      account,
      key_id,
      model,
      usage_source,
    });
  }

  /** Answers, past any `res`, what came on a socket and is no request for a handler; `id` is for what belongs to no exchange. */
  function refuse(socket: Duplex, error: ApiError, id: string, req: Logged["req"] = {}): void {
    const connection = connectionOf(socket);
    if (connection.broken) return;
    socket.on("error", () => socket.destroy()); // Node has taken its own listener away
    const [first, second] = connection.live;
    const between = !first && connection.last?.req.complete !== false;
    const coming = first && !second && !isOwed(first);
    if (between || coming) {
      socket.end(rawError(error, first?.requestId ?? id), () => socket.destroy());
      if (first) first.status = error.status;
      else writeAccess({ requestId: id, req, log: {}, startedAt: performance.now() }, error.status);
      return;
    }
    connection.broken = true; // the requests before it get their answers all the same
    const last = [...connection.live].findLast(isOwed);
    if (!last) socket.destroy();
    else if (!last.res.headersSent) last.res.setHeader("Connection", "close");
  }

  const live = () => [...connections.values()].flatMap((connection) => [...connection.live]);
  /** While draining: connections between requests end; once no request is left, those on which nothing was ever asked too. */
  const closeUnused = (): void =>
    inFlight === 0
      ? connections.forEach(({ socket }) => socket.destroy())
      : server.closeIdleConnections();

  const { tls, receive_ms } = options;
  const nodeOptions = {
    requireHostHeader: false, // Node's own answer to a missing Host has no request id
    keepAliveTimeout: 75_000,
    noDelay: true, // above the usual 60 s of clients and load balancers, so that they close first
    headersTimeout: Math.min(60_000, receive_ms),
    requestTimeout: receive_ms,
    connectionsCheckingInterval: Math.min(5_000, Math.ceil(receive_ms / 2)),
  };
  const server = tls
    ? https.createServer({ ...nodeOptions, ...tls })
    : http.createServer(nodeOptions);
  server.maxHeadersCount = 0; // their size is bounded; Node would drop the ones beyond a number in silence
  server.on("connection", connectionOf);
  for (const event of ["request", "checkContinue", "checkExpectation"]) server.on(event, handle);
  const noProxy = () =>
    new ApiError("method_not_allowed", "This is no proxy: CONNECT is not supported.", {
      headers: { Allow: "GET, HEAD, POST" },
    });
  server.on("connect", (req: IncomingMessage, socket: Duplex) =>
    refuse(socket, noProxy(), requestId(req.rawHeaders), req),
  );
  server.on(
    "clientError",
    (error: NodeJS.ErrnoException & { rawPacket?: Buffer }, socket: Duplex) => {
      if (!socket.writable || error.code === "ECONNRESET") socket.destroy();
      else refuse(socket, parseFault(error), requestIdFromBytes(error.rawPacket));
    },
  );

  return {
    /** Resolves with the address that clients can use; rejects if it cannot be bound. */
    async listen(): Promise<string> {
      await once(server.listen(options.port, options.host), "listening");
      const { address, family, port } = server.address() as AddressInfo;
      return `${tls ? "https" : "http"}://${family === "IPv6" ? `[${address}]` : address}:${port}`;
    },
    /** Takes no new connections, lets requests in flight run for at most `drainMs`, then ends them with an error. */
    async close(drainMs: number): Promise<void> {
      draining = true;
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const { res } of live()) if (!res.headersSent) res.setHeader("Connection", "close");
      closeUnused();
      setTimeout(() => live().forEach(({ abort }) => abort(stopping())), drainMs).unref();
      setTimeout(
        () => connections.forEach(({ socket }) => socket.destroy()),
        drainMs + LAST_WORDS_MS,
      ).unref();
      await closed;
    },
    inFlight: () => inFlight,
    /** For connections that come from now on. */
    setTls: (pair: Tls) => void (server instanceof https.Server && server.setSecureContext(pair)),
  };
}

/** The client's X-Request-Id if it is 1 to 512 printable ASCII characters, else a new one. SPEC.md "Request ID", WIRE.md 5. */
const usableOrNew = (value = ""): string =>
  /^[\x20-\x7e]{1,512}$/.test(value) ? value : `req_${randomHex(16)}`;

/** `rawHeaders` is Node's flat list of names and values. Of several X-Request-Id the first counts. */
const requestId = (rawHeaders: readonly string[]): string =>
  usableOrNew(
    rawHeaders.find((_, i) => i % 2 === 1 && rawHeaders[i - 1]!.toLowerCase() === "x-request-id"),
  );

/** The id of a request that Node could not parse, looked for in the bytes that it was given. */
const requestIdFromBytes = (packet: Buffer | undefined): string =>
  usableOrNew(
    packet && /\r\nx-request-id:[ \t]*([^\r\n]*?)[ \t]*\r\n/i.exec(packet.toString("latin1"))?.[1],
  );

/** What Node's parser or its clock found wrong with a request. */
function parseFault({ code }: NodeJS.ErrnoException): ApiError {
  if (code === "HPE_HEADER_OVERFLOW")
    return new ApiError("headers_too_large", "The request's headers are larger than 16 KiB.");
  if (code === "ERR_HTTP_REQUEST_TIMEOUT")
    return new ApiError("request_timeout", "The request did not arrive in time.");
  return new ApiError("malformed_request", "This is not a valid HTTP request.");
}
