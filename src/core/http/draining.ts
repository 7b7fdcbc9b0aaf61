// How a server stops: no new connections, then the end of the requests in flight, then of all
// connections.
import type { Server as NodeServer } from "node:http";
import type { Clock } from "../clock.ts";
import type { Connections } from "./connection.ts";
import { BREAK_OFF_MS } from "./live-exchange.ts";

export interface Draining {
  /** Whether `close` was called. */
  isDraining(): boolean;
  /** To be called after the end of each exchange: closes connections that are of no more use. */
  exchangeEnded(): void;
  /** As `Server.close`. */
  close(drainMs: number, reason: Error): Promise<void>;
}

/** `inFlight` is how many exchanges are not over. */
export function createDraining(
  nodeServer: NodeServer,
  connections: Connections,
  inFlight: () => number,
  clock: Clock,
): Draining {
  let draining = false;

  function destroyAll(): void {
    for (const { socket } of connections.all()) socket.destroy();
  }

  /** Connections that have never sent a request stay until no request is left. */
  function closeUnused(): void {
    if (inFlight() === 0) destroyAll();
    else nodeServer.closeIdleConnections();
  }

  function abortAll(reason: Error): void {
    for (const exchange of connections.exchanges()) exchange.abort(reason);
  }

  return {
    isDraining: () => draining,
    exchangeEnded() {
      if (draining) closeUnused();
    },
    async close(drainMs, reason) {
      draining = true;
      const closed = new Promise<void>((resolve) => {
        nodeServer.close(() => resolve());
      });
      for (const { res } of connections.exchanges())
        if (!res.headersSent) res.setHeader("Connection", "close");
      closeUnused();
      // A paused connection does not keep the process alive. These timers do, until all is over.
      const abortTimer = clock.after(drainMs, () => abortAll(reason));
      const destroyTimer = clock.after(drainMs + BREAK_OFF_MS, destroyAll);
      await closed;
      abortTimer.cancel();
      destroyTimer.cancel();
    },
  };
}
