// The seam to the providers: one function that takes a request out and brings its answer. The default has pooled keep-alive sockets, a
// connect deadline, no redirects (one would carry the key elsewhere), no decompression, no timeouts of its own; any function of the
// fetch contract can stand in its place, and the demo model does.
import http from "node:http";
import https from "node:https";
import type { Cancel } from "../http/cancel.ts";

export interface UpstreamRequest {
  readonly method: "POST";
  readonly redirect: "manual";
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** Aborts the request, or its answer; how long a new connection may take to be made, in milliseconds; is called when there is one. */
  readonly cancel: Cancel;
  readonly connectMs: number;
  readonly sent: () => void;
  /** Is called when a pooled connection turns out to have been closed by the provider before a byte of an answer came, and the request
   * is about to be sent once more on a new one. Absent: nobody needs to know. */
  readonly resent?: () => void;
}
interface Headers {
  get(name: string): string | null;
}
export interface FetchResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly body: AsyncIterable<Uint8Array> | null;
}

/** Rejects, and its body throws, with the reason of `cancel` when that aborts; otherwise with what the network said. */
export type Transport = (url: string, init: UpstreamRequest) => Promise<FetchResponse>;
/** A function of the fetch contract, such as the built-in one, which does not know how long a connection may take. */
export type Fetch = (
  url: string,
  init: UpstreamRequest & { readonly signal: AbortSignal },
) => Promise<FetchResponse>;
export const fetchTransport =
  (fetch: Fetch): Transport =>
  (url, init) => {
    init.sent();
    return fetch(url, { ...init, signal: init.cancel.signal });
  };
export class ConnectTimeout extends Error {}
class StaleConnection extends Error {}

function answerTo(
  req: http.ClientRequest,
  secure: boolean,
  cancel: Cancel,
  connectMs: number,
  sent: () => void,
): Promise<FetchResponse> {
  let response: http.IncomingMessage | undefined;
  let bytesBefore = 0;
  return new Promise((resolve, reject) => {
    cancel.onAbort(() => {
      response?.destroy(cancel.reason as Error);
      req.destroy(cancel.reason as Error);
      reject(cancel.reason as Error); // whatever the request has to say of it
    });
    req.on("socket", (socket) => {
      sent();
      bytesBefore = socket.bytesRead;
      if (!socket.connecting) return;
      const timer = setTimeout(
        () => req.destroy(new ConnectTimeout(`no connection within ${connectMs} ms`)),
        connectMs,
      );
      socket.once(secure ? "secureConnect" : "connect", () => clearTimeout(timer));
      req.on("close", () => clearTimeout(timer));
    });
    req.on("response", (res) => {
      response = res;
      const get = (name: string) => res.headers[name.toLowerCase()]?.toString() ?? null;
      resolve({ status: res.statusCode ?? 0, headers: { get }, body: res });
    });
    req.on("error", (error: NodeJS.ErrnoException) => {
      if (response) return; // the body's reader gets it
      const closed = error.code === "ECONNRESET" || error.code === "EPIPE";
      const stale = closed && req.reusedSocket && req.socket?.bytesRead === bytesBefore;
      reject(stale ? new StaleConnection() : error);
    });
    // Of an answer that changes the protocol Node says no more than this.
    req.on(
      "close",
      () =>
        response ??
        reject(Object.assign(new Error("closed without an answer"), { code: "EPROTO" })),
    );
  });
}

/** Has a pool of its own: more than `maxConnections` to one origin wait for each other. `close` ends the idle connections. */
export function createFetch(maxConnections = Infinity): Transport & { close(): void } {
  const pool = {
    keepAlive: true,
    maxSockets: maxConnections,
    maxFreeSockets: 1024,
    scheduling: "lifo",
  } as const;
  const agents = { http: new http.Agent(pool), https: new https.Agent(pool) };

  /** A pooled connection may have been closed just as it was taken: asks again on a new one, once, if nothing has come. */
  const fetch: Transport = (url, init) =>
    post(url, init).catch((error) => {
      if (!(error instanceof StaleConnection)) throw error;
      init.resent?.();
      return post(url, init, true);
    });

  /** No closure here sees the request's text: it would be kept as long as the answer takes. */
  function post(
    url: string,
    { method, headers: given, body, cancel, connectMs, sent }: UpstreamRequest,
    fresh = false,
  ): Promise<FetchResponse> {
    const { protocol, host, hostname, port, pathname, search } = new URL(url);
    const secure = protocol === "https:";
    let agent: http.Agent | false = false;
    if (!fresh) agent = secure ? agents.https : agents.http;
    // A flat list is written as it stands; of an object Node would make one of its own first.
    const headers = ["Host", host, "Content-Length", String(Buffer.byteLength(body))];
    for (const name in given) headers.push(name, given[name]!);
    const options = {
      hostname: hostname.replace(/^\[|\]$/g, ""),
      port,
      path: pathname + search,
      method,
      headers,
      agent,
    };
    return answerTo(
      (secure ? https : http).request(options).end(body),
      secure,
      cancel,
      connectMs,
      sent,
    );
  }

  return Object.assign(fetch, {
    close: () =>
      Object.values(agents).forEach((agent) => {
        agent.destroy();
      }),
  });
}
