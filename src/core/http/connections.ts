// The connections of a server, and the life of each exchange on them: from its parsed head to the
// end of its response.
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import type { Clock } from "../clock.ts";
import type { ResponseLog } from "./access-log.ts";
import { ClientGone } from "./cancel.ts";
import { createExchange, type Capacity, type Connection, type LiveExchange } from "./connection.ts";

/** The status in the access log for a client that left before it had the whole response. */
const CLIENT_GONE_STATUS = 499;

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
  /** Begins the exchange of a request that Node has parsed. */
  begin(req: IncomingMessage, res: ServerResponse): LiveExchange;
  /** How many exchanges are not over. */
  inFlight(): number;
}

/** Calls `onFinish` after the end of each exchange. `capacity` absent: there are no bounds. */
export function createConnections(
  clock: Clock,
  responseLog: ResponseLog,
  onFinish: (connection: Connection) => void,
  capacity?: Capacity,
): Connections {
  /** In the order of their last exchange, or of their beginning. */
  const connections = new Map<Duplex, Connection>();
  // A count, because a set of all live exchanges costs each request a tenth in garbage collection.
  let inFlight = 0;

  const of = (socket: Duplex): Connection => connections.get(socket) ?? add(socket);

  function add(socket: Duplex): Connection {
    const connection: Connection = { socket, live: new Set(), broken: false };
    connections.set(socket, connection);
    // A TLS socket takes the place of the one that it reads from. Two would count as two clients,
    // and the latter, which has no exchange, as idle. Other sockets have null there.
    connections.delete(Reflect.get(socket, "_parent"));
    capacity?.connected(connections.values(), connections.size);
    // Node emits the end of the socket only on the response that owns it, not on those that wait
    // behind it.
    socket.once("close", () => {
      connections.delete(socket);
      for (const exchange of connection.live) finish(exchange, connection);
    });
    return connection;
  }

  function begin(req: IncomingMessage, res: ServerResponse): LiveExchange {
    const connection = of(req.socket);
    const exchange = createExchange({ req, res }, connection.live, clock, capacity);
    connection.live.add(exchange);
    connection.latest = exchange;
    inFlight += 1;
    res.setHeader("X-Request-Id", exchange.requestId);
    res.on("finish", () => {
      exchange.delivered = !req.socket.destroyed;
    });
    res.on("close", () => finish(exchange, connection));
    return exchange;
  }

  /** Ends an exchange, in whatever way it came to its end. Only the first call counts. */
  function finish(exchange: LiveExchange, connection: Connection): void {
    const { res, delivered } = exchange;
    if (!connection.live.delete(exchange)) return;
    inFlight -= 1;
    capacity?.retain(-exchange.retained, exchange.retained);
    if (connections.delete(connection.socket)) connections.set(connection.socket, connection);
    exchange.deadline?.cancel();
    exchange.breakOff?.cancel();
    if (!delivered)
      exchange.abort(new ClientGone("the client left before it had its whole answer"));
    exchange.endListener?.();
    const status = delivered ? res.statusCode : CLIENT_GONE_STATUS;
    responseLog.ended(exchange, exchange.loggedStatus ?? status);
    onFinish(connection);
  }

  return {
    of,
    all: () => connections.values(),
    exchanges: () => [...connections.values()].flatMap(({ live }) => [...live]),
    begin,
    inFlight: () => inFlight,
  };
}
