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
  /** A response is complete, and another request can be sent until the connection closes itself. */
  idle(connection: Connection): void;
  /** The connection cannot be used any more. Called once. */
  closed(connection: Connection): void;
}

/**
 * Fails with a ConnectTimeout if connecting takes longer than `connectMs` milliseconds. If the
 * event loop was blocked at the deadline, a connection that is established by then still counts.
 */
export function openConnection(
  connect: Connect,
  connectMs: number,
  owner: ConnectionOwner,
): Connection {
  let exchange: Exchange | undefined;
  let state: "connecting" | "open" | "closed" = "connecting";
  /** Whether the connection has completed an earlier exchange. */
  let isReused = false;
  /** Whether a byte of the answer to the current exchange has arrived. */
  let hasAnswer = false;

  const parser = new ResponseParser({
    head(head) {
      hasAnswer = !isReused || !isFarewell(head);
      if (hasAnswer) exchange?.respond(head, socket);
      else stop();
    },
    body: (bytes) => exchange?.push(Buffer.from(bytes)),
    complete,
  });
  const timeOut = () =>
    state === "connecting" && close(new ConnectTimeout(`no connection within ${connectMs} ms`));
  const deadline = setTimeout(() => setImmediate(timeOut), connectMs);
  const stop = (): void => close(closedEarly());
  const idleTimer = createIdleTimer(() => exchange ?? stop());
  let socket: Socket;
  connect({ follow, opened, receive, failed: close }, connectMs);

  /** Adds the listeners of a socket, which serve all exchanges. */
  function follow(next: Socket): void {
    socket = next.on("error", close).on("close", stop);
    socket.on("end", () => parser.end() || stop());
  }

  function opened(): void {
    clearTimeout(deadline);
    state = "open";
    send();
  }

  /** Sends head and body in one write: two would be two packets and two system calls. */
  function send(): void {
    if (!exchange?.bytes) return;
    socket.write(exchange.bytes);
    exchange.bytes = undefined;
    exchange.sent();
  }

  function receive(bytes: Buffer): void {
    hasAnswer = true;
    try {
      // Section 9.2: bytes without a request would be taken for the answer to the next request.
      if (exchange) parser.push(bytes);
      else stop();
    } catch (error) {
      close(error as Error);
    }
  }

  function complete(surplus: boolean, { idleMs }: ResponseHead): void {
    exchange?.end(); // its reader may close the connection
    exchange = undefined;
    // Section 9.5: a server may answer before it has read the whole request, and stop reading.
    if (state === "closed" || surplus || idleMs === 0 || socket.writableLength > 0) {
      stop();
      return;
    }
    isReused = true;
    if (socket.isPaused()) socket.resume(); // to notice when the server closes
    socket.unref();
    idleTimer.start(idleMs);
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
    failed?.fail(error, isReused && !hasAnswer && CLOSED_CODES.includes(error.code));
  }

  const connection: Connection = {
    carry(next) {
      exchange = next;
      hasAnswer = false;
      next.detach = stop;
      if (isReused) socket.ref();
      if (state === "open") send();
    },
    close: stop,
  };
  return connection;
}

/**
 * A timer for the time that an idle connection is kept. It keeps running during an exchange, when
 * `onExpired` ignores it, so that a request needs no new timer.
 */
function createIdleTimer(onExpired: () => void) {
  let timer: NodeJS.Timeout | undefined;
  let currentMs: number | undefined;
  return {
    start(ms: number): void {
      if (ms === currentMs) timer?.refresh();
      else {
        clearTimeout(timer);
        timer = setTimeout(onExpired, ms).unref();
        currentMs = ms;
      }
    },
    stop: (): void => clearTimeout(timer),
  };
}

/**
 * RFC 9110, section 15.5.9: the server closes an idle connection, and says so. A request that
 * crosses these words may be repeated.
 */
const isFarewell = ({ status, idleMs }: ResponseHead): boolean => status === 408 && idleMs === 0;

/** The error codes of a connection that the server had closed. */
const CLOSED_CODES: readonly (string | undefined)[] = ["ECONNRESET", "EPIPE"];

/** The error of a connection that ended during an exchange. */
const closedEarly = (): NodeJS.ErrnoException =>
  Object.assign(new Error("closed before the response was complete"), { code: "ECONNRESET" });
