// One connection to a provider. It carries one exchange after another, and is closed at the first
// thing that is not as it should be. Sections are those of RFC 9112.
import type { Exchange } from "./exchange.ts";
import type { BodySource } from "./response-body.ts";
import type { ResponseHead } from "./response-head.ts";
import { createResponseParser } from "./response-parser.ts";
import { closedEarly, openSocket, type Origin } from "./socket.ts";

export interface Connection {
  /** When an idle connection is to be closed, by performance.now(). The pool's own note. */
  idleUntil: number;
  /** Sends a request. The connection must be new or idle. */
  carry(exchange: Exchange): void;
  /** Closes the connection. Its exchange fails. */
  close(): void;
}

/** The events that a connection reports to the pool. */
export interface ConnectionOwner {
  /** A response is complete, and another request can be sent. */
  idle(connection: Connection, keepAliveSeconds: number | undefined): void;
  /** The connection is of no more use. Told once. */
  closed(connection: Connection): void;
}

/** The server had closed a connection that was used before, and no byte of a response had come. */
export class StaleConnection extends Error {}

export function openConnection(
  origin: Origin,
  connectMs: number,
  owner: ConnectionOwner,
): Connection {
  let exchange: Exchange | undefined;
  let head: ResponseHead | undefined;
  let state: "connecting" | "open" | "closed" = "connecting";
  /** A request has been answered on this connection. */
  let reused = false;
  /** A byte has come since the present exchange began. */
  let answered = false;

  const parser = createResponseParser({
    head(parsed) {
      head = parsed;
      exchange?.respond(parsed, source);
    },
    body: (bytes) => exchange?.body?.push(Buffer.from(bytes)),
    complete,
  });
  // The listeners of the socket serve all exchanges. None is added or removed for a request.
  const socket = openSocket(origin, connectMs, {
    open() {
      state = "open";
      send();
    },
    bytes: receive,
    end() {
      if (!exchange || !parser.end()) close(closedEarly());
    },
    close,
  });
  const source: BodySource = {
    pause: () => socket.pause(),
    resume: () => socket.resume(),
    stop: () => close(closedEarly()),
  };

  const connection: Connection = {
    idleUntil: 0,
    carry(next) {
      exchange = next;
      answered = false;
      next.detach = source.stop;
      if (reused) socket.ref();
      if (state === "open") send();
    },
    close: source.stop,
  };

  /** Head and body in one write: two would be two packets, and two system calls. */
  function send(): void {
    const bytes = exchange?.bytes;
    if (!exchange || !bytes) return;
    exchange.bytes = undefined;
    socket.write(bytes);
    exchange.sent();
  }

  function receive(bytes: Buffer): void {
    if (state === "closed") return;
    answered = true;
    try {
      // Section 9.2: bytes that answer no request would be taken for the answer to the next one.
      if (exchange) parser.push(bytes);
      else close(closedEarly());
    } catch (error) {
      close(error as Error);
    }
  }

  function complete(surplus: boolean): void {
    const done = exchange!;
    exchange = undefined;
    done.detach = undefined;
    done.body?.end();
    // Section 9.5: the server may answer before the request has left, and read no more of it.
    if (surplus || !head?.persistent || socket.writableLength > 0) {
      close(closedEarly());
      return;
    }
    reused = true;
    if (socket.isPaused()) socket.resume(); // or the server's closing would not be noticed
    socket.unref();
    owner.idle(connection, head.keepAliveSeconds);
  }

  function close(error: NodeJS.ErrnoException): void {
    if (state === "closed") return;
    state = "closed";
    socket.destroy();
    const failed = exchange;
    exchange = undefined;
    owner.closed(connection);
    const isClosed = error.code === "ECONNRESET" || error.code === "EPIPE";
    failed?.fail(reused && !answered && isClosed ? new StaleConnection() : error);
  }

  return connection;
}
