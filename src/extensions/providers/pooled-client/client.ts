// The pooled HTTP/1.1 client for providers: keep-alive connections, a deadline for new ones, and
// one more try where the provider had closed a pooled connection. It follows no redirect,
// decompresses nothing, and has no other timeouts.
import type {
  Transport,
  UpstreamRequest,
  UpstreamResponse,
} from "../../../core/upstream/transport.ts";
import { StaleConnection } from "./connection.ts";
import { Exchange } from "./exchange.ts";
import { createPool, type Pool } from "./pool.ts";
import { requestBytes } from "./request-bytes.ts";
import { connectTo } from "./socket.ts";

export interface PooledClient {
  /** Sends once more, on a new connection, where a pooled one turns out to be closed. */
  readonly send: Transport;
  /** Closes the idle connections, and others when their response is complete. */
  close(): void;
}

/** At most `maxConnections` to one origin; further requests wait. Absent: no limit. */
export function createPooledClient(maxConnections = Infinity): PooledClient {
  /** By origin. */
  const pools = new Map<string, Pool>();

  function poolOf(url: URL): Pool {
    const pool = pools.get(url.origin) ?? createPool(connectTo(url), maxConnections);
    pools.set(url.origin, pool);
    return pool;
  }

  /**
   * `fresh`: on a new connection. No function that is made here holds the request, which ends when
   * it was sent.
   */
  function post(url: URL, request: UpstreamRequest, fresh: boolean): Promise<UpstreamResponse> {
    const { cancel } = request;
    const bytes = requestBytes(url, request);
    if (cancel.aborted) return Promise.reject(cancel.reason);
    const exchange = new Exchange(bytes, request);
    poolOf(url).start(exchange, fresh);
    cancel.onAbort(() => exchange.abort(cancel.reason));
    return exchange.response;
  }

  return {
    async send(address, request) {
      const url = new URL(address);
      try {
        return await post(url, request, false);
      } catch (error) {
        if (!(error instanceof StaleConnection)) throw error;
      }
      request.resent?.();
      return post(url, request, true);
    },
    close() {
      for (const pool of pools.values()) pool.close();
    },
  };
}
