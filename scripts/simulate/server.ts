// Servers of Node over the network of the world: Node's own server parses and answers, and its
// listening and closing are those of the world.

import type { EventEmitter } from "node:events";
import { resolve } from "node:path";
import type { Network, SimSocket } from "./network.ts";
import type { SimProcess } from "./world.ts";

/** What a server of the world needs. */
export interface ServerOptions {
  readonly owner: SimProcess;
  readonly network: Network;
  /** Makes the socket of a path. Returns its place; throws if something is there. */
  readonly bindPath: (path: string) => string;
}

/** Puts the network of the world under a server of node:net or node:http. */
export function simulateServer<S extends EventEmitter>(
  server: S,
  { owner, network, bindPath }: ServerOptions,
): S {
  let stop: (() => void) | undefined;
  let address: object | null = null;
  const sockets = new Set<SimSocket>();
  let closed: (() => void) | undefined;

  function accept(socket: SimSocket): void {
    sockets.add(socket);
    socket.once("close", () => {
      sockets.delete(socket);
      closeIfDrained();
    });
    server.emit("connection", socket);
  }

  function closeIfDrained(): void {
    if (!closed || sockets.size > 0) return;
    const listener = closed;
    closed = undefined;
    server.emit("close");
    listener();
  }

  /** The place of an address: a path, or a port of which 0 is any free one. */
  function bind(where: number | { readonly path: string }): string {
    if (typeof where === "object") return bindPath(resolve(where.path));
    const port = where === 0 ? network.portOf(owner) : where;
    address = { address: "127.0.0.1", port, family: "IPv4" };
    return `127.0.0.1:${port}`;
  }

  return Object.assign(server, {
    listen(where: number | { readonly path: string }, host?: unknown, then?: () => void) {
      stop = network.listen({ owner, place: bind(where), accept });
      const listening = typeof host === "function" ? (host as () => void) : then;
      if (listening) server.once("listening", listening);
      queueMicrotask(() => server.emit("listening"));
      return server;
    },
    address: () => address,
    close(then: () => void = () => undefined) {
      stop?.();
      stop = undefined;
      closed = then;
      (server as { closeIdleConnections?: () => void }).closeIdleConnections?.();
      queueMicrotask(closeIfDrained);
      return server;
    },
    unref: () => server,
    ref: () => server,
  });
}
