// The HTTP server: sockets to exchanges. Every request becomes an Exchange, every response carries X-Request-Id and leaves
// one line in the access log, also those that Node would otherwise give by itself (WIRE.md 4.6). It knows nothing of chat.
import { once } from "node:events";
import http, { type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import { setTimeout as pause } from "node:timers/promises";
import { ApiError, toApiError } from "../openai/errors.ts";
import { accessRecord, type AccessRecord } from "./access-record.ts";
import { Cancel } from "./cancel.ts";
import { rawError, sendError, type Exchange, type Routes } from "./exchange.ts";
import { ClientGone } from "./cancel.ts";
import { boundPipeline, type Pipeline } from "./pipeline.ts";
import { requestId, requestIdFromBytes } from "./request-id.ts";
import { pathOf, route } from "./router.ts";

/** Default of `send_ms`. */
const SEND_MS = 30_000;
const LAST_WORDS_MS = 1_000; // how long the last bytes of an answer that was broken off may take to reach a client that is slow to read
/** How long the access log's line of a request whose client has left waits for the handler, which knows what it cost. */
const LATE_LINE_MS = 10_000;
/** How often a server that closes looks whether these lines are written. */
const LATE_LOOK_MS = 20;

/** Creates servers that speak HTTPS. */
export interface SecureListener {
  create(options: http.ServerOptions): http.Server;
}
export interface ServerOptions {
  readonly host: string;
  readonly port: number;
  /** A request must have arrived whole in so many milliseconds. */
  readonly receive_ms: number;
  /** An answer of which the client takes nothing for so many milliseconds is broken off. Absent: 30 s. */
  readonly send_ms?: number;
  /** Absent: plain HTTP. */
  readonly secure?: SecureListener | undefined;
}
/** Is told of every response, as the access log has it, when it has left or has been broken off. */
export type AccessLog = (record: AccessRecord) => void;
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
  /** The handler has returned or thrown: nothing more will be said to `log`. */
  handled: boolean;
  /** Writes the line of the access log that waits for the handler. */
  writeLine?: () => void;
  /** What the handler wants to be called when the exchange is over. */
  ended?: () => void;
}
const isOwed = ({ req, res }: Live): boolean => req.complete || res.headersSent; // an answer, whatever comes on the connection from here on

/** A socket. Requests may be pipelined: only the first of `live` is being answered. One that is `broken` cannot be read from any more,
 * and ends when the answers that are owed have been given. */
interface Connection {
  readonly socket: Duplex;
  readonly live: Set<Live>;
  last?: Live;
  broken: boolean;
  /** Absent while a connection is shaking hands. */
  pipeline?: Pipeline;
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
    // The preface of HTTP/2: Node ends the connection as soon as this listener has returned, so the answer is written before.
    if (req.method === "PRI")
      return refuse(req.socket, malformed(), requestId(req.rawHeaders), req);
    const cancel = new Cancel();
    const connection = connectionOf(req.socket);
    const exchange: Live = {
      req,
      res,
      connection,
      delivered: false,
      handled: false,
      log: {},
      cancel,
      requestId: requestId(req.rawHeaders),
      startedAt: performance.now(),
      abort(reason) {
        cancel.abort(reason);
        if (connection.live.has(exchange))
          setTimeout(() => exchange.delivered || res.destroy(), LAST_WORDS_MS).unref();
      },
      expire: (ms, reason) => {
        exchange.expiry = setTimeout(() => exchange.abort(reason()), ms);
      },
      onEnd: (listener) => {
        exchange.ended = listener;
      },
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
      const { handler, parameter } = route(routes, req.method ?? "", pathOf(req.url ?? ""));
      await handler(exchange, parameter);
    } catch (thrown) {
      await undefined; // first what came in the same packet is parsed: a fault in it goes before this error
      if (thrown instanceof ClientGone || cancel.reason instanceof ClientGone) return;
      const error = toApiError(thrown);
      exchange.log.error_code = error.code;
      exchange.log.param = error.param;
      if (error.code === "internal_error") deps.failed(exchange, thrown);
      if (res.headersSent) {
        if (!res.writableEnded) res.destroy(); // unless the handler has said it in its own way
        return;
      }
      if (error.status === 413) exchange.status = 413; // known before its connection ends
      sendError(req, res, error, exchange.requestId);
    } finally {
      exchange.handled = true;
      exchange.writeLine?.();
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
    exchange.ended?.();
    logEnd(exchange, exchange.status ?? (delivered ? res.statusCode : 499)); // 499: it has not had its whole answer
    if (connection.broken && ![...connection.live].some(isOwed)) connection.socket.end();
    if (draining) closeUnused();
    connection.pipeline?.advance();
  }

  /** Exchanges that have ended, and whose handlers have not: their clients have left. */
  const late = new Set<Live>();
  /** Writes the access log's line: of a request whose client has left when its handler is through, because that knows what it has cost. */
  function logEnd(exchange: Live, status: number): void {
    const { requestId: id, req, log, startedAt } = exchange;
    const durationMs = performance.now() - startedAt;
    const line = { requestId: id, req, log, time: deps.now(), status, durationMs };
    if (exchange.delivered || exchange.handled) {
      deps.access(accessRecord(line));
      return;
    }
    const timer = setTimeout(() => exchange.writeLine?.(), LATE_LINE_MS).unref();
    late.add(exchange);
    exchange.writeLine = () => {
      clearTimeout(timer);
      if (late.delete(exchange)) deps.access(accessRecord(line));
    };
  }

  /** Answers, past any `res`, what came on a socket and is no request for a handler; `id` is for what belongs to no exchange. */
  function refuse(socket: Duplex, error: ApiError, id: string, req: Partial<IncomingMessage> = {}) {
    const connection = connectionOf(socket);
    connection.pipeline?.stop();
    if (connection.broken) return;
    socket.on("error", () => socket.destroy()); // Node has taken its own listener away
    const [first, second] = connection.live;
    const between = !first && connection.last?.req.complete !== false;
    const coming = first && !second && !isOwed(first);
    if (between || coming) {
      socket.end(rawError(error, first?.requestId ?? id), () => socket.destroy());
      const log = { error_code: error.code };
      if (first) {
        first.status = error.status;
        Object.assign(first.log, log);
        return;
      }
      const time = deps.now();
      deps.access(
        accessRecord({ requestId: id, req, log, time, status: error.status, durationMs: 0 }),
      );
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
      ? connections.forEach(({ socket }) => {
          socket.destroy();
        })
      : server.closeIdleConnections();

  /** Nothing has moved on this connection for a while. What is written to it and not taken ends it, but for a stream that has a deadline. */
  function onSilence(socket: Duplex): void {
    const connection = connectionOf(socket);
    const [first] = connection.live;
    const isIdle = !first && (connection.last !== undefined || socket.writableEnded);
    const isUnread = socket.writableLength > 0;
    const isTimedStream = first?.expiry !== undefined && !first.res.hasHeader("content-length");
    if (isIdle || (isUnread && !isTimedStream)) socket.destroy();
  }

  const { secure, receive_ms, send_ms = SEND_MS } = options;
  const nodeOptions = {
    requireHostHeader: false, // Node's own answer to a missing Host has no request id
    keepAliveTimeout: 75_000,
    noDelay: true, // above the usual 60 s of clients and load balancers, so that they close first
    headersTimeout: Math.min(60_000, receive_ms),
    requestTimeout: receive_ms,
    connectionsCheckingInterval: Math.min(5_000, Math.ceil(receive_ms / 2)),
  };
  const server = secure ? secure.create(nodeOptions) : http.createServer(nodeOptions);
  server.maxHeadersCount = 0; // their size is bounded; Node would drop the ones beyond a number in silence
  server.timeout = send_ms;
  server.on("timeout", onSilence);
  server.on("connection", connectionOf);
  server.on(secure ? "secureConnection" : "connection", (socket: Duplex) => {
    const connection = connectionOf(socket);
    connection.pipeline = boundPipeline(socket, {
      waiting: () => connection.live.size,
      latest: () => connection.last?.req,
    });
  });
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
      return `${secure ? "https" : "http"}://${family === "IPv6" ? `[${address}]` : address}:${port}`;
    },
    /** Takes no new connections, lets requests in flight run for at most `drainMs`, then ends them with an error. */
    async close(drainMs: number): Promise<void> {
      draining = true;
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const { res } of live()) if (!res.headersSent) res.setHeader("Connection", "close");
      closeUnused();
      // A connection that is not read from does not keep the process alive: these timers do, until all is over.
      const cut = setTimeout(
        () =>
          live().forEach(({ abort }) => {
            abort(stopping());
          }),
        drainMs,
      );
      const end = setTimeout(
        () =>
          connections.forEach(({ socket }) => {
            socket.destroy();
          }),
        drainMs + LAST_WORDS_MS,
      );
      await closed;
      clearTimeout(cut);
      clearTimeout(end);
      // Handlers that their clients have left have a moment more to say what it has cost.
      for (const latest = performance.now() + LAST_WORDS_MS; late.size > 0; )
        if (performance.now() < latest) await pause(LATE_LOOK_MS);
        else for (const { writeLine } of late) writeLine?.();
    },
    inFlight: () => inFlight,
  };
}

const malformed = () => new ApiError("malformed_request", "This is not a valid HTTP request.");

/** What Node's parser or its clock found wrong with a request. */
function parseFault({ code }: NodeJS.ErrnoException): ApiError {
  if (code === "HPE_HEADER_OVERFLOW")
    return new ApiError("headers_too_large", "The request's headers are larger than 16 KiB.");
  if (code === "ERR_HTTP_REQUEST_TIMEOUT")
    return new ApiError("request_timeout", "The request did not arrive in time.");
  return malformed();
}
