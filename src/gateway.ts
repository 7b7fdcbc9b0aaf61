// The server: from a socket to a handler and back. Every response carries X-Request-Id and every error the same body, also
// those that Node would otherwise answer by itself (WIRE.md 4.6); every response is one line of the access log.

import { readFileSync } from "node:fs";
import http, { type IncomingMessage, type ServerResponse } from "node:http";
import https from "node:https";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import { createSecureContext } from "node:tls";
import { createKeyring } from "./accounts/keys.ts";
import { createLimiter } from "./accounts/limiter.ts";
import { createChatHandler } from "./chat.ts";
import type { Config } from "./config/schema.ts";
import { ClientGone } from "./http/body.ts";
import { createFetch, type Fetch } from "./http/fetch.ts";
import { createLineLog, describe, type AccessRecord, type WriteLines } from "./http/log.ts";
import { rawError, sendError, sendJson } from "./http/reply.ts";
import { requestId, requestIdFromBytes } from "./http/request-id.ts";
import { pathOf, route, type Exchange, type Routes } from "./http/router.ts";
import { fail } from "./protocol/checker.ts";
import { ApiError, toApiError } from "./protocol/errors.ts";
import { openapiText } from "./protocol/openapi.ts";
import { createCatalog } from "./routing/catalog.ts";

/** What the gateway needs of the world. Absent means the real thing, and no log. */
export interface GatewayDeps {
  readonly fetch?: Fetch;
  /** Wall clock, milliseconds. */
  readonly now?: () => number;
  /** Monotonic clock, milliseconds: the limiter's. */
  readonly monotonic?: () => number;
  readonly accessLog?: WriteLines;
  readonly diagnostics?: WriteLines;
}

export interface Gateway {
  /** Resolves with the address that clients can use. Rejects if the address cannot be bound. */
  listen(): Promise<string>;
  /** Takes no new connections, lets requests in flight run for at most `drainMs`, then ends them with an error. */
  close(drainMs?: number): Promise<void>;
}

/** One request on its way, with what the access log needs. */
interface Live extends Exchange {
  readonly startedAt: number;
  /** Set where the socket was answered past `res`. */
  rawStatus?: number;
}

/** At shutdown: how long the last error events may take to reach clients that are slow to read. */
const LAST_WORDS_MS = 1_000;

export function createGateway(config: Config, deps: GatewayDeps = {}): Gateway {
  const now = deps.now ?? Date.now;
  const access = createLineLog(deps.accessLog ?? (() => undefined));
  const diagnostics = createLineLog(deps.diagnostics ?? (() => undefined));
  const diagnose = (event: Readonly<Record<string, unknown>>) => diagnostics.write({ time: new Date(now()).toISOString(), ...event });
  const ownFetch = deps.fetch ? undefined : createFetch();
  const keyring = createKeyring(config);
  const catalog = createCatalog(config, deps.fetch ?? ownFetch!);
  const limiter = createLimiter(deps.monotonic);
  const startedAt = Math.floor(now() / 1000);

  const routes: Routes = {
    "/v1/chat/completions": { POST: createChatHandler({ config, keyring, catalog, limiter, now, diagnose }) },
    "/v1/models": {
      GET: ({ req, res, log }) => {
        const caller = keyring.authenticate(req.headers.authorization);
        log.account = caller.account;
        log.key_id = caller.keyId;
        const data = catalog.names(caller).map((id) => ({ id, object: "model", created: startedAt, owned_by: "chat-gateway" }));
        sendJson(res, 200, { object: "list", data });
      },
    },
    "/healthz": { GET: ({ res }) => sendJson(res, 200, { status: "ok" }, { "Cache-Control": "no-store" }) },
    "/openapi.json": { GET: ({ res }) => sendJson(res, 200, openapiText) },
  };

  const live = new Set<Live>();
  const onSocket = new WeakMap<Duplex, Live>();
  let draining = false;

  function handle(req: IncomingMessage, res: ServerResponse, refusal?: ApiError): void {
    const control = new AbortController();
    const abort = (reason: Error) => control.abort(reason);
    const exchange: Live = { req, res, requestId: requestId(req.rawHeaders), abort, signal: control.signal, log: {}, startedAt: performance.now() };
    live.add(exchange);
    onSocket.set(req.socket, exchange);
    res.setHeader("X-Request-Id", exchange.requestId);
    if (draining) res.setHeader("Connection", "close");
    res.on("close", () => {
      if (!res.writableFinished) abort(new ClientGone("the client left before it had its whole answer"));
      logAccess(exchange, exchange.rawStatus ?? (res.writableFinished ? res.statusCode : 499));
      live.delete(exchange);
      if (draining) closeUnused();
    });
    void run(exchange, refusal).catch((error: unknown) => answerError(exchange, error));
  }

  /** While draining: connections between requests end; once no request is left, those on which nothing was ever asked too. */
  function closeUnused(): void {
    if (live.size === 0) server.closeAllConnections();
    else server.closeIdleConnections();
  }

  async function run(exchange: Live, refusal: ApiError | undefined): Promise<void> {
    const { req } = exchange;
    if (req.headers.host === undefined && req.httpVersion === "1.1") {
      throw new ApiError("malformed_request", "The request has no Host header.", { headers: { Connection: "close" } });
    }
    if (refusal) throw refusal;
    await route(routes, req.method ?? "", pathOf(req.url ?? ""))(exchange);
  }

  function answerError(exchange: Live, thrown: unknown): void {
    if (thrown instanceof ClientGone) return;
    const error = toApiError(thrown);
    if (error.code === "internal_error") diagnose({ event: "internal_error", request_id: exchange.requestId, detail: describe(thrown) });
    if (exchange.res.headersSent) exchange.res.destroy();
    else sendError(exchange.req, exchange.res, error, exchange.requestId);
  }

  function logAccess({ req, requestId, log, startedAt }: Live, status: number): void {
    writeAccess(requestId, req.method ?? null, pathOf(req.url ?? ""), status, performance.now() - startedAt, log);
  }

  function writeAccess(id: string, method: string | null, path: string | null, status: number, durationMs: number, log: Exchange["log"]): void {
    const record: AccessRecord = {
      time: new Date(now()).toISOString(),
      request_id: id,
      method,
      path,
      status,
      duration_ms: Math.round(durationMs * 1000) / 1000,
      account: log.account ?? null,
      key_id: log.key_id ?? null,
      model: log.model ?? null,
      usage_source: log.usage_source,
    };
    access.write(record);
  }

  /** Answers on a socket whose request has no usable `res`, and closes it. */
  function answerRaw(socket: Duplex, error: ApiError, id: string, method: string | null, path: string | null): void {
    socket.end(rawError(error, id), () => socket.destroy());
    writeAccess(id, method, path, error.status, 0, {});
  }

  function onClientError(error: NodeJS.ErrnoException & { rawPacket?: Buffer }, socket: Duplex): void {
    const exchange = onSocket.get(socket);
    const pending = exchange && live.has(exchange) ? exchange : undefined;
    if (!socket.writable || error.code === "ECONNRESET" || pending?.res.headersSent || pending?.rawStatus) {
      if (pending?.req.complete && socket.writable) pending.res.once("finish", () => socket.end());
      else socket.destroy();
    } else if (pending?.req.complete) {
      // Nonsense after a whole request: that request is answered first, then the connection ends.
      pending.res.setHeader("Connection", "close");
    } else if (pending) {
      pending.rawStatus = parseFault(error).status;
      socket.end(rawError(parseFault(error), pending.requestId), () => socket.destroy());
    } else answerRaw(socket, parseFault(error), requestIdFromBytes(error.rawPacket), null, null);
  }

  const options = {
    requireHostHeader: false, // Node's own answer to a missing Host has no request id
    keepAliveTimeout: 75_000, // above the usual 60 s of clients and load balancers, so that they close first
    headersTimeout: Math.min(60_000, config.server.receive_ms),
    requestTimeout: config.server.receive_ms,
    connectionsCheckingInterval: Math.min(5_000, Math.ceil(config.server.receive_ms / 2)),
    noDelay: true,
  };
  const { tls } = config.server;
  const server = tls ? https.createServer({ ...options, ...readTls(tls) }) : http.createServer(options);
  server.on("request", handle);
  server.on("checkContinue", handle);
  server.on("checkExpectation", (req: IncomingMessage, res: ServerResponse) =>
    handle(req, res, new ApiError("expectation_failed", "The only expectation that is supported is 100-continue.")),
  );
  server.on("connect", (req: IncomingMessage, socket: Duplex) => {
    const error = new ApiError("method_not_allowed", "This is no proxy: CONNECT is not supported.", { headers: { Allow: "GET, HEAD, POST" } });
    answerRaw(socket, error, requestId(req.rawHeaders), "CONNECT", req.url ?? null);
  });
  server.on("clientError", onClientError);

  return {
    listen: () =>
      new Promise((resolve, reject) => {
        server.once("error", reject);
        server.listen(config.server.port, config.server.host, () => {
          server.off("error", reject);
          const { address, family, port } = server.address() as AddressInfo;
          resolve(`${tls ? "https" : "http"}://${family === "IPv6" ? `[${address}]` : address}:${port}`);
        });
      }),
    async close(drainMs = 0) {
      draining = true;
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      closeUnused();
      const stopping = () => new ApiError("server_overloaded", "The gateway is shutting down.", { headers: { "Retry-After": "1" } });
      const drain = setTimeout(() => live.forEach(({ abort }) => abort(stopping())), drainMs);
      const cut = setTimeout(() => server.closeAllConnections(), drainMs + LAST_WORDS_MS);
      await closed;
      clearTimeout(drain);
      clearTimeout(cut);
      ownFetch?.close();
      access.flush();
      diagnostics.flush();
    },
  };
}

/** Certificate and key; a file that cannot be read, or is not one, is a fault of the configuration. */
function readTls(tls: { readonly cert_file: string; readonly key_file: string }): { cert: Buffer; key: Buffer } {
  const read = (field: "cert_file" | "key_file") => {
    try {
      return readFileSync(tls[field]);
    } catch (error) {
      return fail("invalid_value", `cannot be read: ${(error as NodeJS.ErrnoException).code}`, ["server", "tls", field]);
    }
  };
  const pair = { cert: read("cert_file"), key: read("key_file") };
  try {
    createSecureContext(pair);
  } catch (error) {
    fail("invalid_value", `not a certificate and its key: ${(error as Error).message}`, ["server", "tls"]);
  }
  return pair;
}

/** What Node's parser or its clock found wrong with a request. */
function parseFault({ code }: NodeJS.ErrnoException): ApiError {
  if (code === "HPE_HEADER_OVERFLOW") return new ApiError("headers_too_large", "The request's headers are larger than 16 KiB.");
  if (code === "ERR_HTTP_REQUEST_TIMEOUT") return new ApiError("request_timeout", "The request did not arrive in time.");
  return new ApiError("malformed_request", "This is not a valid HTTP request.");
}
