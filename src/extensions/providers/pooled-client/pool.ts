// The connections to one origin: how many there are, which one is used next, how long an idle one
// is kept, and who waits.
import { openConnection, type Connection } from "./connection.ts";
import type { Exchange } from "./exchange.ts";
import type { Connect } from "./socket.ts";

/**
 * How long an idle connection is kept in milliseconds if the server says nothing. Many servers of
 * models are Node or Uvicorn, which close after 5 s: a request sent at that moment would be lost.
 */
const IDLE_MS = 4_000;
/** So much earlier than the server says: its clock began when it sent the response. */
const EARLIER_MS = 1_000;
/** A server's word counts up to here. */
const MAX_IDLE_MS = 600_000;

export interface Pool {
  /**
   * Sends the request of an exchange: on the idle connection that was used last, on a new one, or
   * when there is room. `fresh`: on a new connection at once, though it be one more than allowed.
   */
  start(exchange: Exchange, fresh: boolean): void;
  /** Closes the idle connections, and others when their response is complete. */
  close(): void;
}

export function createPool(connect: Connect, maxConnections: number): Pool {
  /** The one that was used last is the last, and is used next: the others can grow old. */
  const idle: Connection[] = [];
  const waiting = new Set<Exchange>();
  let connections = 0;
  let closed = false;

  const owner = {
    idle(connection: Connection, keepAliveSeconds: number | undefined): void {
      const idleMs = idleTime(keepAliveSeconds);
      const isSpare = closed || connections > maxConnections || idleMs <= 0;
      const next = isSpare ? undefined : takeWaiting();
      if (isSpare) connection.close();
      else if (next) connection.carry(next);
      else {
        connection.expire(idleMs);
        idle.push(connection);
      }
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

function idleTime(keepAliveSeconds: number | undefined): number {
  if (keepAliveSeconds === undefined) return IDLE_MS;
  return Math.min(keepAliveSeconds * 1_000 - EARLIER_MS, MAX_IDLE_MS);
}
