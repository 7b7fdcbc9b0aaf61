// The life of an exchange, from its parsed head to the end of its response.
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Clock } from "../clock.ts";
import { Cancel, ClientGone } from "./cancel.ts";
import type { Connection, LiveExchange } from "./connection.ts";
import { requestId } from "./request-id.ts";
import type { ResponseLog } from "./response-log.ts";

/** How long the last bytes of an aborted response may take to reach a client that reads slowly. */
export const BREAK_OFF_MS = 1_000;

/** The status in the access log for a client that left before it had the whole response. */
const CLIENT_GONE_STATUS = 499;

export interface Exchanges {
  /** Begins the exchange of a request that Node has parsed. */
  begin(req: IncomingMessage, res: ServerResponse, connection: Connection): LiveExchange;
  /** Ends an exchange, in whatever way it came to its end. Only the first call counts. */
  finish(exchange: LiveExchange): void;
  /** How many exchanges are not over. */
  inFlight(): number;
}

/** Calls `onFinish` after the end of each exchange. */
export function createExchanges(
  clock: Clock,
  responseLog: ResponseLog,
  onFinish: (connection: Connection) => void,
): Exchanges {
  // A count, because a set of all live exchanges costs each request a tenth in garbage collection.
  let inFlight = 0;

  function begin(req: IncomingMessage, res: ServerResponse, connection: Connection): LiveExchange {
    const cancel = new Cancel();
    const exchange: LiveExchange = {
      req,
      res,
      connection,
      cancel,
      requestId: requestId(req.rawHeaders),
      startedAt: clock.monotonic(),
      log: {},
      delivered: false,
      handled: false,
      abort(reason) {
        cancel.abort(reason);
        if (!connection.live.has(exchange)) return;
        exchange.breakOff ??= clock.after(BREAK_OFF_MS, () => {
          if (!exchange.delivered) res.destroy();
        });
      },
      expire(ms, reason) {
        exchange.deadline = clock.after(ms, () => exchange.abort(reason()));
      },
      onEnd(listener) {
        exchange.endListener = listener;
      },
    };
    connection.live.add(exchange);
    connection.latest = exchange;
    inFlight += 1;
    res.setHeader("X-Request-Id", exchange.requestId);
    res.on("finish", () => {
      exchange.delivered = !req.socket.destroyed;
    });
    res.on("close", () => finish(exchange));
    return exchange;
  }

  function finish(exchange: LiveExchange): void {
    const { res, connection, delivered } = exchange;
    if (!connection.live.delete(exchange)) return;
    inFlight -= 1;
    exchange.deadline?.cancel();
    exchange.breakOff?.cancel();
    if (!delivered)
      exchange.abort(new ClientGone("the client left before it had its whole answer"));
    exchange.endListener?.();
    const status = delivered ? res.statusCode : CLIENT_GONE_STATUS;
    responseLog.ended(exchange, exchange.loggedStatus ?? status);
    onFinish(connection);
  }

  return { begin, finish, inFlight: () => inFlight };
}
