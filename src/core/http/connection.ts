// The connections of a server, and the life of each exchange on them: from its parsed head to the
// end of its response.
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import type { Clock, Timer } from "../clock.ts";
import { Cancel, ClientGone } from "./cancel.ts";
import type { Exchange, ExchangeObserver } from "./exchange.ts";
import { requestId } from "./request-id.ts";

/** How long the last bytes of an aborted response may take to reach a client that reads slowly. */
export const BREAK_OFF_MS = 1_000;

/** The status in the access log for a client that left before it had the whole response. */
const CLIENT_GONE_STATUS = 499;

/** An exchange as the server keeps it: what the handler sees, and how far the response has come. */
export interface LiveExchange extends Exchange {
  /** On the monotonic clock, in milliseconds. */
  readonly startedAt: number;
  /**
   * The whole response was handed to an open socket. Node's "finish" alone does not say so: it is
   * also emitted when the socket is destroyed with a part of the response in it.
   */
  delivered: boolean;
  /** The bytes that `retain` has counted. */
  retained: number;
  /** None before the server has asked for them. */
  observers: readonly ExchangeObserver[];
  /** The handler has returned or thrown: it adds nothing more to `log`. */
  handled: boolean;
  /** Called when `handled` becomes true. Absent: there is no listener. */
  onHandled?: () => void;
  /** The status for the access log where `res` does not know it. Absent: as sent. */
  loggedStatus?: number;
  /** Aborts the exchange when its time is up. Absent: it has no deadline. */
  deadline?: Timer;
  /** Breaks the response off if it is not delivered soon after an abort. Absent: no abort yet. */
  breakOff?: Timer;
}

/** Whether the client is owed a response, whatever else arrives on the connection. */
export const isResponseOwed = ({ req, res }: LiveExchange): boolean =>
  req.complete || res.headersSent;

/** Bounds how many requests of a connection are parsed at once. */
export interface Pipeline {
  /** To be called when a request has had its response: parses the bytes that waited for it. */
  advance(): void;
  /** Ends the parsing. Further bytes are read and thrown away, so that the end is noticed. */
  stop(): void;
}

export interface Connection {
  /** The TCP socket, or the TLS socket above it. */
  readonly socket: Duplex;
  /** Exchanges that are not over, oldest first. Only the response of the first is being sent. */
  readonly live: Set<LiveExchange>;
  /**
   * The exchange that began last; once it is over and its request was whole, HEARD. Absent before
   * the first one.
   */
  latest?: { readonly req: Pick<IncomingMessage, "complete" | "headers"> };
  /**
   * Nothing more can be parsed. The connection closes when the responses that are owed have been
   * sent.
   */
  broken: boolean;
  /** Bounds what is parsed at once. Absent during a TLS handshake, and if there is no bound. */
  pipeline?: Pipeline;
}

/** A request that is over, in the place of the request itself: its head takes memory. */
const HEARD = { req: { complete: true, headers: {} } };

/** Bounds what a server takes on. */
export interface Capacity {
  /**
   * Called for each new connection with all that are open, the one that has been idle for longest
   * first. It may close some of them.
   */
  connected(connections: Iterable<Connection>, count: number): void;
  /**
   * Counts bytes of one exchange, as Exchange.retain. `own`: what this exchange keeps already.
   * Returns the error with which the exchange is to end, and counts nothing, if they are too many.
   */
  retain(bytes: number, own: number): Error | undefined;
}

/** The exchange of a request whose head has been parsed. `live`: those of its connection. */
function createExchange(
  { req, res }: Pick<Exchange, "req" | "res">,
  live: ReadonlySet<LiveExchange>,
  clock: Clock,
  capacity: Capacity | undefined,
): LiveExchange {
  const cancel = new Cancel();
  const exchange: LiveExchange = {
    req,
    res,
    cancel,
    requestId: requestId(req.rawHeaders),
    startedAt: clock.monotonic(),
    log: {},
    delivered: false,
    retained: 0,
    observers: [],
    handled: false,
    abort(reason) {
      cancel.abort(reason);
      if (!live.has(exchange)) return;
      exchange.breakOff ??= clock.after(BREAK_OFF_MS, () => {
        if (!exchange.delivered) res.destroy();
      });
    },
    retain(bytes) {
      if (!live.has(exchange)) return;
      const refusal = capacity?.retain(bytes, exchange.retained);
      if (refusal) cancel.abort(refusal);
      else exchange.retained += bytes;
    },
    expire(ms, reason) {
      exchange.deadline = clock.after(ms, () => exchange.abort(reason()));
    },
  };
  return exchange;
}

/**
 * Calls `onFinish` after the end of each exchange, with the status for the access log. `capacity`
 * absent: there are no bounds.
 */
export function createConnections(
  clock: Clock,
  onFinish: (connection: Connection, exchange: LiveExchange, status: number) => void,
  capacity?: Capacity,
) {
  /** In the order of their last exchange, or of their beginning. */
  const connections = new Map<Duplex, Connection>();
  // A count, because a set of all live exchanges costs each request a tenth in garbage collection.
  let inFlight = 0;

  /** The connection of a socket; a new one for a socket not seen before. */
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

  /** Begins the exchange of a request that Node has parsed. */
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
    if (connection.latest === exchange && exchange.req.complete) connection.latest = HEARD;
    capacity?.retain(-exchange.retained, exchange.retained);
    if (connections.delete(connection.socket)) connections.set(connection.socket, connection);
    exchange.deadline?.cancel();
    exchange.breakOff?.cancel();
    if (!delivered)
      exchange.abort(new ClientGone("the client left before it had its whole answer"));
    exchange.endListener?.();
    const status = delivered ? res.statusCode : CLIENT_GONE_STATUS;
    onFinish(connection, exchange, exchange.loggedStatus ?? status);
  }

  return {
    of,
    /**
     * All connections that are open, also those that have not sent a request or are in a TLS
     * handshake. Node's own lists leave these out.
     */
    all: (): Iterable<Connection> => connections.values(),
    /** The live exchanges of all connections. */
    exchanges: (): readonly LiveExchange[] =>
      [...connections.values()].flatMap(({ live }) => [...live]),
    begin,
    /** How many exchanges are not over. */
    inFlight: (): number => inFlight,
  };
}
