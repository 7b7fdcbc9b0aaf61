// Node's HTTP servers and agents over the simulated network. Node's own code parses and writes
// HTTP; listening, connecting and closing are simulated.

import http from "node:http";
import net from "node:net";
import { resolve } from "node:path";
import { type Inode, systemError } from "./disk.ts";
import type { Machine } from "./modules.ts";
import type { SimSocket } from "./network.ts";
import type { SimProcess } from "./simulator.ts";

const placeOf = ({ number }: Inode): string => `/socket ${number}`;

/** An internal member of Node's HTTP servers. Undefined: this version of Node has none. */
function internal(server: net.Server, name: string): any {
  const symbols = Object.getOwnPropertySymbols(server);
  const symbol = symbols.find(({ description }) => description === `http.server.${name}`);
  return symbol && Reflect.get(server, symbol);
}

/** The modules node:net and node:http of a process. */
export function createHttp({ network, disk }: Machine, owner: SimProcess) {
  /** The inode is the place of a Unix socket, because its file may be renamed while it listens. */
  function bindPath(path: string): string {
    if (disk.find(path)) throw systemError("EADDRINUSE", "listen", path);
    return placeOf(disk.create(path, "socket"));
  }

  /** Replaces the listening and closing of a server. */
  function simulated<S extends net.Server>(server: S): S {
    let stop: (() => void) | undefined;
    let address: object | null = null;
    const sockets = new Set<SimSocket>();
    let isClosing = false;

    function accept(socket: SimSocket): void {
      sockets.add(socket);
      socket.once("close", () => {
        sockets.delete(socket);
        closeIfDrained();
      });
      server.emit("connection", socket);
    }

    function closeIfDrained(): void {
      if (!isClosing || sockets.size > 0) return;
      isClosing = false;
      server.emit("close");
    }

    /** The place of a path or of a port. Port 0 is any free one. */
    function bind(where: number | { readonly path: string }): string {
      if (typeof where === "object") return bindPath(resolve(where.path));
      const port = where === 0 ? network.portOf(owner) : where;
      address = { address: "127.0.0.1", port, family: "IPv4" };
      return `127.0.0.1:${port}`;
    }

    /** Closes the oldest first. Node's order depends on memory addresses, and so varies. */
    function closeIdleConnections(): void {
      const parsers: any[] = internal(server, "connections")?.idle() ?? [];
      const idle = new Set(parsers.map(({ socket }) => socket));
      for (const socket of sockets)
        if (idle.has(socket) && Reflect.get(socket, "_httpMessage")?.finished !== false)
          socket.destroy();
    }

    return Object.assign(server, {
      closeIdleConnections,
      listen(where: number | { readonly path: string }, host?: unknown, then?: () => void) {
        stop = network.listen({ owner, place: bind(where), accept });
        const listening = typeof host === "function" ? (host as () => void) : then;
        if (listening) server.once("listening", listening);
        queueMicrotask(() => {
          server.emit("listening");
          // Node looks for slow requests by a real timer, which would keep the whole simulation in
          // memory. It starts when the server listens.
          clearInterval(internal(server, "connectionsCheckingInterval"));
        });
        return server;
      },
      address: () => address,
      close(then?: () => void) {
        stop?.();
        stop = undefined;
        if (then) server.once("close", then);
        isClosing = true;
        this.closeIdleConnections();
        queueMicrotask(closeIfDrained);
        return server;
      },
      unref: () => server,
      ref: () => server,
    });
  }

  function connect(
    to: string | { readonly path?: string | null; readonly port?: number },
    opened?: () => void,
  ): SimSocket {
    const { path, port = 0 }: Exclude<typeof to, string> =
      typeof to === "string" ? { path: to } : to;
    const inode = path ? disk.find(resolve(path)) : undefined;
    const place = inode ? placeOf(inode) : `127.0.0.1:${port}`;
    const refusal = path && !inode ? "ENOENT" : "ECONNREFUSED";
    const socket = network.connect(owner, place, refusal, Object(to));
    if (opened) socket.once("connect", opened);
    return socket;
  }

  class Agent extends http.Agent {
    createConnection(options: object): net.Socket {
      return connect(options) as unknown as net.Socket;
    }
  }
  return {
    net: {
      isIP: net.isIP,
      isIPv6: net.isIPv6,
      connect,
      createServer: (listener: (socket: net.Socket) => void) =>
        simulated(net.createServer(listener)),
    },
    http: {
      STATUS_CODES: http.STATUS_CODES,
      request: http.request,
      get: http.get,
      Agent,
      createServer: (options: object, listener?: http.RequestListener) =>
        simulated(http.createServer(options, listener)),
    },
  };
}
