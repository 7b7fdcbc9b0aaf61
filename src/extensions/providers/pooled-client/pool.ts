// The connections to one origin: how many there are, which one is used next, how long an idle one
// is kept, and who waits.
import { openConnection, type Connection } from "./connection.ts";
import type { Exchange } from "./exchange.ts";
import type { Origin } from "./socket.ts";

/** Idle connections to one origin that are kept. */
const MAX_IDLE_CONNECTIONS = 1024;

/**
 * How long an idle connection is kept in milliseconds if the server says nothing. Many servers of
 * models are Node or Uvicorn, which close after 5 s: a request sent at that moment would be lost.
 */
const IDLE_MS = 4_000;
/** So much earlier than the server says: its clock began when it sent the response. */
const EARLIER_MS = 1_000;
/** A server's word counts up to here. */
const MAX_IDLE_MS = 600_000;
/** How often idle connections are looked at, all by one timer. */
const SWEEP_MS = 1_000;

export interface Pool {
  /**
   * Sends the request of an exchange: on the idle connection that was used last, on a new one, or
   * when there is room. `fresh`: on a new connection at once, though it be one more than allowed.
   */
  start(exchange: Exchange, fresh: boolean): void;
  /** Closes the idle connections, and others when their response is complete. */
  close(): void;
}

export function createPool(origin: Origin, maxConnections: number): Pool {
  /** The one that was used last is the last, and is used next: the others can grow old. */
  const idle: Connection[] = [];
  const waiting: Exchange[] = [];
  let connections = 0;
  let closed = false;
  let sweeping: NodeJS.Timeout | undefined;

  const owner = {
    idle(connection: Connection, keepAliveSeconds: number | undefined): void {
      const isSpare = closed || connections > maxConnections || idle.length >= MAX_IDLE_CONNECTIONS;
      const idleMs = isSpare ? 0 : idleTime(keepAliveSeconds);
      const next = idleMs > 0 ? waiting.shift() : undefined;
      if (idleMs <= 0) connection.close();
      else if (next) connection.carry(next);
      else keep(connection, idleMs);
    },
    closed(connection: Connection): void {
      connections -= 1;
      const index = idle.indexOf(connection);
      if (index !== -1) idle.splice(index, 1);
      if (connections >= maxConnections) return;
      const next = waiting.shift();
      if (next) connect(next);
    },
  };

  function keep(connection: Connection, idleMs: number): void {
    connection.idleUntil = performance.now() + idleMs;
    idle.push(connection);
    sweeping ??= setTimeout(sweep, SWEEP_MS).unref();
  }

  function connect(exchange: Exchange): void {
    const connection = openConnection(origin, exchange.connectMs, owner);
    connections += 1;
    connection.carry(exchange);
  }

  function wait(exchange: Exchange): void {
    waiting.push(exchange);
    exchange.detach = () => {
      waiting.splice(waiting.indexOf(exchange), 1);
    };
  }

  /** The last idle connection that has time left. Undefined: there is none. */
  function takeIdle(): Connection | undefined {
    const now = performance.now();
    for (let last = idle.pop(); last; last = idle.pop()) {
      if (last.idleUntil > now) return last;
      last.close();
    }
    return undefined;
  }

  function sweep(): void {
    const now = performance.now();
    for (const connection of [...idle]) if (connection.idleUntil <= now) connection.close();
    sweeping = idle.length > 0 ? sweeping?.refresh() : undefined;
  }

  return {
    start(exchange, fresh) {
      const connection = fresh ? undefined : takeIdle();
      if (connection) connection.carry(exchange);
      else if (fresh || connections < maxConnections) connect(exchange);
      else wait(exchange);
    },
    close() {
      closed = true;
      clearTimeout(sweeping);
      for (const connection of [...idle]) connection.close();
    },
  };
}

function idleTime(keepAliveSeconds: number | undefined): number {
  if (keepAliveSeconds === undefined) return IDLE_MS;
  return Math.min(keepAliveSeconds * 1_000 - EARLIER_MS, MAX_IDLE_MS);
}
