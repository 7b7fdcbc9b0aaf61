// The connections of a server, and the life of each exchange on them, from the parsed head of the
// request to the end of the response.
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import type { Clock, Timer } from "../clock.ts";
import { Cancel, ClientGone } from "./cancel.ts";
import type { Exchange, ExchangeObserver } from "./exchange.ts";
import { requestId } from "./request-id.ts";

/** How long the last bytes of an aborted response may take to reach a client that reads slowly. */
export const BREAK_OFF_MS = 1_000;

/** The logged status of a request whose client left before it had the whole response. */
const CLIENT_GONE_STATUS = 499;

/** An exchange with the server's own state. The handler gets it as an Exchange. */
export interface LiveExchange extends Exchange {
  /** On the monotonic clock, in milliseconds. */
  readonly startedAt: number;
  /**
   * The whole response was handed to an open socket. Node's "finish" alone does not prove that: it
   * is also emitted when the socket is destroyed with a part of the response in it.
   */
  delivered: boolean;
  /** The bytes that `retain` has counted. */
  retained: number;
  /** Empty until the server has created them. */
  observers: readonly ExchangeObserver[];
  /** The handler has returned or thrown. It adds nothing more to `log`. */
  handled: boolean;
  /** Called when `handled` becomes true. Absent: there is no listener. */
  onHandled?: () => void;
  /** The status for the access log, if it differs from the status of `res`. */
  loggedStatus?: number;
  /** Aborts the exchange after its time limit. Absent: it has none. */
  deadline?: Timer;
  /** Destroys a response that is not delivered soon after an abort. Absent: no abort yet. */
  breakOff?: Timer;
}

/** Whether this response must still be sent if the connection can take no further requests. */
export const isResponseOwed = ({ req, res }: LiveExchange): boolean =>
  req.complete || res.headersSent;

/** Bounds the unanswered requests of a connection, by pausing the parser. */
export interface Pipeline {
  /** Called when a response has ended. Parses the bytes that waited for it. */
  advance(): void;
  /** Stops parsing. Reads and discards further bytes, so that the end of the socket is noticed. */
  stop(): void;
}

export interface Connection {
  /** The TCP socket, or the TLS socket above it. */
  readonly socket: Duplex;
  /** Unfinished exchanges, oldest first. Only the response of the first is being sent. */
  readonly live: Set<LiveExchange>;
  /**
   * The exchange that began last; ENDED after it has ended and its request arrived completely.
   * Absent before the first exchange.
   */
  latest?: { readonly req: Pick<IncomingMessage, "complete" | "headers"> };
  /** Nothing more can be parsed. The connection closes after the responses still owed. */
  broken: boolean;
  /** Absent during a TLS handshake, and if pipelining has no bound. */
  pipeline?: Pipeline;
}

/** Replaces the latest exchange after its end, to free the memory of its head. */
const ENDED = { req: { complete: true, headers: {} } };

/** Bounds the connections and the memory of a server. */
export interface Capacity {
  /**
   * Called for each new connection with all open connections, the longest idle first. It may close
   * some of them.
   */
  connected(connections: Iterable<Connection>, count: number): void;
  /**
   * Counts bytes of one exchange, as Exchange.retain. `own`: the bytes that the exchange retains
   * already. Beyond the bound, counts nothing and returns the error that ends the exchange.
   */
  retain(bytes: number, own: number): Error | undefined;
}

/** Creates the exchange of a request whose head was parsed. `live`: as Connection.live. */
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
      // After the end, the timer would keep the request in memory.
      if (live.has(exchange)) exchange.deadline = clock.after(ms, () => exchange.abort(reason()));
    },
  };
  return exchange;
}

/**
 * `onFinish`: called at the end of each exchange, with the status for the access log. `capacity`
 * absent: there are no bounds.
 */
export function createConnections(
  clock: Clock,
  onFinish: (connection: Connection, exchange: LiveExchange, status: number) => void,
  capacity?: Capacity,
) {
  /** Ordered by the end of their last exchange, or by their beginning if they had none. */
  const connections = new Map<Duplex, Connection>();
  // A count: garbage collection of a set of exchanges would take a tenth of a request's CPU time.
  let inFlight = 0;

  /** The connection of a socket; a new one for a socket not seen before. */
  const of = (socket: Duplex): Connection => connections.get(socket) ?? add(socket);

  function add(socket: Duplex): Connection {
    const connection: Connection = { socket, live: new Set(), broken: false };
    connections.set(socket, connection);
    // A TLS socket replaces the TCP socket below it (`_parent`; null for other sockets). Otherwise
    // the TCP socket would count as a second, idle client.
    connections.delete(Reflect.get(socket, "_parent"));
    capacity?.connected(connections.values(), connections.size);
    // Node emits "close" only on the response that is being sent, not on those queued behind it.
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

  /** Ends an exchange, delivered or not. Only the first call counts. */
  function finish(exchange: LiveExchange, connection: Connection): void {
    const { res, delivered } = exchange;
    if (!connection.live.delete(exchange)) return;
    inFlight -= 1;
    if (connection.latest === exchange && exchange.req.complete) connection.latest = ENDED;
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
     * All open connections. Node's own lists lack those that have not sent a request, and those in
     * a TLS handshake.
     */
    all: (): Iterable<Connection> => connections.values(),
    begin,
    /** The number of live exchanges. */
    inFlight: (): number => inFlight,
  };
}
