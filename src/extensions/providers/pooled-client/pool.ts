// The connections to one origin: their number, the choice of the next one, and waiting requests.
import { openConnection, type Connection } from "./connection.ts";
import type { Exchange } from "./exchange.ts";
import type { Connect } from "./socket.ts";

export interface Pool {
  /**
   * Sends the request of an exchange: on the idle connection that was used last, on a new one, or,
   * at the limit, as soon as a connection is free. `fresh`: on a new connection at once, even
   * beyond the limit.
   */
  start(exchange: Exchange, fresh: boolean): void;
  /** Closes the idle connections, and others when their response is complete. */
  close(): void;
}

export function createPool(connect: Connect, maxConnections: number): Pool {
  /** In the order of their use. The last one is used next, so that the others can expire. */
  const idle: Connection[] = [];
  const waiting = new Set<Exchange>();
  let connections = 0;
  let closed = false;

  const owner = {
    idle(connection: Connection): void {
      const isSpare = closed || connections > maxConnections;
      const next = isSpare ? undefined : takeWaiting();
      if (isSpare) connection.close();
      else if (next) connection.carry(next);
      else idle.push(connection);
    },
    closed(connection: Connection): void {
      connections -= 1;
      const index = idle.indexOf(connection);
      if (index !== -1) idle.splice(index, 1);
      const next = connections < maxConnections ? takeWaiting() : undefined;
      if (next) open(next);
    },
  };

  function takeWaiting(): Exchange | undefined {
    const [next] = waiting;
    if (next) waiting.delete(next);
    return next;
  }

  function open(exchange: Exchange): void {
    connections += 1;
    openConnection(connect, exchange.connectMs, owner).carry(exchange);
  }

  return {
    start(exchange, fresh) {
      const connection = fresh ? undefined : idle.pop();
      if (connection) connection.carry(exchange);
      else if (fresh || connections < maxConnections) open(exchange);
      else {
        waiting.add(exchange);
        exchange.detach = () => waiting.delete(exchange);
      }
    },
    close() {
      closed = true;
      for (const connection of [...idle]) connection.close();
    },
  };
}
