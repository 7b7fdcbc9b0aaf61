// The connections of a server, and the exchanges on them that are not over.
import type { Duplex } from "node:stream";
import type { Timer } from "../clock.ts";
import type { Exchange } from "./exchange.ts";
import type { Pipeline } from "./server.ts";

/** An exchange as the server keeps it: what the handler sees, and how far the response has come. */
export interface LiveExchange extends Exchange {
  readonly connection: Connection;
  /** On the monotonic clock, in milliseconds. */
  readonly startedAt: number;
  /**
   * The whole response was handed to an open socket. Node's "finish" alone does not say so: it is
   * also emitted when the socket is destroyed with a part of the response in it.
   */
  delivered: boolean;
  /** The handler has returned or thrown: it adds nothing more to `log`. */
  handled: boolean;
  /** Called when `handled` becomes true. Absent: nobody waits for that. */
  onHandled?: () => void;
  /** The status for the access log where `res` does not know it. Absent: as sent. */
  loggedStatus?: number;
  /** The listener of `onEnd`. Absent: there is none. */
  endListener?: () => void;
  /** Aborts the exchange when its time is up. Absent: it has no deadline. */
  deadline?: Timer;
  /** Breaks the response off if it is not delivered soon after an abort. Absent: no abort yet. */
  breakOff?: Timer;
}

/** Whether the client is owed a response, whatever else arrives on the connection. */
export const isResponseOwed = ({ req, res }: LiveExchange): boolean =>
  req.complete || res.headersSent;

export interface Connection {
  readonly socket: Duplex;
  /** Exchanges that are not over, oldest first. Only the response of the first is being sent. */
  readonly live: Set<LiveExchange>;
  /** The exchange that began last, over or not. Absent before the first one. */
  latest?: LiveExchange;
  /**
   * Nothing more can be parsed. The connection closes when the responses that are owed have been
   * sent.
   */
  broken: boolean;
  /** Bounds what is parsed at once. Absent during a TLS handshake, and if there is no bound. */
  pipeline?: Pipeline;
}

export interface Connections {
  /** The connection of a socket; a new one for a socket not seen before. */
  of(socket: Duplex): Connection;
  /**
   * All connections that are open, also those that have not sent a request or are in a TLS
   * handshake. Node's own lists leave these out.
   */
  all(): Iterable<Connection>;
  /** The live exchanges of all connections. */
  exchanges(): readonly LiveExchange[];
}

/** Calls `onClose` when a socket has closed. */
export function createConnections(onClose: (connection: Connection) => void): Connections {
  const connections = new Map<Duplex, Connection>();

  function add(socket: Duplex): Connection {
    const connection: Connection = { socket, live: new Set(), broken: false };
    connections.set(socket, connection);
    // Node tells only the response that owns the socket of its end, not those that wait behind it.
    socket.once("close", () => {
      connections.delete(socket);
      onClose(connection);
    });
    return connection;
  }

  return {
    of: (socket) => connections.get(socket) ?? add(socket),
    all: () => connections.values(),
    exchanges: () => [...connections.values()].flatMap(({ live }) => [...live]),
  };
}
