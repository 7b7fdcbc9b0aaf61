// One connection to a provider. It carries one exchange after another, and closes at the first
// irregularity. Sections are those of RFC 9112.
import type { Socket } from "node:net";
import { ConnectTimeout } from "../../../core/upstream/transport.ts";
import type { Exchange } from "./exchange.ts";
import type { ResponseHead } from "./response-head.ts";
import { ResponseParser } from "./response-parser.ts";
import type { Connect } from "./socket.ts";

export interface Connection {
  /** Sends a request. The connection must be new or idle. */
  carry(exchange: Exchange): void;
  /** Closes the connection. Its exchange fails. */
  close(): void;
}

/** The events that a connection reports to the pool. */
export interface ConnectionOwner {
  /** A response is complete, and another request can be sent. Closes itself when it gets none. */
  idle(connection: Connection): void;
  /** The connection cannot be used any more. Called once. */
  closed(connection: Connection): void;
}

/** `connectMs`: the most milliseconds to connect. After them it fails with a ConnectTimeout. */
export function openConnection(
  connect: Connect,
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

  const parser = new ResponseParser({
    head(parsed) {
      head = parsed;
      exchange?.respond(parsed, socket);
    },
    body: (bytes) => exchange?.push(Buffer.from(bytes)),
    complete,
  });
  const late = (): void => close(new ConnectTimeout(`no connection within ${connectMs} ms`));
  const deadline = setTimeout(late, connectMs);
  const stop = (): void => close(closedEarly());
  const idleTimer = createIdleTimer(() => exchange ?? stop());
  let socket: Socket;
  connect({ follow, opened, receive, failed: close });

  /** The listeners of the socket serve all exchanges. None is added or removed for a request. */
  function follow(next: Socket): void {
    socket = next;
    socket.on("end", () => parser.end() || stop());
    socket.on("error", close).on("close", stop);
  }

  function opened(): void {
    clearTimeout(deadline);
    state = "open";
    send();
  }

  /** Head and body in one write: two would be two packets, and two system calls. */
  function send(): void {
    if (!exchange?.bytes) return;
    socket.write(exchange.bytes);
    exchange.bytes = undefined;
    exchange.sent();
  }

  function receive(bytes: Buffer): void {
    answered = true;
    try {
      // Section 9.2: bytes that answer no request would be taken for the answer to the next one.
      if (exchange) parser.push(bytes);
      else stop();
    } catch (error) {
      close(error as Error);
    }
  }

  function complete(surplus: boolean): void {
    exchange?.end(); // its reader may close the connection
    exchange = undefined;
    // Section 9.5: the server may answer before the request has left, and read no more of it.
    if (state === "closed" || surplus || !head?.idleMs || socket.writableLength > 0) {
      stop();
      return;
    }
    reused = true;
    if (socket.isPaused()) socket.resume(); // or the server's closing would not be noticed
    socket.unref();
    idleTimer.start(head.idleMs);
    owner.idle(connection);
  }

  function close(error: NodeJS.ErrnoException): void {
    if (state === "closed") return;
    state = "closed";
    clearTimeout(deadline);
    idleTimer.stop();
    socket.destroy();
    const failed = exchange;
    exchange = undefined;
    owner.closed(connection);
    failed?.fail(error, reused && !answered && CLOSED.includes(error.code));
  }

  const connection: Connection = {
    carry(next) {
      exchange = next;
      answered = false;
      next.detach = stop;
      if (reused) socket.ref();
      if (state === "open") send();
    },
    close: stop,
  };
  return connection;
}

/**
 * The time for which an unused connection is kept. It runs on during an exchange, in which its end
 * means nothing: so a request needs no new timer.
 */
function createIdleTimer(over: () => void) {
  let timer: NodeJS.Timeout | undefined;
  let setFor: number | undefined;
  return {
    start(ms: number): void {
      if (ms === setFor) {
        timer?.refresh();
        return;
      }
      clearTimeout(timer);
      timer = setTimeout(over, ms).unref();
      setFor = ms;
    },
    stop: (): void => clearTimeout(timer),
  };
}

/** The codes of a connection that the server had closed. */
const CLOSED: readonly (string | undefined)[] = ["ECONNRESET", "EPIPE"];

/** The connection ended where it should not. */
const closedEarly = (): NodeJS.ErrnoException =>
  Object.assign(new Error("closed before the response was complete"), { code: "ECONNRESET" });
