// The seam to the providers: one function of the fetch contract, as `globalThis.fetch` is, and the demo model. The default: pooled
// keep-alive sockets, a connect deadline, no redirects (one would carry the key elsewhere), no decompression, no timeouts of its own.
import http from "node:http";
import https from "node:https";

export interface FetchInit {
  readonly method: "POST"; readonly redirect: "manual";
  readonly headers: Readonly<Record<string, string>>; readonly body: string; readonly signal: AbortSignal;
  /** How long a new connection may take to be made, in milliseconds. The built-in fetch does not know it. */
  readonly connectMs: number;
}

export interface FetchResponse {
  readonly status: number; readonly headers: { get(name: string): string | null };
  readonly body: AsyncIterable<Uint8Array> | null;
}

/** Rejects, and its body throws, with the signal's reason when that aborts; otherwise with what the network said. */
export type Fetch = (url: string, init: FetchInit) => Promise<FetchResponse>;
export class ConnectTimeout extends Error {}

/** A fetch with a pool of its own. `close` ends the idle connections. */
export function createFetch(): Fetch & { close(): void } {
  const pool = { keepAlive: true, maxFreeSockets: 1024, scheduling: "lifo" } as const;
  const agents = { http: new http.Agent(pool), https: new https.Agent(pool) };

  function fetch(url: string, init: FetchInit, fresh = false): Promise<FetchResponse> {
    const { signal, connectMs } = init;
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason as Error);
      const { protocol, host, hostname, port, pathname, search } = new URL(url);
      const secure = protocol === "https:";
      const agent = fresh ? false : secure ? agents.https : agents.http;
      // A flat list is written as it stands; of an object Node would make one of its own first.
      const headers = ["Host", host, "Content-Length", String(Buffer.byteLength(init.body))];
      for (const name in init.headers) headers.push(name, init.headers[name]!);
      const req = (secure ? https : http).request({ method: init.method, hostname: hostname.replace(/^\[|\]$/g, ""), port, path: pathname + search, headers, agent });
      let response: http.IncomingMessage | undefined;
      let bytesBefore = 0;

      signal.addEventListener("abort", () => {
        response?.destroy(signal.reason as Error);
        req.destroy(signal.reason as Error);
        reject(signal.reason as Error); // whatever the request has to say of it
      });
      req.on("socket", (socket) => {
        bytesBefore = socket.bytesRead;
        if (!socket.connecting) return;
        const timer = setTimeout(() => req.destroy(new ConnectTimeout(`no connection within ${connectMs} ms`)), connectMs);
        socket.once(secure ? "secureConnect" : "connect", () => clearTimeout(timer));
        req.on("close", () => clearTimeout(timer));
      });
      req.on("response", (res) => {
        response = res;
        const get = (name: string) => res.headers[name.toLowerCase()]?.toString() ?? null;
        resolve({ status: res.statusCode ?? 0, headers: { get }, body: res });
      });
      req.on("upgrade", (_res, socket) => {
        socket.destroy(); // nobody asked for another protocol
        reject(Object.assign(new Error("the answer changes the protocol"), { code: "EPROTO" }));
      });
      req.on("error", (error: NodeJS.ErrnoException) => {
        if (response) return; // the body's reader gets it
        // A pooled connection may have been closed just as it was taken: ask again on a new one, once, if nothing has come.
        const stale = req.reusedSocket && !signal.aborted && req.socket?.bytesRead === bytesBefore;
        if (stale && !fresh && (error.code === "ECONNRESET" || error.code === "EPIPE")) resolve(fetch(url, init, true));
        else reject(error);
      });
      req.end(init.body);
    });
  }

  return Object.assign(fetch, { close: () => Object.values(agents).forEach((agent) => agent.destroy()) });
}
