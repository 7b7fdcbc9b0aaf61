// The HTTP server. Every response has X-Request-Id and one line in the access log, including
// those that Node's server would otherwise send by itself.
import { once } from "node:events";
import http, { type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import type { Clock } from "../clock.ts";
import { createResponseLog, type AccessLog } from "./access-log.ts";
import {
  BREAK_OFF_MS,
  createConnections,
  isResponseOwed,
  type Capacity,
  type Connection,
  type LiveExchange,
  type Pipeline,
} from "./connection.ts";
import type { Exchange, ExchangeObserver, Routes } from "./exchange.ts";
import { createRefusals } from "./refusals.ts";
import { answerRequest, type RequestHooks } from "./request-listener.ts";

/** Longer than the usual 60 s of clients and load balancers, so that they close idle sockets. */
const KEEP_ALIVE_MS = 75_000;
const MAX_HEAD_MS = 60_000;
const MAX_CHECK_INTERVAL_MS = 5_000;

/** Creates an HTTPS server. */
export interface SecureListener {
  /** The server must emit "secureConnection" after each TLS handshake. */
  create(options: http.ServerOptions): http.Server;
}

/** Bounds a connection that Node's HTTP server has just accepted. */
export type BoundPipeline = (connection: Connection) => Pipeline;

export interface ServerOptions {
  /** The address or name to listen on. */
  readonly host: string;
  /** The port to listen on; 0: any free one. */
  readonly port: number;
  /** As ServerSettings.receive_ms. */
  readonly receive_ms: number;
  /** As ServerSettings.send_ms. */
  readonly send_ms: number;
  /** Absent: plain HTTP. */
  readonly secure?: SecureListener | undefined;
  /** Absent: any number of pipelined requests is parsed at once. */
  readonly boundPipeline?: BoundPipeline | undefined;
  /** Absent: connections and their memory have no bound. */
  readonly capacity?: Capacity | undefined;
}

export interface ServerDeps extends RequestHooks {
  /** Times requests, deadlines and the drain. */
  readonly clock: Clock;
  /** Called once for each response, including those without a handler. */
  readonly access: AccessLog;
  /** Creates the observers of each request whose head was read. Absent: there are none. */
  readonly observe?: (exchange: Exchange) => readonly ExchangeObserver[];
}

export interface Server {
  /** Resolves with the address that clients can use. Rejects if it cannot be bound. */
  listen(): Promise<string>;
  /**
   * Accepts no more connections, waits at most `drainMs` milliseconds for requests in flight, then
   * aborts them with `reason`. Resolves when all connections are closed.
   */
  close(drainMs: number, reason: Error): Promise<void>;
  /** The number of requests without a complete response. */
  inFlight(): number;
}

export function createServer(routes: Routes, options: ServerOptions, deps: ServerDeps): Server {
  const { clock } = deps;
  const { secure, host, port, boundPipeline, capacity } = options;
  const nodeServer = createNodeServer(options);
  const responseLog = createResponseLog(deps.access, clock);
  const connections = createConnections(clock, onFinish, capacity);
  const refusals = createRefusals(connections.of, responseLog.refused, deps.renderError);
  let draining = false;

  function onRequest(req: IncomingMessage, res: ServerResponse): void {
    const { live, pipeline } = connections.of(req.socket);
    // Node 20.19.0 does not know this method, and gives null.
    if ((req.method ?? "PRI") === "PRI") refusals.preface(req);
    // No response can follow one that closes the connection.
    else if (live.size > 0 && [...live].at(-1)!.res.getHeader("Connection") === "close")
      pipeline?.stop();
    else {
      const exchange = connections.begin(req, res);
      if (deps.observe) exchange.observers = deps.observe(exchange);
      if (draining) res.setHeader("Connection", "close");
      answerRequest(exchange, routes, deps);
    }
  }

  function onFinish(connection: Connection, exchange: LiveExchange, status: number): void {
    const { broken, live, socket, pipeline } = connection;
    responseLog.ended(exchange, status);
    if (broken && ![...live].some(isResponseOwed)) socket.end();
    if (draining) closeUnused();
    pipeline?.advance();
  }

  /** Connections that never sent a request are not idle: they close last. */
  function closeUnused(): void {
    const areUnused = connections.inFlight() === 0;
    for (const { socket, live, latest } of connections.all())
      if (areUnused || (live.size === 0 && latest?.req.complete)) socket.destroy();
  }

  // Node's close() calls this. Node's own function would cut a response that the client has not yet
  // read.
  nodeServer.closeIdleConnections = closeUnused;
  nodeServer.on("connection", connections.of);
  nodeServer.on(secure ? "secureConnection" : "connection", (socket: Duplex) => {
    const connection = connections.of(socket);
    const pipeline = boundPipeline?.(connection);
    if (pipeline) connection.pipeline = pipeline;
  });
  nodeServer.on("timeout", (socket: Duplex) => onSilence(connections.of(socket)));
  for (const event of ["request", "checkContinue", "checkExpectation"])
    nodeServer.on(event, onRequest);
  nodeServer.on("connect", refusals.connect);
  nodeServer.on("clientError", refusals.clientError);

  return {
    async listen() {
      await once(nodeServer.listen(port, host), "listening");
      return urlOf(secure ? "https" : "http", nodeServer.address() as AddressInfo);
    },
    async close(drainMs, reason) {
      draining = true;
      const closed = new Promise<unknown>((resolve) => nodeServer.close(resolve));
      for (const { live } of connections.all()) {
        const last = [...live].at(-1); // No other response can follow one with this header.
        if (last?.res.headersSent === false) last.res.setHeader("Connection", "close");
      }
      closeUnused();
      // These timers also keep the process alive: a paused connection does not.
      const abortTimer = clock.after(drainMs, () => {
        for (const { live } of connections.all())
          for (const exchange of live) exchange.abort(reason);
      });
      const destroyTimer = clock.after(drainMs + BREAK_OFF_MS, () => {
        for (const { socket } of connections.all()) socket.destroy();
      });
      await closed;
      abortTimer.cancel();
      destroyTimer.cancel();
      await responseLog.settle(BREAK_OFF_MS);
    },
    inFlight: connections.inFlight,
  };
}

function createNodeServer({ secure, receive_ms, send_ms }: ServerOptions): http.Server {
  const options: http.ServerOptions = {
    requireHostHeader: false, // Node's own refusal has no X-Request-Id.
    keepAliveTimeout: KEEP_ALIVE_MS,
    noDelay: true,
    headersTimeout: Math.min(MAX_HEAD_MS, receive_ms),
    requestTimeout: receive_ms,
    connectionsCheckingInterval: Math.min(MAX_CHECK_INTERVAL_MS, Math.ceil(receive_ms / 2)),
  };
  const server = secure ? secure.create(options) : http.createServer(options);
  server.maxHeadersCount = 0; // Unlimited: Node would drop the surplus silently. See MAX_HEADERS.
  server.timeout = send_ms;
  return server;
}

/**
 * Handles a connection without traffic for send_ms: closes it if it is idle or if the client does
 * not read. A stream with a deadline is left to that deadline.
 */
function onSilence({ socket, live, latest }: Connection): void {
  const [first] = live;
  const isIdle = !first && (latest !== undefined || socket.writableEnded);
  const isUnread = socket.writableLength > 0;
  const isTimedStream = first?.deadline !== undefined && !first.res.hasHeader("content-length");
  if (isIdle || (isUnread && !isTimedStream)) socket.destroy();
}

const urlOf = (scheme: string, { address, family, port }: AddressInfo): string =>
  `${scheme}://${family === "IPv6" ? `[${address}]` : address}:${port}`;
