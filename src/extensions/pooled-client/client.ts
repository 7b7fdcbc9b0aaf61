// The pooled HTTP/1.1 client for providers: keep-alive connections, a deadline for new ones, and
// one more try where the provider had closed a pooled connection. It follows no redirect,
// decompresses nothing, and has no other timeouts.
import http from "node:http";
import https from "node:https";
import type { Socket } from "node:net";
import {
  ConnectTimeout,
  type Transport,
  type UpstreamRequest,
  type UpstreamResponse,
} from "../../core/upstream/transport.ts";

/** Idle connections to one origin that are kept. */
const MAX_IDLE_CONNECTIONS = 1024;

export interface PooledClient {
  readonly send: Transport;
  /** Closes the idle connections. */
  close(): void;
}

/** The provider had closed a pooled connection before a byte of the response arrived. */
class StaleConnection extends Error {}

/** At most `maxConnections` to one origin; further requests wait. Absent: no limit. */
export function createPooledClient(maxConnections = Infinity): PooledClient {
  const pool = {
    keepAlive: true,
    maxSockets: maxConnections,
    maxFreeSockets: MAX_IDLE_CONNECTIONS,
    scheduling: "lifo",
  } as const;
  const agents = { http: new http.Agent(pool), https: new https.Agent(pool) };

  const send: Transport = (url, request) =>
    post(url, request).catch((error) => {
      if (!(error instanceof StaleConnection)) throw error;
      request.resent?.();
      return post(url, request, true);
    });

  /** `fresh`: on a connection outside of the pool. */
  function post(url: string, request: UpstreamRequest, fresh = false): Promise<UpstreamResponse> {
    const { protocol, host, hostname, port, pathname, search } = new URL(url);
    const secure = protocol === "https:";
    const pooled = secure ? agents.https : agents.http;
    const options = {
      hostname: hostname.replace(/^\[|\]$/g, ""),
      port,
      path: pathname + search,
      method: request.method,
      headers: headerList(host, request),
      agent: fresh ? false : pooled,
    };
    const outgoing = (secure ? https : http).request(options).end(request.body);
    return responseTo(outgoing, secure, request);
  }

  return {
    send,
    close() {
      agents.http.destroy();
      agents.https.destroy();
    },
  };
}

/**
 * Names and values in one list, which Node sends as it is; of an object it would make one first.
 */
function headerList(host: string, { headers, body }: UpstreamRequest): string[] {
  const list = ["Host", host, "Content-Length", String(Buffer.byteLength(body))];
  for (const name in headers) list.push(name, headers[name]!);
  return list;
}

/**
 * The response to a request that is on its way. Its closures outlive the request, so none of them
 * refers to the UpstreamRequest, which holds the body.
 */
function responseTo(
  outgoing: http.ClientRequest,
  secure: boolean,
  { cancel, connectMs, sent }: UpstreamRequest,
): Promise<UpstreamResponse> {
  let response: http.IncomingMessage | undefined;
  let bytesBefore = 0;
  return new Promise((resolve, reject) => {
    cancel.onAbort(() => {
      const reason = cancel.reason as Error;
      response?.destroy(reason);
      outgoing.destroy(reason);
      reject(reason);
    });
    outgoing.on("socket", (socket) => {
      sent();
      bytesBefore = socket.bytesRead;
      if (socket.connecting) limitConnecting(outgoing, socket, secure, connectMs);
    });
    outgoing.on("response", (message) => {
      response = message;
      resolve(upstreamResponse(message));
    });
    outgoing.on("error", (error: NodeJS.ErrnoException) => {
      if (response) return; // The reader of the body gets the error.
      const isClosed = error.code === "ECONNRESET" || error.code === "EPIPE";
      const hasNoBytes = outgoing.socket?.bytesRead === bytesBefore;
      reject(isClosed && outgoing.reusedSocket && hasNoBytes ? new StaleConnection() : error);
    });
    // A response that changes the protocol (101) emits no other event.
    outgoing.on("close", () => {
      if (!response) reject(closedWithoutResponse());
    });
  });
}

/** Ends a request whose new connection takes too long. */
function limitConnecting(
  outgoing: http.ClientRequest,
  socket: Socket,
  secure: boolean,
  connectMs: number,
): void {
  const timer = setTimeout(
    () => outgoing.destroy(new ConnectTimeout(`no connection within ${connectMs} ms`)),
    connectMs,
  );
  socket.once(secure ? "secureConnect" : "connect", () => clearTimeout(timer));
  outgoing.on("close", () => clearTimeout(timer));
}

const upstreamResponse = (message: http.IncomingMessage): UpstreamResponse => ({
  status: message.statusCode ?? 0,
  headers: { get: (name) => message.headers[name.toLowerCase()]?.toString() ?? null },
  body: message,
});

const closedWithoutResponse = (): Error =>
  Object.assign(new Error("closed without an answer"), { code: "EPROTO" });
